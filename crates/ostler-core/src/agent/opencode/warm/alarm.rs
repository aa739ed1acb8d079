//! The timers of the server's sessions, and what follows when one rings.

use std::time::Duration;

use super::server::Server;
use crate::agent::{Action, SessionKey, TimerKey, TurnKey};

/// What a timer is for.
#[derive(Clone, Copy, Debug)]
pub(super) enum Alarm {
    /// The server has tried again for long enough.
    Patience(SessionKey, TurnKey, TimerKey),
    /// A turn that seemed to be over has had its time.
    Settle(SessionKey, TurnKey, u32),
    /// A turn should have ended by now.
    Stop(SessionKey, TurnKey),
    /// The server is to be asked again how it is.
    Health,
    /// The stream is to be opened again.
    Listen,
    /// A turn is to be looked at again.
    Look(SessionKey, TurnKey),
    /// The server was waited for long enough, this time.
    Lost(u32),
}

impl Server {
    pub(super) fn rang(&mut self, alarm: Alarm, out: &mut Vec<Action>) {
        match alarm {
            Alarm::Health => self.client.health(out),
            Alarm::Listen if self.is_connected => {}
            Alarm::Listen => self.client.listen(out),
            Alarm::Lost(round) => self.waited(round, out),
            Alarm::Patience(key, turn, timer) => {
                let Some(live) = self.live(key, turn) else { return };
                let follows = live.rang(timer);
                self.follow(key, follows, out);
            }
            Alarm::Settle(key, turn, round) => {
                let Some(live) = self.live(key, turn).filter(|live| live.settling == round) else {
                    return;
                };
                if live.n_steers > 0 {
                    // The server may take it up yet; the call has a limit of its own.
                    self.settle(key, out);
                } else {
                    self.conclude(key, out);
                }
            }
            Alarm::Stop(key, turn) => {
                let Some(live) = self.live(key, turn) else { return };
                if live.is_silent {
                    // It was waited for in vain. Should it be about to begin, this
                    // may still end it.
                    self.stop(key, out);
                    self.conclude(key, out);
                } else if live.failure.is_some() {
                    self.conclude(key, out);
                }
                // A cancelled turn that does not end is for the driver to give up.
            }
            Alarm::Look(key, turn) => {
                if self.live(key, turn).is_some() {
                    self.look(key, out);
                }
            }
        }
    }

    pub(super) fn arm(&mut self, alarm: Alarm, after: Duration, out: &mut Vec<Action>) {
        self.n_alarms = self.n_alarms.wrapping_add(1);
        self.alarms.insert(self.n_alarms, alarm);
        out.push(Action::Arm { timer: TimerKey(self.n_alarms), after });
    }
}

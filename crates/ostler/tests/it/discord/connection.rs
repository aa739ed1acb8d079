//! Connections that live, and those that are dead without anybody saying so.

use std::time::Duration;

use super::rig::Rig;
use crate::support::LIMIT;

/// Starts a gateway that is to be heard this often.
fn rig(interval: Duration) -> Rig {
    Rig::with(|rig, _| rig.discord.heartbeat(interval))
}

#[test]
fn a_connection_that_is_kept_by_heartbeats_is_never_begun_anew() {
    let rig = rig(Duration::from_secs(2));
    rig.discord.wait_for("heartbeats", LIMIT, |world| (world.heartbeats() >= 3).then_some(()));
    rig.ask("sim:echo=alive");
    rig.wait_for_text("You said alive.");
    let discord = &rig.discord;
    assert_eq!((discord.connections(), discord.identifies(), discord.resumes()), (1, 1, 0));
}

#[test]
fn a_heartbeat_that_discord_asks_for_comes_at_once() {
    let rig = rig(Duration::from_secs(600));
    let n_before = rig.discord.look(|world| world.heartbeats());
    for number in 1..=3 {
        rig.discord.ask_heartbeat();
        rig.discord.wait_for("a heartbeat", LIMIT, |world| {
            (world.heartbeats() >= n_before + number).then_some(())
        });
    }
    assert_eq!(rig.discord.connections(), 1);
}

#[test]
fn a_connection_on_which_nothing_arrives_any_more_is_replaced_and_nothing_gets_lost() {
    let rig = rig(Duration::from_secs(1));
    rig.ask("sim:echo=before");
    rig.wait_for_text("You said before.");
    rig.discord.silence();
    // It is told on the dead connection, and again on the next one.
    rig.ask("sim:echo=after");
    rig.wait_for_text("You said after.");
    assert_eq!(rig.n_sent(), 2);
    assert!(rig.discord.resumes() >= 1, "{}", rig.discord.resumes());
    assert_eq!(rig.discord.identifies(), 1);
}

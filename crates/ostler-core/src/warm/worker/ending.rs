//! How a kept process ends, and what that means for those who use it.

use std::mem;

use super::{
    super::{
        footing::Next,
        live::{LiveTurn, NewTurn, Phase},
        pool::News,
    },
    Command, Parts, Worker, not_begun,
};
use crate::agent::{Exit, Input, Order, TurnKey};

impl Worker {
    /// The process is gone: so is every turn in it.
    pub(super) fn ended(&mut self, exit: Exit) {
        self.exit = Some(exit.clone());
        // Before anybody who looks for another process can find this one.
        let died = self.died || !self.retired;
        self.tell(News::Gone { member: self.parts.member, died });
        self.step(Input::Exited(&exit));
        let left: Vec<u32> = self.turns.keys().copied().collect();
        for key in left {
            let waits = |turn: &LiveTurn| matches!(turn.phase, Phase::Waiting { .. });
            if self.ready && self.turns.get(&key).is_some_and(waits) {
                if let Some(turn) = self.turns.remove(&key) {
                    not_begun(turn, "the agent's process ended before it took the prompt");
                }
            } else {
                self.finish(TurnKey(key), None);
            }
        }
    }

    /// Takes no new session; stops once no turn runs.
    pub(super) fn retire(&mut self) {
        self.leave_pool();
        self.stop_if_idle();
    }

    pub(super) fn leave_pool(&mut self) {
        if !mem::replace(&mut self.retired, true) {
            self.tell(News::Retired { member: self.parts.member });
        }
    }

    pub(super) fn stop_if_idle(&mut self) {
        if self.retired && self.turns.is_empty() {
            self.stop();
        }
    }

    pub(super) fn stop(&mut self) {
        if self.unusable.is_some() {
            self.parts.footing.end();
        } else if self.parts.footing.stop() == Next::Farewell {
            self.step(Input::Order(Order::Leave));
        }
    }

    /// A server has nothing more to do for us, or cannot be reached.
    pub(super) fn left(&mut self) {
        self.died |= !self.retired && self.ready;
        self.leave_pool();
        if self.unusable.is_some() && self.turns.is_empty() {
            // Whoever had it looked for may not have come yet.
            self.parts.footing.linger();
        } else {
            self.parts.footing.end();
        }
    }

    /// Ends the process, and with it what runs.
    pub(super) fn stop_hard(&mut self) {
        self.leave_pool();
        if self.parts.footing.stop_with_signals() == Next::Farewell {
            self.step(Input::Order(Order::Leave));
        }
    }

    /// Hands back what came too late, and tells the pool.
    pub(super) fn bury(mut self) {
        self.parts.commands.close();
        while let Ok(command) = self.parts.commands.try_recv() {
            if let Command::Prompt(new) = command {
                let NewTurn { session, way, .. } = *new;
                let turn = LiveTurn::new(session, Phase::Running, way);
                not_begun(turn, "the agent's process had ended");
            }
        }
        // The sessions are free before anybody can learn that the process is gone.
        self.sessions.clear();
        let Parts { tasks, footing, .. } = self.parts;
        if let Some(run_dir) = footing.into_run_dir() {
            // Removing a folder that a CLI filled can take a while.
            tasks.spawn_blocking(move || drop(run_dir));
        }
    }
}

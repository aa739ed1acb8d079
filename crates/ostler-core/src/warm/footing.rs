//! What a worker stands on: a process of ours, or a server of somebody else's.
//!
//! A process is heard, written to and ended by its plan. A server is there
//! before and after us: there is nothing to end, and leaving it is the end.

use std::time::Duration;

use tokio::time::Instant;

use crate::{
    agent::{Exit, StopStep},
    driver::stopper::{Progress, Stopper},
    proc::{Proc, ProcEvent},
    run_dir::RunDir,
};

/// How long what we left running on a server may take to end.
const LEAVE_LIMIT: Duration = Duration::from_secs(3);

/// What a worker stands on.
pub(crate) enum Footing {
    /// A process of ours.
    Process(Box<Process>),
    /// A server of somebody else's.
    Server(Stay),
}

/// A process of ours, its folder, and how it is ended.
pub(crate) struct Process {
    proc: Proc,
    run_dir: RunDir,
    stopper: Stopper,
}

/// How far we are from leaving a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stay {
    /// We stay.
    Open,
    /// What still runs there for us has until then.
    Until(Instant),
    /// We are gone.
    Over,
}

/// What has to be done for a stop to go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// Nothing; the end comes by itself.
    Nothing,
    /// The server has to be told what we need no more.
    Farewell,
}

impl Footing {
    pub(crate) fn process(proc: Proc, run_dir: RunDir, plan: &'static [StopStep]) -> Self {
        Self::Process(Box::new(Process { proc, run_dir, stopper: Stopper::new(plan) }))
    }

    pub(crate) fn is_server(&self) -> bool {
        matches!(self, Self::Server(_))
    }

    /// Returns the process's id, if there is one.
    pub(crate) fn pid(&self) -> Option<u32> {
        match self {
            Self::Process(process) => Some(process.proc.pid()),
            Self::Server(_) => None,
        }
    }

    /// Reads from a process, or only writes to it; tells the end of either.
    /// Cancel-safe.
    pub(crate) async fn hear(&mut self, may_read: bool) -> ProcEvent {
        match self {
            Self::Process(process) if may_read => process.proc.next().await,
            Self::Process(process) => loop {
                process.proc.flush().await;
            },
            Self::Server(Stay::Over) => ProcEvent::Exited { code: Some(0), signal: None },
            Self::Server(Stay::Open | Stay::Until(_)) => std::future::pending().await,
        }
    }

    /// Writes to a process; a server is called.
    pub(crate) fn write(&mut self, bytes: &[u8]) {
        if let Self::Process(process) = self {
            process.proc.write(bytes);
        }
    }

    /// Returns when a process last printed anything.
    pub(crate) fn last_byte_at(&self) -> Option<Instant> {
        match self {
            Self::Process(process) => Some(process.proc.last_byte_at()),
            Self::Server(_) => None,
        }
    }

    /// Returns how it ended, with a process's last words.
    pub(crate) fn exit(&self, code: Option<i32>, signal: Option<i32>) -> Exit {
        let stderr = match self {
            Self::Process(process) => {
                String::from_utf8_lossy(process.proc.stderr_head()).into_owned()
            }
            Self::Server(_) => String::new(),
        };
        Exit { code, signal, stderr }
    }

    pub(crate) fn forget_last_words(&mut self) {
        if let Self::Process(process) = self {
            process.proc.forget_stderr_head();
        }
    }

    /// Returns whether the end has begun.
    pub(crate) fn is_going(&self) -> bool {
        match self {
            Self::Process(process) => process.stopper.is_going(),
            Self::Server(stay) => *stay != Stay::Open,
        }
    }

    /// Returns when [`Self::advance`] is due.
    pub(crate) fn due(&self) -> Option<Instant> {
        match self {
            Self::Process(process) => process.stopper.due(),
            Self::Server(Stay::Until(at)) => Some(*at),
            Self::Server(Stay::Open | Stay::Over) => None,
        }
    }

    /// Begins the end, unless it has begun.
    pub(crate) fn stop(&mut self) -> Next {
        match self {
            Self::Process(process) => process.stopper.begin(&mut process.proc),
            Self::Server(stay @ Stay::Open) => {
                *stay = Stay::Until(Instant::now() + LEAVE_LIMIT);
                return Next::Farewell;
            }
            Self::Server(Stay::Until(_) | Stay::Over) => {}
        }
        Next::Nothing
    }

    /// Begins the end without relying on a process's good will.
    pub(crate) fn stop_with_signals(&mut self) -> Next {
        if let Self::Process(process) = self {
            process.stopper.begin_with_signals(&mut process.proc);
            return Next::Nothing;
        }
        self.stop()
    }

    /// Makes the next step, once it is due.
    pub(crate) fn advance(&mut self) -> Progress {
        match self {
            Self::Process(process) => process.stopper.advance(&mut process.proc),
            Self::Server(stay) => {
                *stay = Stay::Over;
                Progress::Waiting
            }
        }
    }

    /// Ends a process with all that it started, or leaves a server, at once.
    pub(crate) fn end(&mut self) {
        match self {
            Self::Process(process) => process.stopper.kill(&mut process.proc),
            Self::Server(stay) => *stay = Stay::Over,
        }
    }

    /// Leaves a server a little later, so that whoever is on the way finds out why.
    pub(crate) fn linger(&mut self) {
        if let Self::Server(stay @ Stay::Open) = self {
            *stay = Stay::Until(Instant::now() + LEAVE_LIMIT);
        }
    }

    /// Returns the folder of a process that has ended.
    pub(crate) fn into_run_dir(self) -> Option<RunDir> {
        match self {
            Self::Process(process) => Some(process.run_dir),
            Self::Server(_) => None,
        }
    }
}

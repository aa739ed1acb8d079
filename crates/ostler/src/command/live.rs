//! A command that is followed while it runs: its lines as they come, and its end.
//!
//! It is stopped in two steps: it is asked to end, and a while later killed with
//! everything that it started. Whoever does not ask for more lines pauses it.

use std::time::Duration;

use ostler_core::{
    agent::Signal,
    event::Stream,
    proc::{Proc, ProcEvent},
};
use tokio::{
    task::coop,
    time::{self, Instant},
};

use super::{CommandError, End, Launch};

/// How long a command may take to end after it was asked to.
const GRACE: Duration = Duration::from_secs(3);

/// A command that runs. Dropping it ends it with everything that it started.
#[derive(Debug)]
pub(crate) struct Live {
    proc: Proc,
    began: Instant,
    stage: Stage,
    stopped: Option<Stop>,
}

/// How far it is with being stopped.
#[derive(Clone, Copy, Debug)]
enum Stage {
    /// It runs, until then at most.
    Runs(Instant),
    /// It was asked to end, and has until then.
    Asked(Instant),
    Killed,
}

/// Why a command was stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stop {
    /// It took too long.
    Late,
    /// Somebody wanted it.
    Wanted,
}

/// What a command did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Told {
    Line {
        from: Stream,
        bytes: Vec<u8>,
        /// Whether this is only the start of it.
        is_cut: bool,
    },
    /// Nothing of it is left.
    Ended(End),
}

impl Live {
    /// Starts a command, of whose lines no more than `longest` bytes are told.
    pub(crate) fn start(
        launch: Launch<'_>,
        longest: usize,
        limit: Duration,
    ) -> Result<Self, CommandError> {
        let mut proc = launch.start()?;
        proc.bound_lines(longest);
        let began = Instant::now();
        Ok(Self { proc, began, stage: Stage::Runs(began + limit), stopped: None })
    }

    /// Returns for how long it has run.
    pub(crate) fn ran(&self) -> Duration {
        self.began.elapsed()
    }

    /// Returns why it was stopped, if it was: the first reason.
    pub(crate) fn stopped(&self) -> Option<Stop> {
        self.stopped
    }

    /// Returns what it does next. Cancel-safe: both arms are.
    pub(crate) async fn next(&mut self) -> Told {
        loop {
            // One that prints without end must not keep others from working.
            coop::consume_budget().await;
            let due = due(self.stage);
            let event = tokio::select! {
                event = self.proc.next() => event,
                () = until(due) => {
                    self.step(Stop::Late);
                    continue;
                }
            };
            match event {
                ProcEvent::Line { from, bytes, cut } => {
                    return Told::Line { from, bytes, is_cut: cut };
                }
                ProcEvent::StdinClosed => {}
                ProcEvent::Exited { code: Some(code), .. } => return Told::Ended(End::Code(code)),
                ProcEvent::Exited { signal, .. } => {
                    return Told::Ended(End::Signal(signal.unwrap_or(0)));
                }
            }
        }
    }

    /// Sees to its time without reading anything, for whoever waits for something
    /// else meanwhile. Never returns. Cancel-safe.
    pub(crate) async fn mind(&mut self) {
        loop {
            until(due(self.stage)).await;
            self.step(Stop::Late);
        }
    }

    /// Asks it to end, once.
    pub(crate) fn stop(&mut self) {
        if let Stage::Runs(_) = self.stage {
            self.step(Stop::Wanted);
        }
    }

    /// Kills it.
    pub(crate) fn kill(&mut self) {
        self.stopped.get_or_insert(Stop::Wanted);
        self.stage = Stage::Killed;
        self.proc.kill();
    }

    /// Does the next thing about its end.
    fn step(&mut self, why: Stop) {
        self.stopped.get_or_insert(why);
        self.stage = match self.stage {
            Stage::Runs(_) => {
                self.proc.signal(Signal::Term);
                Stage::Asked(Instant::now() + GRACE)
            }
            Stage::Asked(_) | Stage::Killed => {
                self.proc.kill();
                Stage::Killed
            }
        };
    }
}

fn due(stage: Stage) -> Option<Instant> {
    match stage {
        Stage::Runs(until) | Stage::Asked(until) => Some(until),
        Stage::Killed => None,
    }
}

async fn until(due: Option<Instant>) {
    match due {
        Some(due) => time::sleep_until(due).await,
        None => std::future::pending().await,
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use ostler_core::{agent::Stdin, environment::Variables};

    use super::*;

    const LONGEST: usize = 64;
    const PATIENCE: Duration = Duration::from_secs(60);

    fn start(script: &str) -> Live {
        let words = ["sh", "-c", script].map(str::to_owned);
        let env: Variables = [("PATH".into(), "/usr/bin:/bin".into())].into();
        let launch =
            Launch { words: &words, env: &env, cwd: Path::new("/tmp"), stdin: Stdin::Null };
        Live::start(launch, LONGEST, PATIENCE).unwrap()
    }

    async fn to_the_end(live: &mut Live) -> (Vec<(Stream, String, bool)>, End) {
        let mut lines = Vec::new();
        loop {
            match time::timeout(PATIENCE * 2, live.next()).await.unwrap() {
                Told::Line { from, bytes, is_cut } => {
                    lines.push((from, String::from_utf8_lossy(&bytes).into_owned(), is_cut));
                }
                Told::Ended(end) => return (lines, end),
            }
        }
    }

    #[tokio::test]
    async fn lines_come_one_by_one_and_long_ones_are_cut() {
        let mut live = start("pwd; head -c 100 /dev/zero | tr '\\0' x; echo; printf end; exit 4");
        let (lines, end) = to_the_end(&mut live).await;
        let expected = [("/tmp".to_owned(), false), ("x".repeat(64), true), ("end".into(), false)];
        let told: Vec<_> = lines.into_iter().map(|(_, line, is_cut)| (line, is_cut)).collect();
        assert_eq!((told, end), (expected.to_vec(), End::Code(4)));
        assert_eq!(live.stopped(), None);
    }

    #[tokio::test]
    async fn one_that_is_asked_to_end_may_say_goodbye() {
        let mut live = start("trap 'echo bye; exit 9' TERM; echo up; while :; do sleep 0.01; done");
        assert!(matches!(live.next().await, Told::Line { .. }));
        live.stop();
        live.stop();
        let (lines, end) = to_the_end(&mut live).await;
        assert_eq!((lines.last().unwrap().1.as_str(), end), ("bye", End::Code(9)));
        assert_eq!(live.stopped(), Some(Stop::Wanted));
    }

    #[tokio::test]
    async fn one_that_does_not_end_when_asked_is_killed() {
        let mut live = start("trap '' TERM; echo up; while :; do sleep 0.01; done");
        assert!(matches!(live.next().await, Told::Line { .. }));
        live.stage = Stage::Runs(Instant::now());
        let (_, end) = to_the_end(&mut live).await;
        assert_eq!((end, live.stopped()), (End::Signal(9), Some(Stop::Late)));
    }

    #[tokio::test]
    async fn its_time_also_ends_while_nobody_reads() {
        let mut live = start("yes");
        assert!(matches!(live.next().await, Told::Line { .. }));
        live.stage = Stage::Runs(Instant::now());
        let minded = time::timeout(Duration::from_millis(1), live.mind());
        assert!(minded.await.is_err());
        let (_, end) = to_the_end(&mut live).await;
        assert_eq!((end, live.stopped()), (End::Signal(15), Some(Stop::Late)));
    }
}

//! Processes that are kept between turns: the driver and the pool, with an
//! agent that does as it is told.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::wildcard_enum_match_arm,
    reason = "tests fail by panicking, and look at one event among many"
)]

mod parrot;
mod permission;
mod pool;
mod turns;

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use ostler_core::{
    CliAgent, Event, EventBody, Host, HostConfig, Memo, PoolLimits, Turn, TurnReport, TurnRequest,
    agent::AgentSpec, event::Mode, failure::FailureKind, registry::Agent as _,
};
use tokio::time::timeout;

/// Longer than anything here takes on a busy machine.
const LIMIT: Duration = Duration::from_secs(30);

struct Place {
    dir: tempfile::TempDir,
    host: Host,
}

impl Place {
    fn new() -> Self {
        Self::with_limits(PoolLimits::default())
    }

    fn with_limits(pool: PoolLimits) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().display().to_string();
        let environment = [
            ("PATH", "/usr/bin:/bin"),
            ("HOME", path.as_str()),
            ("TMPDIR", path.as_str()),
            ("OSTLER_DATA_DIR", path.as_str()),
        ];
        let environment = environment.into_iter().map(|(k, v)| (k.into(), v.into())).collect();
        let config = HostConfig::from_environment(environment);
        Self { dir, host: Host::new(HostConfig { pool, ..config }) }
    }

    fn agent(&self, spec: &'static AgentSpec) -> CliAgent {
        CliAgent::new(spec, self.host.clone()).with_program("/bin/sh")
    }

    fn request(&self, prompt: &str) -> TurnRequest {
        let mut request = TurnRequest::new(prompt, self.dir.path());
        request.mode = Mode::Warm;
        request
    }

    async fn start(&self, spec: &'static AgentSpec, request: TurnRequest) -> Turn {
        self.agent(spec).start(request).await.unwrap()
    }

    /// Runs a prompt in a new session.
    async fn run(&self, spec: &'static AgentSpec, prompt: &str) -> TurnReport {
        ended(self.start(spec, self.request(prompt)).await).await
    }

    /// Runs a prompt in a session that there is.
    async fn go_on(&self, spec: &'static AgentSpec, memo: &Memo, prompt: &str) -> TurnReport {
        ended(self.start(spec, self.request(prompt).resume(memo.clone())).await).await
    }

    /// Shuts down, and sees that nothing is left.
    async fn close(self) {
        assert!(self.host.shutdown(LIMIT).await, "not everything ended in time");
        let left = ours(self.dir.path());
        assert!(left.is_empty(), "left running: {left:?}");
    }
}

async fn ended(turn: Turn) -> TurnReport {
    timeout(LIMIT, turn.end()).await.expect("the turn ends in time").unwrap()
}

/// Reads events until one fits, and returns it.
async fn until(turn: &mut Turn, mut fits: impl FnMut(&Event) -> bool) -> Event {
    loop {
        let event = timeout(LIMIT, turn.next()).await.expect("an event in time");
        let event = event.expect("the event comes before the end");
        if fits(&event) {
            return event;
        }
    }
}

async fn until_kind(turn: &mut Turn, kind: &str) -> Event {
    until(turn, |event| event.body.kind() == kind).await
}

/// Reads a turn to its end: what kinds of events came, and the report.
async fn rest(mut turn: Turn) -> (Vec<Event>, TurnReport) {
    let mut events = Vec::new();
    loop {
        let event = timeout(LIMIT, turn.next()).await.expect("an event in time").unwrap();
        if let EventBody::Complete(report) = event.body {
            return (events, *report);
        }
        events.push(event);
    }
}

fn text(report: &TurnReport) -> &str {
    report.response_text.as_deref().unwrap_or_default()
}

fn failure(report: &TurnReport) -> FailureKind {
    report.error.as_ref().expect("the turn failed").kind
}

fn memo(report: &TurnReport) -> Memo {
    report.memo.clone().expect("a session came to be")
}

/// Waits until something holds.
async fn eventually(what: &str, mut holds: impl AsyncFnMut() -> bool) {
    // Nobody tells of files and processes: they are looked at.
    let mut looks = tokio::time::interval(Duration::from_millis(5));
    let waiting = async {
        while !holds().await {
            looks.tick().await;
        }
    };
    timeout(LIMIT, waiting).await.unwrap_or_else(|_| panic!("never so: {what}"));
}

/// Returns the processes whose folder for temporary files is below this one.
fn ours(dir: &Path) -> Vec<PathBuf> {
    let wanted = format!("TMPDIR={}", dir.display());
    let processes = std::fs::read_dir("/proc").unwrap().flatten().map(|entry| entry.path());
    processes
        .filter(|path| {
            let variables = std::fs::read(path.join("environ")).unwrap_or_default();
            String::from_utf8_lossy(&variables).split('\0').any(|one| one.starts_with(&wanted))
        })
        .collect()
}

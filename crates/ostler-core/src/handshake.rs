//! Starts an agent that speaks ACP, lets it introduce itself, and ends it: a
//! look at whether it works that needs no model and no login.

use std::{
    ffi::OsString,
    path::{Path, PathBuf},
    time::Duration,
};

use thiserror::Error;
use tokio::time::timeout;

use crate::{
    agent::{AgentSpec, CommandLine, LaunchError, Stdin, StopStep},
    driver::stopper::Stopper,
    event::Stream,
    failure::chain,
    proc::{self, Proc, ProcEvent, Spawn, SpawnError},
    protocol::acp,
};

/// What an agent says about itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Introduction {
    /// Its name for people, where it has one.
    pub name: Option<String>,
    /// Its version.
    pub version: Option<String>,
    /// Whether a session can be gone on with.
    pub can_continue: bool,
    /// What somebody could do to log in.
    pub logins: Vec<String>,
}

/// Why an agent did not introduce itself.
#[derive(Debug, Error)]
pub enum HandshakeError {
    /// It is not one that can.
    #[error("it does not speak ACP")]
    OtherProtocol,
    /// It could not be started.
    #[error("{0}")]
    NotStarted(String),
    /// It did not answer in time.
    #[error("no answer to `initialize` within {0:?}")]
    Silent(Duration),
    /// It ended first.
    #[error("it ended before it answered `initialize`: {0}")]
    Ended(String),
    /// It answered, but will not do.
    #[error("{0}")]
    Refused(String),
}

impl From<SpawnError> for HandshakeError {
    fn from(error: SpawnError) -> Self {
        Self::NotStarted(chain(&error))
    }
}

impl From<LaunchError> for HandshakeError {
    fn from(error: LaunchError) -> Self {
        Self::NotStarted(error.to_string())
    }
}

/// How the process is to be started.
pub(crate) struct Start<'a> {
    pub(crate) spec: &'a AgentSpec,
    pub(crate) program: PathBuf,
    pub(crate) line: CommandLine,
    pub(crate) environment: Vec<(OsString, OsString)>,
    pub(crate) cwd: &'a Path,
}

/// Starts the agent, hears it, and ends it with everything that it started.
pub(crate) async fn run(start: Start<'_>, limit: Duration) -> Result<Introduction, HandshakeError> {
    let mut proc = proc::spawn(Spawn {
        program: &start.program,
        args: &start.line.args,
        env: &start.environment,
        cwd: start.cwd,
        stdin: Stdin::Open,
        stdout: None,
    })?;
    proc.write(&acp::hello());
    let heard = match timeout(limit, hear(&mut proc)).await {
        Ok(heard) => heard,
        Err(_) => Err(HandshakeError::Silent(limit)),
    };
    stop(proc, start.spec.stop).await;
    heard
}

async fn hear(proc: &mut Proc) -> Result<Introduction, HandshakeError> {
    loop {
        match proc.next().await {
            ProcEvent::Line { from: Stream::Stdout, bytes, .. } => {
                if let Some(answer) = acp::introduction(&bytes) {
                    return answer.map_err(HandshakeError::Refused);
                }
            }
            ProcEvent::Line { from: Stream::Stderr, .. } | ProcEvent::StdinClosed => {}
            ProcEvent::Exited { code, signal } => {
                let said = String::from_utf8_lossy(proc.stderr_head()).trim().to_owned();
                let how = match (code, signal) {
                    (_, Some(signal)) => format!("signal {signal}"),
                    (code, None) => format!("exit code {}", code.unwrap_or(-1)),
                };
                let said = said.lines().next().map(|line| format!(": {line}")).unwrap_or_default();
                return Err(HandshakeError::Ended(format!("{how}{said}")));
            }
        }
    }
}

/// Ends the process by its plan; whatever is left is killed when it is dropped.
async fn stop(mut proc: Proc, plan: &'static [StopStep]) {
    let mut stopper = Stopper::new(plan);
    stopper.begin(&mut proc);
    while let Some(due) = stopper.due() {
        tokio::select! {
            event = proc.next() => {
                if matches!(event, ProcEvent::Exited { .. }) {
                    return;
                }
            }
            () = tokio::time::sleep_until(due) => {
                if stopper.advance(&mut proc) == crate::driver::stopper::Progress::Lost {
                    return;
                }
            }
        }
    }
}

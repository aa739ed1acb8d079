//! What a kept process is started from, or a server of somebody else's spoken
//! to with, and which sessions may share it.

use std::{
    ffi::OsString,
    fs, io,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
};

use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::{
    footing::{Footing, Stay},
    pool::{MemberId, News},
    worker::{Command, Parts, Worker},
};
use crate::{
    agent::{
        AgentName, AgentRef, CommandLine, Dialect, LaunchError, Stdin, WarmLaunch, WarmSpec,
        http::ServerAddress,
    },
    failure::chain,
    prepared::{Base, Prepared, not_started},
    proc::{self, Spawn},
    request::Open,
    run_dir::RunDir,
    verdict::Reason,
};

/// How many commands may wait for a worker.
const COMMANDS_AHEAD: usize = 256;

/// The run folder in keys, where all processes have the same.
const NO_FOLDER: &str = "/run";

/// Everything that two sessions must have in common to share a process. There
/// are secrets in it, so it cannot be printed.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Key {
    /// Locks and allowances are an agent's: of two names for one program, each
    /// has a process of its own.
    agent: AgentName,
    on: On,
    cwd: Option<PathBuf>,
    args: Vec<OsString>,
    environment: Vec<(OsString, OsString)>,
    files: Vec<(PathBuf, Vec<u8>)>,
    /// Raw lines are written down. Which turn a line is about is not known, so that
    /// those who want none of it are not among them.
    is_written_down: bool,
}

#[derive(Clone, PartialEq, Eq)]
enum On {
    Program { path: PathBuf, stamp: Stamp },
    Server(ServerAddress),
}

impl Key {
    /// Returns whether this one's program was replaced by the other's.
    pub(crate) fn is_outdated_by(&self, other: &Self) -> bool {
        match (&self.on, &other.on) {
            (On::Program { path, stamp }, On::Program { path: other, stamp: new }) => {
                path == other && stamp != new
            }
            (On::Program { .. } | On::Server(_), _) => false,
        }
    }

    /// Returns whether it is for a server of somebody else's.
    pub(crate) fn is_server(&self) -> bool {
        matches!(self.on, On::Server(_))
    }
}

/// Which file a path led to: another one after an update.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Stamp {
    modified: (i64, i64),
    size: u64,
    inode: u64,
}

impl Stamp {
    fn of(path: &Path) -> io::Result<Self> {
        let meta = fs::metadata(path)?;
        Ok(Self {
            modified: (meta.mtime(), meta.mtime_nsec()),
            size: meta.size(),
            inode: meta.ino(),
        })
    }
}

/// What a kept process is started from.
#[derive(Clone)]
pub(crate) struct Seed {
    pub(crate) prepared: Prepared,
    pub(crate) warm: &'static WarmSpec,
    pub(crate) key: Key,
    /// What could not be done as asked, for the first turn of a session.
    pub(crate) warnings: Vec<String>,
}

/// A process that has just been started, or a server that is being spoken to.
pub(crate) struct Started {
    pub(crate) worker: Worker,
    pub(crate) commands: mpsc::Sender<Command>,
    pub(crate) stop: CancellationToken,
    pub(crate) pid: Option<u32>,
}

impl Seed {
    /// Finds out what a request's process would be, without starting it.
    pub(crate) fn new(prepared: &Prepared, warm: &'static WarmSpec) -> Result<Self, Reason> {
        let path = match &prepared.base {
            Base::Program(path) => path,
            Base::Server(server) => return Ok(Self::at_server(prepared, warm, server)),
        };
        let folder = Path::new(NO_FOLDER);
        let nil = Uuid::nil().to_string();
        let line = line(prepared, warm, &Open::New, &nil, folder).map_err(unusable)?;
        let stamp = Stamp::of(path)
            .map_err(|error| not_started(format!("cannot read {}: {error}", path.display())))?;
        let cwd = prepared.request.options.cwd.clone();
        let key = Key {
            agent: prepared.spec.name.clone(),
            on: On::Program { path: path.clone(), stamp },
            cwd: warm.is_bound_to_directory.then_some(cwd),
            environment: prepared.environment(&line, folder, ""),
            args: line.args,
            files: line.files.into_iter().chain(line.home_files).collect(),
            is_written_down: prepared.request.transcript.is_some(),
        };
        Ok(Self { prepared: prepared.clone(), warm, key, warnings: line.warnings })
    }

    /// What is said with each session and prompt need not be in common.
    fn at_server(prepared: &Prepared, warm: &'static WarmSpec, server: &ServerAddress) -> Self {
        let key = Key {
            agent: prepared.spec.name.clone(),
            on: On::Server(server.clone()),
            cwd: None,
            args: Vec::new(),
            environment: Vec::new(),
            files: Vec::new(),
            is_written_down: prepared.request.transcript.is_some(),
        };
        Self { prepared: prepared.clone(), warm, key, warnings: Vec::new() }
    }

    /// Returns whose process it is.
    pub(crate) fn spec(&self) -> &AgentRef {
        &self.prepared.spec
    }

    /// Starts a process, for a session that exists or for any new one, or begins
    /// to speak with a server.
    pub(crate) fn start(
        &self,
        member: MemberId,
        open: &Open,
        news: mpsc::UnboundedSender<News>,
    ) -> Result<Started, Reason> {
        let Self { prepared, warm, .. } = self;
        let host = &prepared.host;
        let (footing, dialect) = match &prepared.base {
            Base::Program(program) => self.spawn(program, open)?,
            Base::Server(server) => {
                let attach = warm.attach.as_ref().ok_or_else(no_server)?;
                (Footing::Server(Stay::Open), (attach.dialect)(server))
            }
        };
        let (commands, orders) = mpsc::channel(COMMANDS_AHEAD);
        let stop = CancellationToken::new();
        let pid = footing.pid();
        let worker = Worker::new(Parts {
            member,
            agent: prepared.spec.name.clone(),
            is_shared: warm.sessions_per_process > 1,
            can_steer: warm.supports_steering,
            footing,
            dialect,
            memos: host.memos(),
            allowances: host.allowances().clone(),
            commands: orders,
            stop: stop.clone(),
            news,
            tasks: host.tasks().clone(),
        });
        Ok(Started { worker, commands, stop, pid })
    }

    fn spawn(&self, program: &Path, open: &Open) -> Result<(Footing, Box<dyn Dialect>), Reason> {
        let Self { prepared, warm, .. } = self;
        let host = &prepared.host;
        let run_dir = RunDir::create(host.run_root()).map_err(|error| {
            let root = host.run_root().display();
            not_started(format!("could not make a folder for the agent in {root}: {error}"))
        })?;
        let new_id = Uuid::new_v4().to_string();
        let line = line(prepared, warm, open, &new_id, run_dir.path()).map_err(unusable)?;
        prepared.write_files(&line).map_err(not_started)?;
        let mark = format!("wrm_{}", Uuid::now_v7().simple());
        let environment = prepared.environment(&line, run_dir.path(), &mark);
        let cwd = if warm.is_bound_to_directory {
            prepared.request.options.cwd.as_path()
        } else {
            run_dir.path()
        };
        let proc = proc::spawn(Spawn {
            program,
            args: &line.args,
            env: &environment,
            cwd,
            stdin: Stdin::Open,
            stdout: None,
        })
        .map_err(|error| not_started(chain(&error)))?;
        let dialect = (warm.dialect)(&WarmLaunch {
            spec: &prepared.spec,
            options: &prepared.request.options,
            open,
            new_id: &new_id,
            version: prepared.version.as_deref(),
            variables: &environment,
            run_dir: run_dir.path(),
        });
        Ok((Footing::process(proc, run_dir, warm.stop), dialect))
    }
}

/// Makes the command line of a process.
pub(super) fn line(
    prepared: &Prepared,
    warm: &WarmSpec,
    open: &Open,
    new_id: &str,
    run_dir: &Path,
) -> Result<CommandLine, LaunchError> {
    let variables = prepared.environment(&CommandLine::default(), run_dir, "");
    (warm.launch)(&WarmLaunch {
        spec: &prepared.spec,
        options: &prepared.request.options,
        open,
        new_id,
        version: prepared.version.as_deref(),
        variables: &variables,
        run_dir,
    })
}

fn no_server() -> Reason {
    not_started("this agent cannot be a server of somebody else's".to_owned())
}

fn unusable(error: LaunchError) -> Reason {
    not_started(error.to_string())
}

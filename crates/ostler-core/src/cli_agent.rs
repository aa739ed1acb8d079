//! An agent that is a program on this machine, or a server that somebody runs.
//!
//! Checks a request and finds the program; what happens then is in `one_shot`
//! and `warm`.

use std::{
    ffi::{OsStr, OsString},
    fmt, fs, io,
    path::{Path, PathBuf},
    time::Duration,
};

use thiserror::Error;
use tokio::{sync::mpsc, time::Instant};

use crate::{
    agent::{
        AgentName, AgentRef, AttachSpec, Caps, CommandLine, Custom, LaunchError,
        command_line::{warn_if, warn_if_asking},
        http::{HttpReply, ServerAddress, ServerError},
    },
    binary::{self, BinaryError},
    event::Mode,
    failure::{Failure, FailureKind, chain},
    handshake::{self, HandshakeError, Introduction, Start},
    host::Host,
    outbox::Outbox,
    prepared::{Base, InFlight, Prepared, Session},
    proc::SpawnError,
    registry::{Agent, BoxFuture, Unusable},
    request::{self, Open, Permissions, RequestError, TurnRequest},
    run_dir::RunDir,
    template,
    transcript::Transcript,
    turn::{Control, EVENTS_AHEAD, Turn},
    version::{self, Found, Health},
    warm::wire,
};

/// How long a server that somebody else runs may take to say that it is well.
const SERVER_LIMIT: Duration = Duration::from_secs(2);

/// Why a turn could not be started at all.
#[derive(Debug, Error)]
pub enum StartError {
    /// The request is wrong.
    #[error(transparent)]
    Request(#[from] RequestError),
    /// The program cannot be run.
    #[error(transparent)]
    Binary(#[from] BinaryError),
    /// The server cannot be used.
    #[error(transparent)]
    Server(#[from] ServerError),
    /// The command line cannot be made.
    #[error(transparent)]
    Launch(#[from] LaunchError),
    /// The transcript cannot be written.
    #[error("could not create the transcript {path:?}")]
    Transcript {
        /// Where it should go.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// The host is shutting down.
    #[error("shutting down")]
    ShuttingDown,
}

impl StartError {
    /// Returns it as the failure of the turn that could not be started.
    #[must_use]
    pub fn failure(&self) -> Failure {
        let kind = match self {
            Self::Binary(_) => FailureKind::SpawnFailed,
            Self::Server(error) => error.kind,
            Self::Request(_) | Self::Launch(_) | Self::Transcript { .. } => {
                FailureKind::InvalidRequest
            }
            Self::ShuttingDown => FailureKind::Cancelled,
        };
        Failure::new(kind, chain(self))
    }
}

/// An agent that is only ever a program of its own.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("{agent} cannot be a server of somebody else's")]
pub struct NotAttachable {
    /// Which.
    pub agent: AgentName,
}

/// What would be done: the answer to `--dry-run`.
#[derive(Debug)]
pub enum Plan {
    /// A process would be started.
    Process(ProcessPlan),
    /// A server that somebody else runs would be called.
    Server {
        /// Where it is, and as whom it would be called.
        server: ServerAddress,
        /// What it would be asked.
        prompt: String,
        /// What could not be done as asked.
        warnings: Vec<String>,
    },
}

impl Plan {
    /// Returns the process that would be started, if one would.
    #[must_use]
    pub fn process(self) -> Option<ProcessPlan> {
        match self {
            Self::Process(process) => Some(process),
            Self::Server { .. } => None,
        }
    }
}

/// The process of a turn.
pub struct ProcessPlan {
    /// The program.
    pub program: PathBuf,
    /// The command line, for a run folder that is not made yet.
    pub line: CommandLine,
    /// The whole environment.
    pub environment: Vec<(OsString, OsString)>,
}

impl fmt::Debug for ProcessPlan {
    /// Leaves the environment out: there are secrets in it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ProcessPlan").field("program", &self.program).finish_non_exhaustive()
    }
}

/// An agent that is a program on this machine, unless it is attached to a server.
#[derive(Clone, Debug)]
pub struct CliAgent {
    spec: AgentRef,
    host: Host,
    program: Option<PathBuf>,
    server: Option<ServerAddress>,
    unasked: Option<mpsc::Sender<Turn>>,
}

impl CliAgent {
    /// Makes an agent that is found in PATH.
    #[must_use]
    pub fn new(spec: impl Into<AgentRef>, host: Host) -> Self {
        Self { spec: spec.into(), host, program: None, server: None, unasked: None }
    }

    /// Uses this program instead.
    #[must_use]
    pub fn with_program(mut self, program: impl Into<PathBuf>) -> Self {
        self.program = Some(program.into());
        self
    }

    /// Speaks with a server that somebody else runs, instead of starting any
    /// process. Every turn then goes there, and counts as warm.
    ///
    /// What the server keeps is its own: it is never stopped, and what its
    /// operator set counts. What a turn may do is said with its session.
    ///
    /// # Errors
    /// When this agent has no such server.
    pub fn attached_to(mut self, server: ServerAddress) -> Result<Self, NotAttachable> {
        if self.attach_spec().is_none() {
            return Err(NotAttachable { agent: self.spec.name.clone() });
        }
        self.server = Some(server);
        Ok(self)
    }

    /// Returns the server that the agent is attached to.
    #[must_use]
    pub fn server(&self) -> Option<&ServerAddress> {
        self.server.as_ref()
    }

    /// Asks the server that the agent is attached to whether it is well; `None`
    /// if it is not attached to any.
    pub async fn ask_server(&self, limit: Duration) -> Option<Result<Health, ServerError>> {
        let server = self.server.as_ref()?;
        let attach = self.attach_spec()?;
        let began = Instant::now();
        let reply = wire::ask_once((attach.health)(server, limit)).await;
        let latency = began.elapsed();
        let reply = match &reply {
            Ok((status, body)) => Ok(HttpReply { status: *status, body }),
            Err(why) => Err(why.as_str()),
        };
        Some((attach.judge)(server, reply).map(|version| {
            server.remember_version(&version);
            let version = Some(version).filter(|version| !version.is_empty());
            let warning = match &version {
                None => Some("the server does not tell its version".to_owned()),
                Some(version) if self.spec.tested_versions.contains(&version.as_str()) => None,
                Some(version) => {
                    let tested = self.spec.tested_versions.join(", ");
                    Some(format!("version {version} was not tested with this; {tested} was"))
                }
            };
            Health { at: Found::Server { url: server.url().to_owned(), latency }, version, warning }
        }))
    }

    fn attach_spec(&self) -> Option<&'static AttachSpec> {
        self.spec.warm?.attach.as_ref()
    }

    /// Hands over the turns that the agent begins by itself, for instance when
    /// work in the background has ended. Without this they are read to their
    /// end and forgotten. Only processes that are kept begin such turns.
    #[must_use]
    pub fn with_unasked(mut self, turns: mpsc::Sender<Turn>) -> Self {
        self.unasked = Some(turns);
        self
    }

    /// Returns the facts about the agent.
    #[must_use]
    pub fn spec(&self) -> &AgentRef {
        &self.spec
    }

    /// Cancels what runs in a session; returns how many turns that were.
    pub fn cancel_session(&self, session_id: &str) -> usize {
        self.host.running().cancel(&self.spec.name, session_id)
    }

    /// Finds the agent's program.
    ///
    /// # Errors
    /// When there is none that can be run.
    pub fn find(&self) -> Result<PathBuf, BinaryError> {
        let path = self.host.environment().get(OsStr::new("PATH"));
        binary::find(&self.spec, self.program.as_deref(), path.map(OsString::as_os_str))
    }

    /// Returns the agent's version as far as it is known from before: nothing is
    /// started or asked.
    #[must_use]
    pub fn known_version(&self) -> Option<String> {
        match &self.server {
            Some(server) => server.version(),
            None => version::cached(self.host.data_dir(), &self.find().ok()?),
        }
    }

    /// Returns the host that it runs in.
    #[must_use]
    pub fn host(&self) -> &Host {
        &self.host
    }

    /// Says what a request would run, without running it.
    ///
    /// # Errors
    /// When it could not be run.
    pub fn plan(&self, request: &TurnRequest) -> Result<Plan, StartError> {
        let run_dir = self.example_run_dir();
        let ready = self.prepare(request.clone())?;
        if let Base::Server(server) = &ready.base {
            let (prompt, warnings) = (ready.prompt(), ready.notes().collect());
            return Ok(Plan::Server { server: server.clone(), prompt, warnings });
        }
        let line = match (ready.request.mode, self.spec.warm) {
            (Mode::Warm, Some(warm)) => ready.warm_line(warm, &run_dir)?,
            (Mode::Warm, None) | (Mode::OneShot, _) => ready.line(&run_dir)?,
        };
        let environment = ready.environment(&line, &run_dir, "trn_…");
        Ok(Plan::Process(ProcessPlan { program: ready.program_of(&line), line, environment }))
    }

    /// Starts an agent that speaks ACP, lets it say who it is, and ends it. No
    /// model is asked, and no session begins.
    ///
    /// # Errors
    /// When it cannot be run, or does not introduce itself in time.
    pub async fn handshake(
        &self,
        request: &TurnRequest,
        limit: Duration,
    ) -> Result<Introduction, HandshakeError> {
        let Some(warm) = self.spec.warm.filter(|_| self.spec.custom.is_some()) else {
            return Err(HandshakeError::OtherProtocol);
        };
        let not_started = |why: String| HandshakeError::NotStarted(why);
        let ready = self.prepare(request.clone()).map_err(|error| not_started(chain(&error)))?;
        let run_dir =
            RunDir::create(self.host.run_root()).map_err(|error| not_started(error.to_string()))?;
        let line = ready.warm_line(warm, run_dir.path())?;
        ready.write_files(&line).map_err(not_started)?;
        let environment = ready.environment(&line, run_dir.path(), "trn_handshake");
        let start = Start {
            spec: &self.spec,
            program: ready.program_of(&line),
            line,
            environment,
            cwd: &ready.request.options.cwd,
        };
        handshake::run(start, limit).await
    }

    /// Returns a path like that of a run folder, for a line that is only looked at.
    fn example_run_dir(&self) -> PathBuf {
        self.host.run_root().join("ostler-run")
    }

    fn prepare(&self, mut request: TurnRequest) -> Result<Prepared, StartError> {
        request::validate(&request)?;
        self.check_length(&request.prompt)?;
        if let Open::Resume(memo) = &request.open {
            (self.spec.check_session)(&memo.id)?;
            if self.spec.name != *memo.agent {
                return Err(StartError::Request(RequestError::ForeignSession {
                    id: memo.id.clone(),
                    owner: memo.agent.clone(),
                    agent: self.spec.name.to_string(),
                }));
            }
            if request.options.home.is_none() && self.server.is_none() {
                request.options.home.clone_from(&memo.home);
            }
        }
        // What an agent trusts it knows by the real path, not by a link to it.
        if let Ok(real) = fs::canonicalize(&request.options.cwd) {
            request.options.cwd = real;
        }
        if let (Some(template), Open::New) = (&mut request.options.template, &request.open) {
            let id = || uuid::Uuid::new_v4().to_string();
            template.variables.entry("SessionId".to_owned()).or_insert_with(id);
        }
        if let Some(server) = &self.server {
            return Ok(self.at_server(server, request));
        }
        let named = request.options.template.as_ref().and_then(|template| template.command.first());
        let another = named.filter(|word| !template::is_agent(&self.spec.program, word));
        let is_another = another.is_some();
        let program = match another {
            // It does not need the agent's own to be there.
            Some(word) => PathBuf::from(word),
            None => self.find()?,
        };
        // What a command of the operator's own would say is not remembered.
        let version = match &self.spec.custom {
            Some(_) => None,
            None => version::cached(self.host.data_dir(), &program),
        };
        let mut warnings = self.fall_back(&mut request);
        warn_if(
            &mut warnings,
            is_another && request.options.system_prompt.is_some(),
            "the command line is not the agent's own: its program does not get the system prompt",
        );
        Ok(Prepared {
            spec: self.spec.clone(),
            host: self.host.clone(),
            base: Base::Program(program),
            version,
            request,
            warnings,
            unasked: self.unasked.clone(),
        })
    }

    /// Makes a turn at the server of it, whatever the mode that was asked for.
    fn at_server(&self, server: &ServerAddress, mut request: TurnRequest) -> Prepared {
        let mut warnings = Vec::new();
        if let Some(program) = &self.program {
            let (program, url) = (program.display(), server.url());
            warnings.push(format!("{program} is not run: turns go to the server at {url}"));
        }
        if request.mode == Mode::OneShot {
            // Whoever wants one turn in one process does not wait to be asked.
            warn_if_asking(&mut warnings, &request.options);
            if request.options.permissions == Permissions::Ask {
                request.options.permissions = Permissions::ReadOnly;
            }
            request.mode = Mode::Warm;
        }
        if let Some(attach) = self.attach_spec() {
            warnings.extend((attach.warnings)(&request.options));
        }
        // Its sessions are not kept in a home of ours.
        request.options.home = None;
        Prepared {
            spec: self.spec.clone(),
            host: self.host.clone(),
            base: Base::Server(server.clone()),
            version: server.version(),
            request,
            warnings,
            unasked: self.unasked.clone(),
        }
    }

    /// Runs the turn in a process of its own where none can be kept for it.
    fn fall_back(&self, request: &mut TurnRequest) -> Vec<String> {
        let why = match (request.mode, self.spec.warm, &request.options.template) {
            (Mode::OneShot, ..) | (Mode::Warm, Some(_), None) => return Vec::new(),
            (Mode::Warm, Some(_), Some(_)) => "a command line of your own runs once",
            (Mode::Warm, None, _) => "this agent cannot be kept running",
        };
        request.mode = Mode::OneShot;
        vec![format!("{why}; using one process for this turn")]
    }

    /// Asks for the version beside the turn, for the next one to know. A program
    /// that the operator named may be anything, and is not started twice.
    fn learn_version(&self, ready: &Prepared) {
        let Base::Program(program) = &ready.base else { return };
        if ready.version.is_none() && self.program.is_none() && self.spec.custom.is_none() {
            let (host, program) = (self.host.clone(), program.clone());
            self.host.tasks().spawn(async move {
                let read = version::read(&host, program);
                host.shutdown_token().run_until_cancelled(read).await
            });
        }
    }

    /// Asks for the version as the operator says; without a command nobody is
    /// asked, for a program that is not known may do anything.
    async fn read_version(&self, custom: &Custom, program: PathBuf) -> Result<Health, SpawnError> {
        let Some((word, args)) = custom.version.as_ref().and_then(|words| words.split_first())
        else {
            return Ok(Health { at: Found::Program(program), version: None, warning: None });
        };
        let named = Path::new(word);
        let path = self.host.environment().get(OsStr::new("PATH"));
        let is_bare = named.components().count() == 1 && !named.is_absolute();
        let found = if is_bare { binary::search(named, path.map(AsRef::as_ref)) } else { None };
        let asked = found.unwrap_or_else(|| named.to_owned());
        let args: Vec<OsString> = args.iter().map(OsString::from).collect();
        match version::read_by(&self.host, program.clone(), &asked, &args).await {
            // That the version is not known does not keep it from running.
            Err(error) => {
                let warning = format!("its version could not be read: {}", chain(&error));
                Ok(Health { at: Found::Program(program), version: None, warning: Some(warning) })
            }
            read => read,
        }
    }

    fn check_length(&self, prompt: &str) -> Result<(), RequestError> {
        let limit = self.spec.caps.max_prompt_length;
        // Bytes are cheap to count, and there are never fewer of them than characters.
        if limit == 0 || prompt.len() <= limit {
            return Ok(());
        }
        let length = prompt.chars().count();
        if length <= limit {
            return Ok(());
        }
        Err(RequestError::PromptTooLong { length, limit, agent: self.spec.name.to_string() })
    }
}

impl Agent for CliAgent {
    fn name(&self) -> &AgentName {
        &self.spec.name
    }

    fn caps(&self) -> &Caps {
        &self.spec.caps
    }

    fn validate(&self) -> BoxFuture<'_, Result<Health, Unusable>> {
        Box::pin(async move {
            if let Some(answer) = self.ask_server(SERVER_LIMIT).await {
                return Ok(answer?);
            }
            let program = self.find()?;
            let read = match &self.spec.custom {
                None => version::read(&self.host, program.clone()).await,
                Some(custom) => self.read_version(custom, program.clone()).await,
            };
            Ok(read.map_err(|error| {
                let why = format!("cannot be executed: {}", chain(&error));
                BinaryError::NotRunnable { agent: self.spec.name.clone(), path: program, why }
            })?)
        })
    }

    fn start(&self, request: TurnRequest) -> BoxFuture<'_, Result<Turn, StartError>> {
        Box::pin(async move {
            if self.host.shutdown_token().is_cancelled() {
                return Err(StartError::ShuttingDown);
            }
            let ready = self.prepare(request)?;
            // The line is made again once the real run folder is there; a
            // template that cannot be used is the caller's mistake and told now.
            if ready.request.mode == Mode::OneShot {
                ready.line(&self.example_run_dir())?;
            }
            let transcript = match &ready.request.transcript {
                None => None,
                Some(path) => Some(
                    Transcript::create(path)
                        .map_err(|source| StartError::Transcript { path: path.clone(), source })?,
                ),
            };
            self.learn_version(&ready);
            let id = ready.request.turn.clone().unwrap_or_default();
            let (control, says) = Control::under(self.host.shutdown_token());
            let (sender, events) = mpsc::channel(EVENTS_AHEAD);
            let outbox = Outbox::new(id.clone(), sender);
            self.host.running().add(&id, &self.spec.name, ready.request.open.memo(), &control);
            let turn = InFlight {
                id: id.clone(),
                started: Instant::now(),
                outbox,
                control: control.clone(),
                says,
                transcript,
                session: Session::default(),
            };
            self.host.tasks().spawn(ready.run(turn));
            Ok(Turn::new(id, events, control))
        })
    }
}

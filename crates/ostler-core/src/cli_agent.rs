//! An agent that is a program on this machine: one process per turn.
//!
//! Puts the parts together: the request is checked, the program found, the
//! session locked, the command line made, the process driven, and the three
//! witnesses of its end heard.

use std::{
    ffi::OsString,
    fs,
    io::{self, Write},
    path::{Path, PathBuf},
    time::Duration,
};

use jiff::Timestamp;
use thiserror::Error;
use tokio::{
    sync::mpsc,
    time::{Instant, timeout_at},
};

use crate::{
    agent::{AgentName, AgentSpec, Caps, CommandLine, Launch, LaunchError, Stdout, TurnEnd},
    binary::{self, BinaryError},
    driver::{Drive, Limits, Transcript},
    environment::ChildEnvironment,
    event::{EventBody, Mode, Started, Status, Trigger, TurnId, TurnReport},
    failure::{Failure, FailureKind},
    host::Host,
    identity,
    lock::SessionLock,
    memo::Memo,
    outbox::Outbox,
    proc::{self, Spawn},
    registry::{Agent, BoxFuture},
    request::{
        self, Format, Open, Options, Permissions, ProjectSettings, RequestError, TurnRequest,
    },
    run_dir::RunDir,
    turn::{Control, EVENTS_AHEAD, Turn},
    verdict::{Evidence, Reason, verdict},
    version::{self, Health},
};

/// The longest answer that is kept whole.
const MAX_RESPONSE_BYTES: usize = 16 * 1024 * 1024;

/// Why a turn could not be started at all.
#[derive(Debug, Error)]
pub enum StartError {
    /// The request is wrong.
    #[error(transparent)]
    Request(#[from] RequestError),
    /// The program cannot be run.
    #[error(transparent)]
    Binary(#[from] BinaryError),
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

/// What would be run: the answer to `--dry-run`.
#[derive(Debug)]
pub struct Plan {
    /// The program.
    pub program: PathBuf,
    /// The command line, for a run folder that is not made yet.
    pub line: CommandLine,
    /// The whole environment.
    pub environment: Vec<(OsString, OsString)>,
}

/// An agent that is a program on this machine.
#[derive(Clone, Debug)]
pub struct CliAgent {
    spec: &'static AgentSpec,
    name: AgentName,
    host: Host,
    program: Option<PathBuf>,
}

impl CliAgent {
    /// Makes an agent that is found in PATH.
    #[must_use]
    pub fn new(spec: &'static AgentSpec, host: Host) -> Self {
        Self { spec, name: AgentName::new(spec.name), host, program: None }
    }

    /// Uses this program instead.
    #[must_use]
    pub fn with_program(mut self, program: impl Into<PathBuf>) -> Self {
        self.program = Some(program.into());
        self
    }

    /// Returns the facts about the agent.
    #[must_use]
    pub fn spec(&self) -> &'static AgentSpec {
        self.spec
    }

    /// Finds the agent's program.
    ///
    /// # Errors
    /// When there is none that can be run.
    pub fn find(&self) -> Result<PathBuf, BinaryError> {
        let path = self.host.environment().get(std::ffi::OsStr::new("PATH"));
        binary::find(self.spec, self.program.as_deref(), path.map(OsString::as_os_str))
    }

    /// Says what a request would run, without running it.
    ///
    /// # Errors
    /// When it could not be run.
    pub fn plan(&self, request: &TurnRequest) -> Result<Plan, StartError> {
        let run_dir = self.example_run_dir();
        let ready = self.prepare(request.clone())?;
        let line = (self.spec.launch)(&ready.launch(&run_dir))?;
        let environment = ready.environment(&line, &run_dir, "trn_…");
        Ok(Plan { program: ready.program_of(&line), line, environment })
    }

    /// Returns a path like that of a run folder, for a line that is only looked at.
    fn example_run_dir(&self) -> PathBuf {
        self.host.run_root().join("ostler-run")
    }

    fn prepare(&self, mut request: TurnRequest) -> Result<Ready, StartError> {
        request::validate(&request)?;
        let limit = self.spec.caps.max_prompt_length;
        if limit > 0 && request.prompt.len() > limit {
            let length = request.prompt.chars().count();
            if length > limit {
                let agent = self.spec.name.to_owned();
                return Err(RequestError::PromptTooLong { length, limit, agent }.into());
            }
        }
        if let Open::Resume(memo) = &request.open {
            (self.spec.check_session)(&memo.id)?;
            if memo.agent != self.spec.name {
                return Err(StartError::Request(RequestError::ForeignSession {
                    id: memo.id.clone(),
                    owner: memo.agent.clone(),
                    agent: self.spec.name.to_owned(),
                }));
            }
            if request.options.home.is_none() {
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
        let program = self.find()?;
        let version = version::cached(self.host.data_dir(), &program);
        let prompt = identity::apply(
            self.spec.identity,
            &request.options.identity,
            request.open.memo(),
            &request.prompt,
        );
        Ok(Ready { spec: self.spec, host: self.host.clone(), program, version, prompt, request })
    }
}

impl Agent for CliAgent {
    fn name(&self) -> &AgentName {
        &self.name
    }

    fn caps(&self) -> &Caps {
        &self.spec.caps
    }

    fn validate(&self) -> BoxFuture<'_, Result<Health, BinaryError>> {
        Box::pin(async move {
            let program = self.find()?;
            Ok(version::read(&self.host, program).await)
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
            (self.spec.launch)(&ready.launch(&self.example_run_dir()))?;
            let transcript = match &ready.request.transcript {
                None => None,
                Some(path) => Some(
                    Transcript::create(path)
                        .map_err(|source| StartError::Transcript { path: path.clone(), source })?,
                ),
            };
            let id = TurnId::new();
            let control = Control::under(self.host.shutdown_token());
            let (sender, events) = mpsc::channel(EVENTS_AHEAD);
            let outbox = Outbox::new(id.clone(), sender);
            let task = ready.run(id.clone(), outbox, control.clone(), transcript);
            self.host.tasks().spawn(task);
            Ok(Turn::new(id, events, control))
        })
    }
}

/// A request that can be run: all that is known before the first side effect.
struct Ready {
    spec: &'static AgentSpec,
    host: Host,
    program: PathBuf,
    version: Option<String>,
    prompt: String,
    request: TurnRequest,
}

/// What is known of the session while the turn runs.
struct Session {
    memo: Option<Memo>,
    lock: Option<SessionLock>,
}

impl Ready {
    fn launch<'a>(&'a self, run_dir: &'a Path) -> Launch<'a> {
        let memo = self.request.open.memo();
        Launch {
            mode: Mode::OneShot,
            options: &self.request.options,
            open: &self.request.open,
            prompt: &self.prompt,
            version: self.version.as_deref().or(memo.and_then(|memo| memo.version.as_deref())),
            run_dir,
        }
    }

    fn program_of(&self, line: &CommandLine) -> PathBuf {
        line.program.as_ref().map_or_else(|| self.program.clone(), PathBuf::from)
    }

    fn environment(
        &self,
        line: &CommandLine,
        run_dir: &Path,
        mark: &str,
    ) -> Vec<(OsString, OsString)> {
        let environment = ChildEnvironment {
            inherited: self.host.environment(),
            spec: self.spec,
            home: self.request.options.home.as_deref(),
            run_dir,
            mark,
            line: &line.env,
            named: &self.request.options.env,
        };
        environment.build()
    }

    /// Runs the turn to its end, whatever happens, and says so exactly once.
    async fn run(
        self,
        id: TurnId,
        mut outbox: Outbox,
        control: Control,
        transcript: Option<Transcript>,
    ) {
        let started = Instant::now();
        let mut session = Session { memo: None, lock: None };
        let mut evidence =
            match self.attempt(started, &id, &mut outbox, &control, transcript, &mut session).await
            {
                Ok(evidence) => evidence,
                Err(reason) => Evidence { reason: Some(reason), ..Evidence::default() },
            };
        let exit_code = evidence.exit.as_ref().map(crate::agent::Exit::number);
        let end = verdict(self.spec.title, &mut evidence);
        let report = self.report(started, exit_code, end, session.memo.take());
        if let Some(failure) = &report.error {
            outbox.push(None, EventBody::Error(failure.clone()));
        }
        // The session is free before anybody can learn that the turn is over.
        drop(session);
        outbox.push(None, EventBody::Complete(Box::new(report)));
        outbox.deliver().await;
    }

    async fn attempt(
        &self,
        started: Instant,
        id: &TurnId,
        outbox: &mut Outbox,
        control: &Control,
        mut transcript: Option<Transcript>,
        session: &mut Session,
    ) -> Result<Evidence, Reason> {
        let deadline = started + self.request.timeout;
        session.lock = self.lock_session(outbox, control, deadline).await?;
        let run_dir = RunDir::create(self.host.run_root()).map_err(|error| {
            let root = self.host.run_root().display();
            not_started(format!("could not make a folder for the turn in {root}: {error}"))
        })?;
        let launch = self.launch(run_dir.path());
        let line = (self.spec.launch)(&launch).map_err(|error| not_started(error.to_string()))?;
        self.write_files(&line).map_err(not_started)?;
        let environment = self.environment(&line, run_dir.path(), id.as_str());
        let program = self.program_of(&line);
        if let Some(transcript) = &mut transcript {
            let argv: Vec<_> = std::iter::once(program.as_os_str())
                .chain(line.args.iter().map(OsString::as_os_str))
                .map(|word| word.to_string_lossy())
                .collect();
            transcript.write("argv", &serde_json::json!(argv));
        }
        let stdout = match line.stdout {
            Stdout::Pipe => None,
            Stdout::File => Some(run_dir.path().join("stdout")),
        };
        let proc = proc::spawn(Spawn {
            program: &program,
            args: &line.args,
            env: &environment,
            cwd: &self.request.options.cwd,
            stdin: line.stdin.clone(),
            stdout: stdout.as_deref(),
        })
        .map_err(|error| not_started(error.to_string()))?;
        outbox.push(None, EventBody::Started(self.started()));
        for text in line.warnings.into_iter().chain(self.unread_project_files()) {
            outbox.push(None, EventBody::Status(Status::Warning { text }));
        }
        let drive = Drive {
            proc,
            dialect: (self.spec.dialect)(&launch),
            stop_plan: self.spec.stop,
            outbox,
            control,
            limits: Limits {
                deadline,
                timeout: self.request.timeout,
                idle: self.request.idle_timeout,
            },
            transcript,
            opened: &mut |id| self.session_opened(id, session),
        };
        let evidence = drive.run().await;
        // Removing a folder that a CLI filled can take a while; the turn is over before.
        self.host.tasks().spawn_blocking(move || drop(run_dir));
        Ok(evidence)
    }

    /// Waits for the session to be free. A new one cannot be in use.
    async fn lock_session(
        &self,
        outbox: &mut Outbox,
        control: &Control,
        deadline: Instant,
    ) -> Result<Option<SessionLock>, Reason> {
        let Some(memo) = self.request.open.memo() else {
            return Ok(None);
        };
        let path = self.host.memos().path(self.spec.name, &memo.id, "lock");
        let fail = |error: io::Error| {
            let text = format!("could not lock session {} by {}: {error}", memo.id, path.display());
            Reason::NotStarted(Failure::new(FailureKind::Internal, text))
        };
        if let Some(lock) = SessionLock::try_take(&path).map_err(fail)? {
            return Ok(Some(lock));
        }
        let text = "another turn of this session is running; waiting for its end".to_owned();
        outbox.push(None, EventBody::Status(Status::Queued { text }));
        let waiting = timeout_at(deadline, SessionLock::take(path.clone()));
        tokio::select! {
            biased;
            () = control.cancel.cancelled() => Err(Reason::Cancelled),
            () = control.kill.cancelled() => Err(Reason::Cancelled),
            lock = waiting => match lock {
                Ok(lock) => lock.map(Some).map_err(fail),
                Err(_) => Err(Reason::NotStarted(Failure::new(
                    FailureKind::SessionBusy,
                    format!("session {} was in use for {:?}", memo.id, self.request.timeout),
                ))),
            },
        }
    }

    /// Tells which files of the directory the agent does not read, because nobody trusted it.
    fn unread_project_files(&self) -> Option<String> {
        let options = &self.request.options;
        if options.project_settings == ProjectSettings::Trusted || is_literal(options) {
            return None;
        }
        let files = self.spec.project_files.iter();
        let there: Vec<_> = files.filter(|file| options.cwd.join(file).exists()).copied().collect();
        (!there.is_empty()).then(|| {
            format!("not read, because the directory is not trusted: {}", there.join(", "))
        })
    }

    fn write_files(&self, line: &CommandLine) -> Result<(), String> {
        if let Some(home) = &self.request.options.home {
            fs::create_dir_all(home)
                .map_err(|error| format!("could not make the home {}: {error}", home.display()))?;
            for (path, content) in &line.home_files {
                let path = home.join(path);
                write_once(&path, content)
                    .map_err(|error| format!("could not write {}: {error}", path.display()))?;
            }
        }
        for (path, content) in &line.files {
            fs::write(path, content)
                .map_err(|error| format!("could not write {}: {error}", path.display()))?;
        }
        Ok(())
    }

    fn started(&self) -> Started {
        let memo = self.request.open.memo();
        Started {
            agent: AgentName::new(self.spec.name),
            version: self.version.clone(),
            mode: Mode::OneShot,
            session_id: memo.map(|memo| memo.id.clone()),
            model: self.request.options.model.clone(),
            cwd: self.request.options.cwd.clone(),
            resumed: memo.is_some(),
            attempt: self.request.attempt,
            trigger: Trigger::Prompt,
        }
    }

    /// Notes the agent's id, and takes the lock of a session that has just come to be.
    fn session_opened(&self, id: &str, session: &mut Session) {
        let known = self.request.open.memo().filter(|memo| memo.id == id);
        let mut memo = known.cloned().unwrap_or_else(|| Memo::of_id(self.spec.name, id));
        memo.created_at = memo.created_at.or_else(|| Some(Timestamp::now()));
        memo.cwd = Some(self.request.options.cwd.clone());
        memo.home.clone_from(&self.request.options.home);
        session.memo = Some(memo);
        if known.is_none() {
            let path = self.host.memos().path(self.spec.name, id, "lock");
            // Without the lock the turn still runs; only a second user would not be told to wait.
            session.lock = SessionLock::try_take(&path).ok().flatten();
        }
    }

    fn report(
        &self,
        started: Instant,
        exit_code: Option<i32>,
        end: TurnEnd,
        memo: Option<Memo>,
    ) -> TurnReport {
        let (response_text, truncated) = match &end.failure {
            Some(failure) => (Some(failure.response_text().to_owned()), false),
            None => cap(end.text),
        };
        let memo = memo.map(|mut memo| {
            memo.updated_at = Some(Timestamp::now());
            memo.model = end.model.clone().or(memo.model);
            memo.totals = end.totals.or(memo.totals);
            memo.system_sent |= self.request.options.system_prompt.is_some()
                || self.prompt.len() != self.request.prompt.len();
            if let Some(version) = end.meta.get("version").and_then(serde_json::Value::as_str) {
                memo.version = Some(version.to_owned());
            }
            memo
        });
        TurnReport {
            agent: AgentName::new(self.spec.name),
            session_id: memo.as_ref().map(|memo| memo.id.clone()),
            response_text,
            error: end.failure,
            exit_code,
            duration_ms: millis(started.elapsed()),
            model: end.model,
            stop_reason: end.stop_reason,
            mode: Mode::OneShot,
            usage: end.usage,
            truncated,
            memo,
            meta: end.meta,
        }
    }
}

/// Writes a file unless it is there. Another turn sees all of it or nothing.
fn write_once(path: &Path, content: &[u8]) -> io::Result<()> {
    if path.exists() {
        return Ok(());
    }
    let folder = path.parent().unwrap_or(path);
    fs::create_dir_all(folder)?;
    let mut file = tempfile::NamedTempFile::new_in(folder)?;
    file.write_all(content)?;
    match file.persist_noclobber(path) {
        Err(refused) if refused.error.kind() != io::ErrorKind::AlreadyExists => Err(refused.error),
        _ => Ok(()),
    }
}

fn not_started(message: String) -> Reason {
    Reason::NotStarted(Failure::new(FailureKind::SpawnFailed, message))
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// Whether the command line is the literal one, which protects against nothing.
fn is_literal(options: &Options) -> bool {
    options.format == Format::Json && options.permissions == Permissions::Bypass
}

/// Cuts a very long answer at a character.
fn cap(text: Option<String>) -> (Option<String>, bool) {
    match text {
        Some(mut text) if text.len() > MAX_RESPONSE_BYTES => {
            text.truncate(text.floor_char_boundary(MAX_RESPONSE_BYTES));
            (Some(text), true)
        }
        text => (text, false),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_very_long_answer_is_cut_at_a_character_and_says_so() {
        let long = "é".repeat(MAX_RESPONSE_BYTES / 2 + 1);
        let (text, truncated) = cap(Some(format!("x{long}")));
        assert_eq!(text.map(|text| text.len()), Some(MAX_RESPONSE_BYTES - 1));
        assert!(truncated);
        assert_eq!(cap(Some("short".into())), (Some("short".into()), false));
        assert_eq!(cap(None), (None, false));
    }

    #[test]
    fn a_file_of_a_home_is_written_once_and_never_over_somebody_elses() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join(".agent/settings.json");
        write_once(&path, b"ours").unwrap();
        write_once(&path, b"other").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"ours");
        let names = fs::read_dir(path.parent().unwrap()).unwrap();
        assert_eq!(names.count(), 1, "nothing temporary is left");
    }
}

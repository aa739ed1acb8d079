//! A request that can be run: what is the same for a turn with a process of its
//! own and one in a process that is kept.
//!
//! Everything that can still go wrong from here on becomes the end of the turn:
//! a caller that got a turn always gets its `complete`.

use std::{
    ffi::{OsStr, OsString},
    fs,
    io::{self, Write as _},
    path::{Path, PathBuf},
    time::Duration,
};

use jiff::Timestamp;
use tokio::{
    sync::mpsc,
    time::{Instant, sleep, sleep_until},
};

use crate::{
    agent::{AgentRef, CommandLine, Exit, Launch, LaunchError, TurnEnd},
    binary,
    driver::Limits,
    environment::ChildEnvironment,
    event::{EventBody, Mode, Started, Status, Trigger, TurnId, TurnReport},
    failure::{Failure, FailureKind, chain},
    host::{Host, create_private_dir},
    identity,
    lock::SessionLock,
    memo::{self, Memo},
    outbox::Outbox,
    request::{Identity, MemoKeeping, Open, ProjectSettings, TurnRequest},
    transcript::Transcript,
    turn::{Control, Say, Turn},
    verdict::{Evidence, Reason, verdict},
    warm::{pool::Lease, seed::Key},
};

/// The longest answer that is kept whole.
const MAX_RESPONSE_BYTES: usize = 16 * 1024 * 1024;

/// A request that can be run: all that is known before the first side effect.
#[derive(Clone)]
pub(crate) struct Prepared {
    pub(crate) spec: AgentRef,
    pub(crate) host: Host,
    pub(crate) program: PathBuf,
    pub(crate) version: Option<String>,
    pub(crate) request: TurnRequest,
    /// What is not done as asked, whatever the command line.
    pub(crate) warnings: Vec<String>,
    /// Who gets the turns that the agent begins by itself.
    pub(crate) unasked: Option<mpsc::Sender<Turn>>,
}

/// A turn while it runs: its way out, its way in, and its clock.
pub(crate) struct InFlight {
    pub(crate) id: TurnId,
    pub(crate) started: Instant,
    pub(crate) outbox: Outbox,
    pub(crate) control: Control,
    pub(crate) says: mpsc::Receiver<Say>,
    pub(crate) transcript: Option<Transcript>,
    pub(crate) session: Session,
}

/// How a session is to be had.
pub(crate) enum Held {
    /// By its lock; a new one has none.
    Lock(Option<SessionLock>),
    /// By a place in the process that has it open.
    Place(Lease),
}

/// What is known of the session while the turn runs.
#[derive(Default)]
pub(crate) struct Session {
    pub(crate) memo: Option<Memo>,
    pub(crate) lock: Option<SessionLock>,
}

impl Prepared {
    /// Makes the command line for a run folder.
    pub(crate) fn line(&self, run_dir: &Path) -> Result<CommandLine, LaunchError> {
        let prompt = self.prompt();
        (self.spec.launch)(&self.launch(&prompt, run_dir))
    }

    /// Returns the program that the command line names, else the agent's own.
    pub(crate) fn program_of(&self, line: &CommandLine) -> PathBuf {
        let Some(named) = line.program.as_deref().map(Path::new) else {
            return self.program.clone();
        };
        let path = self.host.environment().get(OsStr::new("PATH"));
        let is_bare = named.components().count() == 1 && !named.is_absolute();
        let found = if is_bare { binary::search(named, path.map(AsRef::as_ref)) } else { None };
        found.unwrap_or_else(|| named.to_owned())
    }

    /// Returns the whole environment of the process.
    pub(crate) fn environment(
        &self,
        line: &CommandLine,
        run_dir: &Path,
        mark: &str,
    ) -> Vec<(OsString, OsString)> {
        let environment = ChildEnvironment {
            inherited: self.host.environment(),
            spec: &self.spec,
            home: self.request.options.home.as_deref(),
            run_dir,
            mark,
            line: &line.env,
            named: &self.request.options.env,
        };
        environment.build()
    }

    /// Runs the turn to its end, whatever happens, and says so exactly once.
    pub(crate) async fn run(mut self, mut turn: InFlight) {
        let attempt = match (self.request.mode, self.spec.warm) {
            (Mode::Warm, Some(warm)) => Box::pin(self.run_warm(warm, &mut turn)).await,
            (Mode::Warm, None) | (Mode::OneShot, _) => self.run_once(&mut turn).await,
        };
        self.conclude(turn, attempt).await;
    }

    /// Makes the last words of a turn, whatever the witnesses say, and delivers them.
    pub(crate) async fn conclude(&self, turn: InFlight, attempt: Result<Evidence, Reason>) {
        let InFlight { id, started, mut outbox, mut session, says, .. } = turn;
        // Whoever still says something learns that the turn is over, and does
        // not wait for it while it waits for its reader.
        drop(says);
        let mut evidence = attempt
            .unwrap_or_else(|reason| Evidence { reason: Some(reason), ..Evidence::default() });
        let exit_code = match self.request.mode {
            Mode::OneShot => evidence.exit.as_ref().map(Exit::number),
            Mode::Warm => None,
        };
        let end = verdict(&self.spec.title, &mut evidence);
        let report = self.report(started, exit_code, end, session.memo.take());
        self.keep(report.memo.as_ref(), &mut outbox);
        self.host.running().remove(&id);
        // The session is free before anybody can learn that the turn is over.
        drop(session);
        if let Some(failure) = &report.error {
            outbox.push(None, EventBody::Error(failure.clone()));
        }
        outbox.push(None, EventBody::Complete(Box::new(report)));
        outbox.deliver().await;
    }

    /// Returns the time limits of a turn that began then.
    pub(crate) fn limits(&self, started: Instant) -> Limits {
        Limits {
            deadline: started.checked_add(self.request.timeout).unwrap_or(started),
            timeout: self.request.timeout,
            idle: self.request.idle_timeout,
        }
    }

    pub(crate) fn launch<'a>(&'a self, prompt: &'a str, run_dir: &'a Path) -> Launch<'a> {
        let memo = self.request.open.memo();
        Launch {
            spec: &self.spec,
            mode: self.request.mode,
            options: &self.request.options,
            open: &self.request.open,
            prompt,
            version: self.version.as_deref().or(memo.and_then(|memo| memo.version.as_deref())),
            run_dir,
        }
    }

    /// Returns the prompt with the identity text, where one is due.
    pub(crate) fn prompt(&self) -> String {
        let TurnRequest { prompt, open, options, .. } = &self.request;
        identity::apply(self.spec.identity, &options.identity, open.memo(), prompt)
    }

    /// Reads the session's memo again: the turn that had the session before may
    /// have written it after this request was made.
    pub(crate) fn recall(&mut self) -> Result<(), Reason> {
        let Open::Resume(memo) = &mut self.request.open else { return Ok(()) };
        if self.request.memos == MemoKeeping::DataFolder {
            let newest = self.host.memos().load(&self.spec.name, &memo.id).map_err(|error| {
                Reason::Failed(Failure::new(FailureKind::Internal, chain(&error)))
            })?;
            if let Some(newest) = newest {
                **memo = newest;
            }
        }
        Ok(())
    }

    /// Writes the session's memo, before anybody else can use the session.
    fn keep(&self, memo: Option<&Memo>, outbox: &mut Outbox) {
        if self.request.memos == MemoKeeping::DataFolder
            && let Some(memo) = memo
            && let Err(error) = self.host.memos().save(memo)
        {
            let text = chain(&error);
            outbox.push(None, EventBody::Status(Status::Warning { text }));
        }
    }

    /// Waits for the session to be free. A new one cannot be in use.
    ///
    /// Polls, because a blocking wait for a file lock could not be given up.
    /// A process of this host that keeps the session open would never give the
    /// lock back, so in every round the pool is asked for it: for a place in
    /// that process, if a process with this `key` would do, else to close it.
    pub(crate) async fn lock_session(
        &self,
        turn: &mut InFlight,
        deadline: Instant,
        key: Option<&Key>,
    ) -> Result<Held, Reason> {
        let Some(memo) = self.request.open.memo() else {
            return Ok(Held::Lock(None));
        };
        let path = self.host.memos().path(&self.spec.name, &memo.id, "lock");
        let fail = |error: io::Error| {
            let text = format!("could not lock session {} by {}: {error}", memo.id, path.display());
            Reason::Failed(Failure::new(FailureKind::Internal, text))
        };
        let mut pause = Duration::from_millis(5);
        let mut is_told = false;
        loop {
            match (key, self.host.pool_if_any()) {
                (Some(key), Some(pool)) => {
                    let lease = pool.join(&self.spec.name, &memo.id, key.clone()).await;
                    if let Some(lease) = lease {
                        return Ok(Held::Place(lease));
                    }
                }
                (None, Some(pool)) => pool.release(&self.spec.name, &memo.id).await,
                (_, None) => {}
            }
            if let Some(lock) = SessionLock::try_take(&path).map_err(fail)? {
                return Ok(Held::Lock(Some(lock)));
            }
            if !std::mem::replace(&mut is_told, true) {
                let text =
                    "another turn of this session is running; waiting for its end".to_owned();
                turn.outbox.push(None, EventBody::Status(Status::Queued { text }));
            }
            tokio::select! {
                biased;
                () = turn.control.cancel.cancelled() => return Err(Reason::Cancelled),
                () = turn.control.kill.cancelled() => return Err(Reason::Cancelled),
                () = sleep_until(deadline) => return Err(Reason::Failed(Failure::new(
                    FailureKind::SessionBusy,
                    format!("session {} was in use for {:?}", memo.id, self.request.timeout),
                ))),
                () = sleep(pause) => {}
            }
            pause = (pause * 2).min(Duration::from_millis(100));
        }
    }

    /// Returns what a turn's reader should know beside what its command line says.
    pub(crate) fn notes(&self) -> impl Iterator<Item = String> {
        self.warnings.clone().into_iter().chain(self.unread_project_files())
    }

    /// Tells which settings of the directory are not obeyed, because nobody
    /// trusted it, or are, because the literal command line cannot prevent it.
    fn unread_project_files(&self) -> Option<String> {
        let options = &self.request.options;
        if options.project_settings == ProjectSettings::Trusted {
            return None;
        }
        let files = self.spec.project_files.iter();
        let there: Vec<_> = files.filter(|file| options.cwd.join(file).exists()).copied().collect();
        if there.is_empty() {
            return None;
        }
        let there = there.join(", ");
        Some(if options.is_literal() {
            format!(
                "obeyed, although the directory is not trusted: {there}; the literal command line cannot prevent it"
            )
        } else {
            format!("not read, because the directory is not trusted: {there}")
        })
    }

    pub(crate) fn write_files(&self, line: &CommandLine) -> Result<(), String> {
        if let Some(home) = &self.request.options.home {
            create_private_dir(home)
                .map_err(|error| format!("could not make the home {}: {error}", home.display()))?;
        }
        if let Some(home) = &self.request.options.home {
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

    pub(crate) fn started(&self, trigger: Trigger) -> Started {
        let memo = self.request.open.memo();
        Started {
            agent: self.spec.name.clone(),
            version: self.version.clone(),
            mode: self.request.mode,
            session_id: memo.map(|memo| memo.id.clone()),
            model: self.request.options.model.clone(),
            cwd: self.request.options.cwd.clone(),
            resumed: memo.is_some(),
            attempt: self.request.attempt,
            trigger,
        }
    }

    /// Notes the agent's id, and takes the lock of a session that has just come to be.
    pub(crate) fn session_opened(&self, id: &str, session: &mut Session) {
        session.memo = Some(self.memo_of(id));
        if !self.is_resumed(id) {
            let path = self.host.memos().path(&self.spec.name, id, "lock");
            // Without the lock the turn still runs; only a second user would not be told to wait.
            session.lock = SessionLock::try_take(&path).ok().flatten();
        }
    }

    /// Returns what is known of a session that this turn has used.
    pub(crate) fn memo_of(&self, id: &str) -> Memo {
        let known = self.request.open.memo().filter(|memo| memo.id == id);
        let mut memo = known.cloned().unwrap_or_else(|| Memo::of_id(&self.spec.name, id));
        memo.created_at = memo.created_at.or_else(|| Some(Timestamp::now()));
        // Some agents find a session only where it began.
        memo.cwd.get_or_insert_with(|| self.request.options.cwd.clone());
        memo.home.clone_from(&self.request.options.home);
        if known.is_none() {
            memo.system_hash = self.request.options.system_prompt.as_deref().map(memo::hash);
        }
        memo
    }

    fn is_resumed(&self, id: &str) -> bool {
        self.request.open.memo().is_some_and(|memo| memo.id == id)
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
            // A turn that ended without them may have used something all the
            // same, so that the next difference would be too large: unknown.
            memo.totals = end.totals;
            memo.file = end.file.clone().or(memo.file);
            memo.system_sent |= self.request.options.system_prompt.is_some()
                || self.request.options.identity != Identity::Off;
            if let Some(version) = end.meta.get("version").and_then(serde_json::Value::as_str) {
                memo.version = Some(version.to_owned());
            }
            memo
        });
        TurnReport {
            agent: self.spec.name.clone(),
            session_id: memo.as_ref().map(|memo| memo.id.clone()),
            response_text,
            error: end.failure,
            exit_code,
            duration_ms: millis(started.elapsed()),
            model: end.model,
            stop_reason: end.stop_reason,
            mode: self.request.mode,
            usage: end.usage,
            truncated,
            memo,
            meta: end.meta,
        }
    }
}

pub(crate) fn not_started(message: String) -> Reason {
    Reason::Failed(Failure::new(FailureKind::SpawnFailed, message))
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// Writes a file unless it is there. Another turn sees all of it or nothing.
fn write_once(path: &Path, content: &[u8]) -> io::Result<()> {
    if path.exists() {
        return Ok(());
    }
    let folder = path.parent().unwrap_or(path);
    create_private_dir(folder)?;
    let mut file = tempfile::NamedTempFile::new_in(folder)?;
    file.write_all(content)?;
    match file.persist_noclobber(path) {
        Err(refused) if refused.error.kind() != io::ErrorKind::AlreadyExists => Err(refused.error),
        _ => Ok(()),
    }
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
    fn a_file_of_a_home_is_written_once_and_never_over_somebody_elses() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join(".agent/settings.json");
        write_once(&path, b"ours").unwrap();
        write_once(&path, b"other").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"ours");
        let names = fs::read_dir(path.parent().unwrap()).unwrap();
        assert_eq!(names.count(), 1, "nothing temporary is left");
    }

    #[test]
    fn a_very_long_answer_is_cut_at_a_character_and_says_so() {
        let long = "é".repeat(MAX_RESPONSE_BYTES / 2 + 1);
        let (text, truncated) = cap(Some(format!("x{long}")));
        assert_eq!(text.map(|text| text.len()), Some(MAX_RESPONSE_BYTES - 1));
        assert!(truncated);
        assert_eq!(cap(Some("short".into())), (Some("short".into()), false));
        assert_eq!(cap(None), (None, false));
    }
}

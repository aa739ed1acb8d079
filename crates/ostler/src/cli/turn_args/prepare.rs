//! What the options, the configuration and what is remembered come to: an agent
//! and a request.

use std::path::{Path, PathBuf};

use ostler_core::{
    agent::AgentSpec,
    cli_agent::CliAgent,
    failure::chain,
    host::Host,
    memo::{Kept, Memo, MemoError},
    request::{self, MemoKeeping, Open, TurnRequest},
};

use super::TurnArgs;
use crate::{
    cli::Exit,
    config::Settings,
    wishes::{Wishes, millis},
};

/// Why a turn was not even tried.
pub(crate) struct Refused {
    pub(crate) exit: Exit,
    pub(crate) message: String,
}

impl Refused {
    pub(crate) fn usage(message: impl ToString) -> Self {
        Self { exit: Exit::Usage, message: message.to_string() }
    }
}

impl TurnArgs {
    /// Makes the agent, and a request that lacks nothing but its prompt.
    pub(crate) fn prepare(
        &self,
        settings: &Settings,
        host: &Host,
    ) -> Result<(CliAgent, TurnRequest), Refused> {
        let wishes = self.wishes()?;
        let spec = wishes.agent(settings).map_err(Refused::usage)?;
        let cwd = working_directory(self.cwd.as_deref())?;
        let mut request = wishes.request(spec, &cwd, settings, host);
        let kept = kept(settings, &spec.name, request.options.home.as_deref());
        request.open = session(self, spec, host, &cwd, kept)?;
        request.memos = MemoKeeping::DataFolder;
        request.transcript.clone_from(&self.transcript);
        request.options.extra_args.clone_from(&self.agent_args);
        // Later ones override earlier ones.
        request.options.env.extend(self.env.iter().map(|pair| variable(pair)));
        let mut agent = settings.cli_agent(spec, host);
        if let Some(program) = self.bin.clone() {
            agent = agent.with_program(program);
        }
        Ok((agent, request))
    }

    /// Returns what of it can be wished of anybody who runs turns.
    pub(crate) fn wishes(&self) -> Result<Wishes, Refused> {
        Ok(Wishes {
            agent: self.agent.clone(),
            model: self.model.clone(),
            session: self.session.clone(),
            cwd: self.cwd.clone(),
            system: system_prompt(self)?,
            allowed_tools: Some(self.allow_tools.clone()).filter(|tools| !tools.is_empty()),
            max_turns: self.max_turns,
            timeout_ms: self.timeout.map(millis),
            idle_timeout_ms: self.idle_timeout.map(millis),
            ask_timeout_ms: self.ask_timeout.map(millis),
            permissions: self.permissions.map(Into::into),
            thinking: self.thinking.map(Into::into),
            format: Some(self.format.into()),
            retries: None,
            isolated: self.isolated,
            cold: self.cold,
            trust_project: self.trust_project,
        })
    }

    /// Returns the same for somebody else who runs the turn, once: what depends
    /// on where and by whom it was typed is settled here.
    pub(crate) fn wishes_elsewhere(
        &self,
        settings: &Settings,
        host: &Host,
    ) -> Result<Wishes, Refused> {
        let mut wishes = self.wishes()?;
        let cwd = working_directory(self.cwd.as_deref())?;
        if self.session.is_some() || self.continue_newest {
            let spec = wishes.agent(settings).map_err(Refused::usage)?;
            let home = wishes.home(&spec.name, host);
            let kept = kept(settings, &spec.name, home.as_deref());
            let open = session(self, spec, host, &cwd, kept)?;
            wishes.session = open.memo().map(|memo| memo.id.clone());
            // The session is this agent's, whichever is configured there.
            wishes.agent = Some(spec.name.to_string());
        }
        wishes.cwd = Some(cwd);
        wishes.retries = Some(0);
        Ok(wishes)
    }

    /// Returns the same for a new conversation with another agent, to whom what
    /// was said about this one's model, session and program does not apply.
    pub(crate) fn for_agent(&self, name: &str) -> Self {
        Self {
            agent: Some(name.to_owned()),
            model: None,
            session: None,
            continue_newest: false,
            bin: None,
            agent_args: Vec::new(),
            ..self.clone()
        }
    }
}

/// Returns where an agent keeps its sessions.
fn kept<'a>(settings: &'a Settings, agent: &str, home: Option<&'a Path>) -> Kept<'a> {
    match settings.server_of(agent) {
        Some(server) => Kept::Server(server.url()),
        None => Kept::Home(home),
    }
}

fn working_directory(given: Option<&Path>) -> Result<PathBuf, Refused> {
    let here = || std::env::current_dir();
    let path = match given {
        None => here().map_err(|error| Refused::usage(format!("no working directory: {error}")))?,
        Some(path) => path.to_owned(),
    };
    // A path that does not exist is told by the request's validation, by the name that was given.
    Ok(std::fs::canonicalize(&path).unwrap_or(path))
}

fn session(
    args: &TurnArgs,
    spec: &AgentSpec,
    host: &Host,
    cwd: &Path,
    kept: Kept<'_>,
) -> Result<Open, Refused> {
    let memos = host.memos();
    let unreadable = |error: MemoError| Refused::usage(chain(&error));
    if let Some(id) = &args.session {
        request::check_session(id).map_err(Refused::usage)?;
        let memo = memos.load(&spec.name, id).map_err(unreadable)?;
        return Ok(Open::Resume(Box::new(memo.unwrap_or_else(|| Memo::of_id(&spec.name, id)))));
    }
    if args.continue_newest {
        let memo = memos.newest(&spec.name, cwd, kept).map_err(unreadable)?.ok_or_else(|| {
            Refused::usage(format!(
                "--continue: no session of {} in {} yet; run once without it",
                spec.name,
                cwd.display()
            ))
        })?;
        return Ok(Open::Resume(Box::new(memo)));
    }
    Ok(Open::New)
}

fn system_prompt(args: &TurnArgs) -> Result<Option<String>, Refused> {
    let Some(path) = &args.system_file else {
        return Ok(args.system.clone());
    };
    std::fs::read_to_string(path)
        .map(Some)
        .map_err(|error| Refused::usage(format!("--system-file {}: {error}", path.display())))
}

fn variable(pair: &str) -> (String, Option<String>) {
    match pair.split_once('=') {
        Some((name, value)) => (name.to_owned(), Some(value.to_owned())),
        None => (pair.to_owned(), None),
    }
}

//! What the options, the configuration and what is remembered come to: an agent
//! and a request.

use std::path::{Path, PathBuf};

use ostler_core::{
    agent::AgentSpec,
    cli_agent::CliAgent,
    failure::chain,
    host::Host,
    memo::{Kept, Memo, MemoError},
    request::{self, MemoKeeping, Open, Permissions, ProjectSettings, TurnRequest},
};

use super::TurnArgs;
use crate::{
    cli::{Exit, agents},
    config::Settings,
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
        let spec = match &self.agent {
            Some(name) => settings.roster.resolve(name).map_err(Refused::usage)?.clone(),
            None => settings.agent.clone(),
        };
        let is_backend = spec.name == settings.agent.name;
        let cwd = working_directory(self.cwd.as_deref())?;
        let home = self.isolated.then(|| host.isolated_home(&spec.name));
        let kept = match settings.server_of(&spec.name) {
            Some(server) => Kept::Server(server.url()),
            None => Kept::Home(home.as_deref()),
        };
        let open = session(self, &spec, host, &cwd, kept)?;
        let mut request = TurnRequest::new(String::new(), cwd);
        request.open = open;
        request.memos = MemoKeeping::DataFolder;
        request.timeout = self.timeout.unwrap_or(settings.timeout);
        request.idle_timeout = self.idle_timeout.unwrap_or(settings.idle_timeout);
        request.ask_timeout = self.ask_timeout.unwrap_or(settings.ask_timeout);
        request.transcript.clone_from(&self.transcript);
        let options = &mut request.options;
        options.model =
            self.model.clone().or_else(|| settings.model.clone().filter(|_| is_backend));
        options.system_prompt = system_prompt(self)?;
        options.allowed_tools = Some(self.allow_tools.clone())
            .filter(|tools| !tools.is_empty())
            .or_else(|| settings.allowed_tools.clone());
        options.max_turns = self.max_turns.or(settings.max_turns);
        let by_default =
            if spec.caps.supports_approvals { Permissions::Ask } else { Permissions::ReadOnly };
        options.permissions =
            self.permissions.map(Into::into).or(settings.permissions).unwrap_or(by_default);
        options.thinking = self.thinking.map(Into::into).or(settings.thinking);
        options.format = self.format.into();
        options.extra_args.clone_from(&self.agent_args);
        // Later ones override earlier ones.
        let named = self.env.iter().map(|pair| variable(pair));
        options.env = settings.env.iter().cloned().chain(named).collect();
        if self.trust_project {
            options.project_settings = ProjectSettings::Trusted;
        }
        options.home = home;
        let mut agent = CliAgent::new(spec, host.clone());
        if let Some(program) =
            self.bin.clone().or_else(|| settings.program.clone().filter(|_| is_backend))
        {
            agent = agent.with_program(program);
        }
        Ok((agents::attached(agent, settings), request))
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

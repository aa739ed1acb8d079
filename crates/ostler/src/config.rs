//! Settings from flags, the environment and a file: the only place in this
//! program that reads them. `key` and `variable` are the tables of what there
//! is, `section` has the types and the defaults, `load` and `layers` put it together.

mod agents;
mod api;
mod archive;
pub(crate) mod default;
mod discord;
mod dotenv;
pub(crate) mod duration;
mod file;
mod finish;
mod hooks;
mod inbound;
mod key;
mod kind;
mod layers;
mod load;
mod media;
pub(crate) mod nearest;
pub(crate) mod pattern;
mod problem;
pub(crate) mod schema;
mod secret;
mod section;
#[cfg(test)]
mod tests;
mod tree;
mod twilio;
pub(crate) mod variable;
pub(crate) mod view;
mod walk;
mod watch;

use std::{fmt, path::PathBuf, time::Duration};

use ostler_core::{
    CliAgent, Host, HostConfig,
    agent::{
        AgentRef, Roster,
        http::{Login, ServerAddress},
    },
    environment::Variables,
    request::{Permissions, Thinking},
};

use crate::store::{Location, LocationError};

pub(crate) use self::{
    api::{Api, Metrics},
    archive::Archive,
    discord::{Detail, Discord, EVERYBODY, LongAnswers},
    file::Found,
    hooks::{Hook, HookAction, HookEvent, OnFailure},
    inbound::{Inbound, Mode as ReplyMode, Reply},
    load::{Flag, Loaded, Loader, Trust},
    media::{Media, Transcribe},
    problem::{Problem, Problems, Source},
    secret::{Secret, SecretSource},
    section::{Busy, Config, Heartbeat, Scope, Sessions, word},
    twilio::{Receive, Twilio, number as number_of},
    watch::{Reload, Stamp, Watch, stamp_of},
};

/// What commands that run turns take from the configuration.
pub(crate) struct Settings {
    /// The outer environment.
    pub(crate) environment: Variables,
    /// The agents there are.
    pub(crate) roster: Roster,
    /// The agent, unless another is named.
    pub(crate) agent: AgentRef,
    /// Whether somebody chose that agent.
    pub(crate) is_agent_chosen: bool,
    /// The program of that agent.
    pub(crate) program: Option<PathBuf>,
    /// The model of that agent.
    pub(crate) model: Option<String>,
    /// Only if somebody set it, for not every agent has such a limit.
    pub(crate) max_turns: Option<u32>,
    pub(crate) allowed_tools: Option<Vec<String>>,
    pub(crate) timeout: Duration,
    pub(crate) idle_timeout: Duration,
    pub(crate) ask_timeout: Duration,
    pub(crate) permissions: Option<Permissions>,
    pub(crate) thinking: Option<Thinking>,
    /// Variables that every agent gets: with a value, or to be passed on.
    pub(crate) env: Vec<(String, Option<String>)>,
    /// The server that is the agent `opencode`.
    pub(crate) opencode_server: Option<ServerAddress>,
    /// The bot on Discord.
    pub(crate) discord: Discord,
    /// The account at Twilio.
    pub(crate) twilio: Box<Twilio>,
    /// What was read but is not as it should be.
    pub(crate) warnings: Vec<String>,
    host: HostConfig,
}

impl fmt::Debug for Settings {
    /// Leaves the environment out: there are secrets in it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Settings").field("agent", &self.agent).finish_non_exhaustive()
    }
}

impl Settings {
    /// Takes what a configuration says, and gets the secrets that turns need: all
    /// of them, or those of one agent, so that nobody is asked for others in vain.
    pub(crate) async fn new(loaded: Loaded, only: Option<&str>) -> Result<Self, Problems> {
        let needs = |agent: &str| only.is_none_or(|only| only == agent);
        let opencode_server =
            if needs("opencode") { opencode_server(&loaded).await? } else { None };
        let host = loaded.host_config();
        let max_turns = loaded.is_set("agent.max_turns").then_some(loaded.config.agent.max_turns);
        let is_agent_chosen = loaded.is_set("agent.default");
        let Loaded { config, roster, environment, dotenv, warnings, .. } = loaded;
        let (agent, discord, twilio) = (config.agent, config.discord, config.twilio);
        let named = roster.resolve(&agent.default).cloned();
        let named = named.map_err(|error| Problem {
            source: Source::Default,
            key: "agent.default".to_owned(),
            why: error.to_string(),
        })?;
        let env = agent.env.into_iter().map(|name| {
            let is_outside = environment.contains_key(std::ffi::OsStr::new(&name));
            let value = dotenv.get(&name).filter(|_| !is_outside).cloned();
            (name, value)
        });
        Ok(Self {
            env: env.collect(),
            agent: named,
            is_agent_chosen,
            program: agent.path,
            model: agent.model.filter(|model| !model.is_empty()),
            max_turns,
            allowed_tools: agent.allowed_tools,
            timeout: agent.timeout,
            idle_timeout: agent.idle_timeout,
            ask_timeout: agent.ask_timeout,
            permissions: agent.permissions,
            thinking: agent.thinking,
            opencode_server,
            discord,
            twilio,
            warnings,
            roster,
            environment,
            host,
        })
    }

    /// Reads an environment as given, and no file.
    #[cfg(test)]
    pub(crate) fn from_environment(environment: Variables) -> Result<Self, Problems> {
        let folder = tempfile::tempdir().unwrap();
        let here = folder.path().to_owned();
        let loader =
            Loader { environment, here, file: None, flags: Vec::new(), trust: Trust::Named };
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(Self::new(loader.load()?, None))
    }

    /// Returns the server that an agent is, if it is one.
    pub(crate) fn server_of(&self, agent: &str) -> Option<&ServerAddress> {
        self.opencode_server.as_ref().filter(|_| agent == "opencode")
    }

    /// Returns an agent as it is configured: with its program, or at its server.
    pub(crate) fn cli_agent(&self, spec: &AgentRef, host: &Host) -> CliAgent {
        let is_backend = spec.name == self.agent.name;
        let agent = CliAgent::new(spec.clone(), host.clone());
        let agent = match self.program.clone().filter(|_| is_backend) {
            Some(program) => agent.with_program(program),
            None => agent,
        };
        self.attached(agent)
    }

    /// Attaches an agent to the server that it is, if it is one.
    pub(crate) fn attached(&self, agent: CliAgent) -> CliAgent {
        match self.server_of(&agent.spec().name) {
            // One that cannot be attached has no such setting.
            Some(server) => agent.clone().attached_to(server.clone()).unwrap_or(agent),
            None => agent,
        }
    }

    /// Returns the surroundings in which agents run.
    pub(crate) fn host_config(&self) -> HostConfig {
        self.host.clone()
    }
}

/// Makes the address of the server that is the agent `opencode`, with its password.
async fn opencode_server(loaded: &Loaded) -> Result<Option<ServerAddress>, Problems> {
    let opencode = &loaded.config.opencode;
    if !opencode.enabled {
        return Ok(None);
    }
    let problem = |key: &str, why: String| {
        Problems::from(Problem { source: loaded.source(key).clone(), key: key.to_owned(), why })
    };
    let login = match &opencode.password {
        None => None,
        Some(source) => {
            let password = source.get(&loaded.environment).await;
            let password =
                password.map_err(|error| problem("opencode.password", error.to_string()))?;
            let user = opencode.username.clone();
            Some(Login { user, password: password.reveal().to_owned() })
        }
    };
    ServerAddress::new(&opencode.url, login)
        .map(Some)
        .map_err(|error| problem("opencode.url", error.to_string()))
}

/// Returns where the store is.
pub(crate) async fn store_location(loaded: &Loaded) -> Result<Location, Problems> {
    const KEY: &str = "gateway.database_url";
    let Some(source) = &loaded.config.gateway.database_url else {
        return Ok(Location::in_folder(&loaded.host_config().data_dir));
    };
    let problem = |why: String| {
        Problems::from(Problem { source: loaded.source(KEY).clone(), key: KEY.to_owned(), why })
    };
    let url = source.get(&loaded.environment).await.map_err(|error| problem(error.to_string()))?;
    url.reveal().parse().map_err(|error: LocationError| problem(error.to_string()))
}

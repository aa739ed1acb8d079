//! What the gateway goes by: what is configured, as one value that is replaced
//! as a whole when the configuration changes. A turn keeps the one it began with.

use std::{collections::BTreeMap, fmt, path::PathBuf, sync::Arc, time::Duration};

use ostler_core::{
    agent::AgentRef,
    cli_agent::CliAgent,
    environment::Variables,
    event::Mode,
    host::Host,
    request::{Identity, SessionArgPosition, SessionArgs, Template, TurnRequest},
};

use super::{
    gate::Rules,
    inbound::Payload,
    text::{self, Texts},
};
use crate::{
    archive::Keeping,
    config::{Api, Config, Discord, Reply, ReplyMode, Settings, Twilio},
    hooks::Hooks,
    media, program,
    prompt::{self, Folder},
    queue::{Capacity, Limits},
    schedule::heartbeat,
    wishes::Wishes,
};

/// Everything that is configured and may change while the gateway runs.
pub(crate) struct Policy {
    pub(crate) rules: Rules,
    pub(crate) retry: RetryRules,
    pub(crate) max_concurrent_turns: usize,
    /// How long turns may take to end when the gateway stops.
    pub(crate) shutdown_grace: Duration,
    /// For how long events are kept; `None` for ever.
    pub(crate) event_retention: Option<Duration>,
    /// What is kept of what was said.
    pub(crate) archive: Keeping,
    /// The folder that is watched for messages to people.
    pub(crate) outbound: Option<PathBuf>,
    /// What is answered instead of asking an agent.
    pub(crate) fixed_reply: Option<String>,
    pub(crate) heartbeat: heartbeat::Rules,
    /// What agents are instructed by.
    pub(crate) prompt_files: Option<Folder>,
    /// What is said to agents with messages.
    pub(crate) texts: Texts,
    /// How often typing is shown, if not as the chat would have it.
    pub(crate) typing_every: Option<Duration>,
    pub(crate) agents: Box<dyn Agents>,
    pub(crate) hooks: Arc<Hooks>,
    /// What comes with messages, and goes out with answers.
    pub(crate) media: media::Rules,
    /// What callers of the HTTP service may do.
    pub(crate) api: Api,
    /// Who may talk to the bot on Discord, and how it answers.
    pub(crate) discord: Discord,
    /// The same for WhatsApp and SMS.
    pub(crate) twilio: Box<Twilio>,
    /// What the programs get that callers may run.
    pub(crate) program_environment: Variables,
    /// Who answers in projects that say nothing of it, and where nobody chose another.
    pub(crate) project_agent: String,
}

impl fmt::Debug for Policy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Policy").field("rules", &self.rules).finish_non_exhaustive()
    }
}

/// How often and when a turn is tried again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RetryRules {
    pub(crate) max: u32,
    pub(crate) first_delay: Duration,
}

/// Who answers, and how they are run. The configured agents; in a
/// demonstration, those on a stage.
pub(crate) trait Agents: Send + Sync {
    /// Returns the agent of a name, or the one that answers if none is named.
    fn resolve(&self, name: Option<&str>) -> Result<AgentRef, String>;

    /// Says which agents there are, and whether each could run.
    fn availability(&self) -> Vec<(String, bool)>;

    /// Makes an agent.
    fn agent(&self, spec: &AgentRef) -> CliAgent;

    /// Makes an agent, and a request that lacks nothing but prompt and session.
    fn prepare(&self, spec: &AgentRef, payload: &Payload) -> (CliAgent, TurnRequest);
}

impl Policy {
    /// Takes what is configured.
    pub(crate) fn new(config: &Config, settings: Settings, host: Host, here: PathBuf) -> Self {
        let depth = u32::try_from(config.gateway.max_queue_depth).unwrap_or(u32::MAX);
        let reply = config.inbound.reply.clone();
        let fixed_reply = reply.as_ref().filter(|reply| reply.mode == ReplyMode::Text);
        Self {
            rules: Rules {
                sessions: config.sessions.clone(),
                busy: config.busy,
                capacity: Capacity::new(Limits { waiting: depth, waiting_in_lane: depth }),
                output: config.discord.output(),
            },
            retry: RetryRules { max: config.retry.max, first_delay: config.retry.first_delay },
            max_concurrent_turns: config.gateway.max_concurrent_turns,
            shutdown_grace: config.gateway.shutdown_grace,
            event_retention: config.gateway.event_retention,
            archive: Keeping::new(&config.archive, host.data_dir()),
            outbound: config.outbound.dir.clone(),
            fixed_reply: fixed_reply.and_then(|reply| reply.text.clone()),
            heartbeat: (&config.heartbeat).into(),
            prompt_files: Some(Folder::new(prompt::folder(
                config.prompt.dir.as_deref(),
                host.data_dir(),
            ))),
            texts: Texts::new(&config.inbound),
            typing_every: reply
                .as_ref()
                .and_then(|reply| reply.typing_interval_seconds)
                .map(|seconds| Duration::from_secs(seconds.into())),
            hooks: Arc::new(Hooks::new(config, &settings.environment)),
            media: media::Rules::new(config, &settings.environment, host.data_dir()),
            api: config.api.clone(),
            discord: config.discord.clone(),
            twilio: config.twilio.clone(),
            program_environment: program::environment(&settings.environment),
            project_agent: config.agent.project_default.clone(),
            agents: Box::new(Configured { settings, host, here, reply }),
        }
    }

    /// Takes the defaults, for agents that nobody configured.
    pub(crate) fn of_troupe(agents: Box<dyn Agents>) -> Self {
        let Config { gateway, sessions, busy, api, agent, .. } = Config::default();
        let capacity = Capacity::new(Limits::default());
        Self {
            rules: Rules { sessions, busy, capacity, output: None },
            retry: RetryRules { max: 0, first_delay: Duration::ZERO },
            max_concurrent_turns: gateway.max_concurrent_turns,
            shutdown_grace: gateway.shutdown_grace,
            event_retention: None,
            archive: Keeping::default(),
            outbound: None,
            fixed_reply: None,
            heartbeat: heartbeat::Rules::default(),
            prompt_files: None,
            texts: Texts::default(),
            typing_every: None,
            agents,
            hooks: Arc::default(),
            media: media::Rules::default(),
            api,
            program_environment: Variables::new(),
            project_agent: agent.project_default,
            discord: Discord::default(),
            twilio: Box::default(),
        }
    }

    /// Returns the agent that answers unless another is named.
    pub(crate) fn active_agent(&self) -> Result<CliAgent, String> {
        let spec = self.agents.resolve(None)?;
        Ok(self.agents.agent(&spec))
    }

    /// Whether an agent could run, as far as that can be seen from outside.
    pub(crate) fn can_run(&self, spec: &AgentRef) -> bool {
        let agent = self.agents.agent(spec);
        agent.server().is_some() || agent.find().is_ok()
    }

    /// Returns how often a turn with these wishes is tried again.
    pub(crate) fn retry_rules(&self, wishes: &Wishes) -> RetryRules {
        RetryRules { max: wishes.retries.unwrap_or(self.retry.max), ..self.retry }
    }
}

/// The agents as they are configured.
struct Configured {
    settings: Settings,
    host: Host,
    /// Where agents work unless told otherwise.
    here: PathBuf,
    /// How messages from chats are answered.
    reply: Option<Reply>,
}

impl Agents for Configured {
    fn resolve(&self, name: Option<&str>) -> Result<AgentRef, String> {
        let wishes = Wishes { agent: name.map(str::to_owned), ..Wishes::default() };
        wishes.agent(&self.settings).cloned().map_err(|error| error.to_string())
    }

    fn availability(&self) -> Vec<(String, bool)> {
        let all = self.settings.roster.iter();
        all.map(|spec| {
            let agent = self.agent(spec);
            let is_there = agent.server().is_some() || agent.find().is_ok();
            (spec.name.to_string(), is_there)
        })
        .collect()
    }

    fn agent(&self, spec: &AgentRef) -> CliAgent {
        self.settings.cli_agent(spec, &self.host)
    }

    fn prepare(&self, spec: &AgentRef, payload: &Payload) -> (CliAgent, TurnRequest) {
        let wishes = &payload.wishes;
        let reply = self.reply.as_ref().filter(|_| text::is_from_chat(payload));
        let cwd = wishes.cwd.as_ref().or(reply.and_then(|reply| reply.cwd.as_ref()));
        let cwd = cwd.unwrap_or(&self.here);
        let mut request = wishes.request(spec, cwd, &self.settings, &self.host);
        if spec.warm.is_some() && !wishes.cold {
            request.mode = Mode::Warm;
        }
        if let Some(reply) = reply {
            answer_as(reply, &mut request);
        }
        (self.agent(spec), request)
    }
}

/// Runs a turn as the block `inbound.reply` says. What it says of the message
/// is filled in when that is put together.
fn answer_as(reply: &Reply, request: &mut TurnRequest) {
    let repeat = text::repeat(reply);
    request.options.identity = match reply.agent.identity_prefix.as_deref() {
        None => Identity::Default(repeat),
        Some("") => Identity::Off,
        Some(text) => Identity::Text(text.to_owned(), repeat),
    };
    if let Some(format) = reply.agent.format {
        request.options.format = format;
    }
    let Some(command) = &reply.command else { return };
    let session = &reply.session;
    let is_before_body = session.session_arg_before_body.unwrap_or(true);
    request.mode = Mode::OneShot;
    request.options.template = Some(Template {
        command: command.clone(),
        variables: BTreeMap::new(),
        format: reply.agent.format,
        session: SessionArgs {
            new: session.session_arg_new.clone(),
            resume: session.session_arg_resume.clone(),
            position: if is_before_body {
                SessionArgPosition::BeforeBody
            } else {
                SessionArgPosition::End
            },
        },
    });
}

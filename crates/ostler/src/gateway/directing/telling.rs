//! How a conversation stands, and the sentences in which somebody is told.

use ostler_core::agent::AgentRef;

use super::{NOBODY, NOTHING_RUNS, Said};
use crate::{
    clock::Millis,
    config::word,
    gateway::policy::Policy,
    queue::{LaneCancel, LaneId},
    store::{
        Conn, StoreError,
        conversations::{self, Address, Conversation, settings::ConversationSettings},
        jobs, sessions,
        turns::{self, TurnState},
    },
};

/// How much of a session's name is shown.
const SHORT: usize = 8;
/// Beyond this nobody counts what waits.
const MANY: u32 = 1000;

/// How a conversation stands.
#[derive(Debug, Default)]
pub(super) struct Standing {
    conversation: Option<Conversation>,
    /// The sessions, each with its agent.
    sessions: Vec<(String, String)>,
    /// Since when a turn runs.
    running: Option<Millis>,
    n_waiting: u64,
}

impl Standing {
    pub(super) async fn read(conn: &mut Conn, at: &Address) -> Result<Self, StoreError> {
        let Some(conversation) = conversations::find_at(conn, at).await? else {
            return Ok(Self::default());
        };
        let id = conversation.id;
        let lane = LaneId::new(id);
        let newest = turns::newest(conn, id, 1).await?.into_iter().next();
        let running = newest.filter(|turn| turn.state == TurnState::Running);
        let sessions = sessions::list(conn, id).await?.into_iter();
        Ok(Self {
            conversation: Some(conversation),
            sessions: sessions.map(|(agent, session)| (agent, session.session)).collect(),
            running: running.map(|turn| turn.turn.begun_at),
            n_waiting: jobs::count_in_lane(conn, &lane, MANY).await?,
        })
    }

    /// Returns who answers.
    fn agent(&self, policy: &Policy) -> Result<AgentRef, String> {
        let chosen = self.conversation.as_ref().and_then(|it| it.agent.as_deref());
        policy.agents.resolve(chosen)
    }

    fn settings(&self) -> ConversationSettings {
        self.conversation.as_ref().map(Conversation::settings).unwrap_or_default()
    }

    fn model(&self) -> Option<&str> {
        self.conversation.as_ref()?.model.as_deref()
    }
}

/// Says how it stands altogether.
pub(super) fn status(said: &Said, standing: &Standing) -> String {
    let Ok(agent) = standing.agent(&said.policy) else { return NOBODY.to_owned() };
    let model = standing
        .model()
        .map_or_else(|| "its usual model".to_owned(), |it| format!("the model {it}"));
    let session = standing.sessions.iter().find(|(of, _)| *of == *agent.name);
    let session = session.map_or_else(
        || "The next message begins a session.".to_owned(),
        |(_, session)| format!("The session is {}.", short(session)),
    );
    let running = match standing.running {
        Some(since) => format!("A turn has been running for {}", since.age(said.now)),
        None => "Nothing runs".to_owned(),
    };
    let waiting = match standing.n_waiting {
        0 => "nothing waits".to_owned(),
        1 => "1 message waits".to_owned(),
        many => format!("{many} messages wait"),
    };
    [
        format!("{} answers, with {model}.", agent.name),
        session,
        format!("{running}, and {waiting}."),
        thinking(said, standing),
    ]
    .join("\n")
}

/// Says who answers, and who could.
pub(super) fn agents(said: &Said, standing: &Standing) -> String {
    let answers = match standing.agent(&said.policy) {
        Ok(agent) => format!("{} answers here.", agent.name),
        Err(_) => NOBODY.to_owned(),
    };
    let all = said.policy.agents.availability().into_iter();
    let all: Vec<_> = all
        .map(|(name, is_there)| if is_there { name } else { format!("{name} (not installed)") })
        .collect();
    format!("{answers} There are: {}.", all.join(", "))
}

/// Says which model it is.
pub(super) fn model(_: &Said, standing: &Standing) -> String {
    match standing.model() {
        Some(model) => format!("The model is {model}."),
        None => "The model is the agent's usual one. Choose another with /model NAME.".to_owned(),
    }
}

/// Says how hard the model thinks.
pub(super) fn thinking(_: &Said, standing: &Standing) -> String {
    match standing.settings().thinking {
        Some(level) => format!("Thinking is {}.", word::thinking::word(level)),
        None => "Thinking is as configured.".to_owned(),
    }
}

/// Says how much is shown of a turn.
pub(super) fn verbose(_: &Said, standing: &Standing) -> String {
    match standing.settings().verbose {
        Some(true) => "Verbose is on.".to_owned(),
        Some(false) => "Verbose is off.".to_owned(),
        None => "Verbose is as configured. Say /verbose on or /verbose off.".to_owned(),
    }
}

/// Says which words there are.
pub(super) fn help(policy: &Policy) -> String {
    let fresh = policy.rules.sessions.reset_words.iter().map(|word| word.trim());
    let fresh: Vec<_> = fresh.filter(|word| !word.is_empty()).collect();
    let mut lines = vec![
        "/stop ends what runs; so does stop, esc, abort, wait or exit alone.".to_owned(),
        "/status says how it stands.".to_owned(),
        "/agent NAME lets another agent answer.".to_owned(),
        "/model NAME chooses a model.".to_owned(),
        "/think LEVEL is off, minimal, low, medium or high.".to_owned(),
        "/verbose on or off shows more or less of a turn.".to_owned(),
        "/restart is for owners.".to_owned(),
    ];
    if !fresh.is_empty() {
        lines.insert(0, format!("{} begins a new session.", fresh.join(" or ")));
    }
    lines.join("\n")
}

/// Says what became of the wish to end what runs.
pub(super) fn stopped(LaneCancel { n_cancelled, running }: LaneCancel) -> String {
    let dropped = match n_cancelled {
        0 => None,
        1 => Some("1 message that waited is dropped".to_owned()),
        many => Some(format!("{many} messages that waited are dropped")),
    };
    match (running, dropped) {
        (None, None) => NOTHING_RUNS.to_owned(),
        (None, Some(dropped)) => format!("Nothing ran; {dropped}."),
        (Some(_), None) => "Stopped.".to_owned(),
        (Some(_), Some(dropped)) => format!("Stopped; {dropped}."),
    }
}

fn short(session: &str) -> String {
    let start: String = session.chars().take(SHORT).collect();
    if start.len() < session.len() { format!("{start}…") } else { start }
}

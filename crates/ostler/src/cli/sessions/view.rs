//! Conversations as they are printed. The names are part of the contract.

use serde::Serialize;
use serde_json::Value;

use crate::{
    clock::Millis,
    id::{ConversationId, JobId, TurnId},
    store::{conversations::Conversation, sessions::Session, turns::StoredTurn},
    ui::printable,
};

/// A conversation.
#[derive(Serialize)]
pub(super) struct Row {
    pub(super) id: ConversationId,
    pub(super) channel: String,
    pub(super) address: String,
    /// Nobody in particular means the configured agent.
    pub(super) agent: Option<String>,
    pub(super) model: Option<String>,
    pub(super) created_at: Millis,
    pub(super) last_user_at: Option<Millis>,
}

/// A page of them.
#[derive(Serialize)]
pub(super) struct Page {
    pub(super) conversations: Vec<Row>,
    /// What to give as `--after` for more; null when there is no more.
    pub(super) next: Option<ConversationId>,
}

/// All that is shown of one.
#[derive(Serialize)]
pub(super) struct Details {
    pub(super) conversation: Row,
    pub(super) sessions: Vec<SessionRow>,
    /// Newest first.
    pub(super) turns: Vec<TurnRow>,
}

/// The session of an agent.
#[derive(Serialize)]
pub(super) struct SessionRow {
    pub(super) agent: String,
    pub(super) session: String,
    pub(super) updated_at: Millis,
}

/// A turn.
#[derive(Serialize)]
pub(super) struct TurnRow {
    pub(super) id: TurnId,
    pub(super) job: Option<JobId>,
    pub(super) state: &'static str,
    pub(super) attempt: i64,
    pub(super) agent: String,
    pub(super) begun_at: Millis,
    pub(super) ended_at: Option<Millis>,
    /// The kind of its error, if it has one.
    pub(super) error: Option<String>,
}

impl From<Conversation> for Row {
    fn from(conversation: Conversation) -> Self {
        let Conversation { id, address, agent, model, created_at, last_user_at, .. } = conversation;
        let (channel, address) = (address.channel().to_owned(), address.key().to_owned());
        Self { id, channel, address, agent, model, created_at, last_user_at }
    }
}

impl From<(String, Session)> for SessionRow {
    fn from((agent, session): (String, Session)) -> Self {
        Self { agent, session: session.session, updated_at: session.updated_at }
    }
}

impl From<StoredTurn> for TurnRow {
    fn from(StoredTurn { turn, state, result, ended_at }: StoredTurn) -> Self {
        let report: Value =
            result.and_then(|result| serde_json::from_str(&result).ok()).unwrap_or_default();
        let error = report.pointer("/error/kind").and_then(Value::as_str).map(str::to_owned);
        Self {
            id: turn.id,
            job: turn.job,
            state: state.as_str(),
            attempt: turn.attempt,
            agent: turn.agent,
            begun_at: turn.begun_at,
            ended_at,
            error,
        }
    }
}

impl Page {
    /// Returns it for people.
    pub(super) fn text(&self) -> String {
        let line = |row: &Row| {
            let agent = row.agent.as_deref().unwrap_or("-");
            let last = time(row.last_user_at);
            in_one_line(&format!("{}  {last}  {agent}  {}:{}", row.id, row.channel, row.address))
        };
        let mut lines: Vec<_> = self.conversations.iter().map(line).collect();
        if lines.is_empty() {
            lines.push("no conversations".to_owned());
        }
        if let Some(next) = self.next {
            lines.push(format!("more with --after {next}"));
        }
        lines.join("\n")
    }
}

impl Details {
    /// Returns it for people.
    pub(super) fn text(&self, now: Millis) -> String {
        let Self { conversation: row, sessions, turns } = self;
        let mut lines = vec![
            format!("conversation  {}", row.id),
            format!("place         {}:{}", row.channel, row.address),
            format!("agent         {}", row.agent.as_deref().unwrap_or("the configured one")),
            format!("model         {}", row.model.as_deref().unwrap_or("-")),
            format!("begun         {}", row.created_at),
            format!("last message  {}", time(row.last_user_at)),
        ];
        lines.extend(sessions.iter().map(|session| {
            let SessionRow { agent, session, updated_at } = session;
            format!("session       {agent} {session}, {} ago", updated_at.age(now))
        }));
        lines.extend(turns.iter().map(|turn| {
            format!(
                "turn          {}  {:<9}  attempt {}  {}  {} to {}  {}",
                turn.id,
                turn.state,
                turn.attempt,
                turn.agent,
                turn.begun_at,
                time(turn.ended_at),
                turn.error.as_deref().unwrap_or_default()
            )
        }));
        lines.iter().map(|line| in_one_line(line.trim_end())).collect::<Vec<_>>().join("\n")
    }
}

fn time(time: Option<Millis>) -> String {
    time.map_or_else(|| "-".to_owned(), |time| time.to_string())
}

/// Returns a text that can neither control the terminal nor begin a line.
fn in_one_line(text: &str) -> String {
    printable(text).replace('\n', "\u{fffd}")
}

//! Accepting a command: the conversation that it belongs to, its job, its row and
//! its line of the audit, in one write.

use super::super::{
    gate::{self, Rules},
    inbound::{API, Accepted, Details, Inbound, Origin, Refusal},
};
use crate::{
    clock::Millis,
    id::{CommandId, ProjectId},
    store::{
        Conn,
        answered_requests::{self, AnsweredRequest},
        audit::{self, Entry},
        commands::{self, CommandKind, NewCommand},
        conversations::{self, Address},
        events::{Belonging, CommandRef},
        projects, sessions,
    },
    wishes::Wishes,
};

/// A command that somebody gives.
#[derive(Clone, Debug)]
pub(crate) struct Order {
    pub(crate) id: CommandId,
    pub(crate) project: ProjectId,
    pub(crate) kind: CommandKind,
    /// The name under which its events are read; its own id if none is given.
    pub(crate) stream: Option<String>,
    /// The prompt, or the command line.
    pub(crate) text: String,
    /// How its turn is run: agent, session and working directory among it.
    pub(crate) wishes: Wishes,
    /// What is run instead of an agent: a program and its arguments.
    pub(crate) words: Option<Vec<String>>,
    /// The id of the key.
    pub(crate) actor: String,
    /// What the audit says of it.
    pub(crate) entry: Entry,
}

/// Stores a command as a job. Done twice it is the same as once.
pub(crate) async fn accept(
    conn: &mut Conn,
    order: &Order,
    rules: &Rules,
    now: Millis,
) -> Result<Accepted, Refusal> {
    let Order { id, project, kind, text, wishes, actor, .. } = order;
    if let Some(known) = commands::find(conn, *id).await? {
        let conversation = known.command.conversation;
        return Ok(Accepted { conversation, job: (*id).into(), is_again: true });
    }
    if projects::find(conn, *project).await?.is_none() {
        return Err(Refusal::Project(*project));
    }
    let address = place(conn, order).await?;
    let conversation = conversations::find_or_begin(conn, &address, now).await?;
    conversations::set_project(conn, conversation.id, *project).await?;
    let stream = order.stream.clone().unwrap_or_else(|| id.to_string());
    let command = CommandRef { id: *id, stream: stream.clone() };
    let inbound = Inbound {
        address,
        sender: actor.clone(),
        message: None,
        text: text.clone(),
        wishes: wishes.clone(),
        origin: Origin::Command,
        details: Details::default(),
        belongs: Some(Belonging { project: *project, command: Some(command) }),
        words: order.words.clone(),
    };
    let accepted = gate::store_in(conn, (*id).into(), &conversation, &inbound, rules, now).await?;
    let command = NewCommand {
        id: *id,
        project: *project,
        conversation: conversation.id,
        kind: *kind,
        stream,
        agent: wishes.agent.clone(),
        text: text.clone(),
        actor: actor.clone(),
        created_at: now,
    };
    commands::add(conn, &command).await?;
    audit::add(conn, &order.entry).await?;
    Ok(accepted)
}

/// Returns where a command belongs: to the conversation that has its session, or
/// to one of its own. So sessions of a project do not wait for each other, and
/// what is said in one of them is said in its order.
async fn place(conn: &mut Conn, order: &Order) -> Result<Address, Refusal> {
    let Order { id, project, wishes, .. } = order;
    let Some(session) = &wishes.session else {
        return Ok(Address::new(API, &format!("{project}/{id}"))?);
    };
    if let Some(found) = sessions::conversation_of(conn, *project, session).await?
        && let Some(conversation) = conversations::find(conn, found).await?
    {
        return Ok(conversation.address);
    }
    // Who may speak in this project may not read what was said elsewhere.
    if sessions::is_elsewhere(conn, *project, session).await? {
        return Err(Refusal::Session(session.clone()));
    }
    // One that only the agent knows has a place that is found again before its
    // first turn is over.
    Ok(Address::new(API, &format!("{project}/{session}"))?)
}

/// Accepts a command with the answer to who gave it, in one write; or returns the
/// answer that was given before under the same name, and does nothing.
pub(crate) async fn accept_once(
    conn: &mut Conn,
    order: &Order,
    answered: &AnsweredRequest,
    rules: &Rules,
    now: Millis,
) -> Result<Option<AnsweredRequest>, Refusal> {
    let before = answered_requests::keep(conn, answered).await?;
    if before.is_none() {
        accept(conn, order, rules, now).await?;
    }
    Ok(before)
}

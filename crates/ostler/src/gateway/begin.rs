//! The beginning of a job: what is found in the store when it is claimed, and
//! what is written in the same transaction.

use std::sync::Arc;

use ostler_core::{agent::AgentRef, failure::FailureKind, memo::Memo, request::Thinking};

use super::{
    commands,
    inbound::{COMMAND, HEARTBEAT, Origin, PROGRAM, PROMPT, Payload, RESET},
    policy::Policy,
    program::{self, Program},
    record::Whose,
    text,
};
use crate::{
    clock::Millis,
    config::Busy,
    hooks::happening::Reason,
    id::{CommandId, ConversationId, JobId, ProjectId, TurnId},
    queue::Job,
    schedule::heartbeat::{self, Skip},
    store::{
        Conn, StoreError, commands as stored_commands,
        conversations::{self, Address, Conversation},
        events::Belonging,
        jobs, permissions, projects,
        sessions::{self, Session},
        turns::{self, NewTurn, StoredTurn, TurnState},
    },
};

/// How many messages may be answered at once, and how long they may be together.
pub(crate) const TOGETHER: u32 = 20;
const LONGEST: usize = 64 * 1024;

/// What a claim is made with.
#[derive(Clone, Debug)]
pub(crate) struct Claim {
    pub(crate) policy: Arc<Policy>,
    /// What its turn will be called.
    pub(crate) turn: TurnId,
    pub(crate) now: Millis,
}

/// What there is to do.
#[derive(Debug)]
pub(crate) enum Begun {
    Turn(Box<Beginning>),
    /// A program is run instead of an agent.
    Program(Box<Program>),
    /// The conversation begins afresh; this session ends.
    Reset(Place, Option<String>),
    /// A fixed text is the answer.
    Fixed(Place, String),
    /// A heartbeat that is not made after all.
    Skipped(Place, Skip),
    /// Nothing can come of it.
    Unusable(Option<Place>, String),
}

impl Begun {
    /// Returns the command that it is.
    pub(crate) fn command(&self) -> Option<CommandId> {
        let place = match self {
            Self::Turn(beginning) => &beginning.place,
            Self::Program(program) => &program.place,
            Self::Reset(place, _) | Self::Fixed(place, _) | Self::Skipped(place, _) => place,
            Self::Unusable(place, _) => place.as_ref()?,
        };
        place.belongs.as_ref()?.command.as_ref().map(|command| command.id)
    }
}

/// Whom a job is for.
#[derive(Clone, Debug)]
pub(crate) struct Place {
    pub(crate) conversation: ConversationId,
    /// Where the reply goes.
    pub(crate) target: Address,
    pub(crate) sender: String,
    pub(crate) origin: Origin,
    pub(crate) belongs: Option<Belonging>,
}

impl Place {
    /// Returns the project that it belongs to.
    pub(crate) fn project(&self) -> Option<ProjectId> {
        self.belongs.as_ref().map(|belongs| belongs.project)
    }

    /// Returns whose the events are that happen there.
    pub(crate) fn whose(&self) -> Whose<'_> {
        Whose { conversation: self.conversation, belongs: self.belongs.as_ref() }
    }
}

/// A turn that begins.
#[derive(Debug)]
pub(crate) struct Beginning {
    pub(crate) place: Place,
    pub(crate) payload: Payload,
    pub(crate) agent: AgentRef,
    /// What was set for the conversation, as far as the agent is concerned.
    pub(crate) set: Set,
    /// What is known of the session that goes on.
    pub(crate) memo: Option<Memo>,
    /// How earlier turns of the job failed.
    pub(crate) earlier: Vec<FailureKind>,
    /// Messages that are part of the prompt.
    pub(crate) joined: Vec<(JobId, Payload)>,
    /// Why the conversation begins afresh with it, and which session ends, if it does.
    pub(crate) reset: Option<(Reason, Option<String>)>,
}

impl Beginning {
    /// Returns the message with how its turn is to be run: as it wishes, else as
    /// was set for the conversation.
    pub(crate) fn wished(&self) -> Payload {
        let mut payload = self.payload.clone();
        let wishes = &mut payload.wishes;
        wishes.model = wishes.model.take().or_else(|| self.set.model.clone());
        wishes.thinking = wishes.thinking.or(self.set.thinking);
        payload
    }
}

/// What was set for a conversation, and counts unless a message wishes otherwise.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Set {
    pub(crate) model: Option<String>,
    pub(crate) thinking: Option<Thinking>,
}

/// Begins a job that was just claimed, within the same write.
pub(crate) async fn begin(conn: &mut Conn, job: &Job, claim: &Claim) -> Result<Begun, StoreError> {
    let unusable = |place, why: &str| Ok(Begun::Unusable(place, why.to_owned()));
    let Ok(id) = job.lane.as_str().parse() else {
        return unusable(None, "the job belongs to no conversation");
    };
    let Some(conversation) = conversations::find(conn, id).await? else {
        return unusable(None, "the job's conversation is gone");
    };
    let payload = match Payload::read(&job.payload) {
        Ok(payload) => payload,
        Err(why) => return unusable(None, &why),
    };
    let target = match Address::new(&payload.channel, &payload.address) {
        Ok(target) => target,
        Err(error) => return unusable(None, &error.to_string()),
    };
    let (sender, origin) = (payload.sender.clone(), payload.origin);
    let belongs = commands::begun(conn, payload.belongs.clone(), claim.now).await?;
    let place = Place { conversation: id, target, sender, origin, belongs };
    if let Some(belongs) = &place.belongs
        && projects::find(conn, belongs.project).await?.is_none()
    {
        return unusable(Some(place), "the project was deleted");
    }
    let history = history(conn, job, claim.now).await?;
    match job.kind.as_str() {
        RESET => {
            let ends = sessions::list(conn, id).await?.into_iter().next();
            return Ok(Begun::Reset(place, ends.map(|(_, session)| session.session)));
        }
        HEARTBEAT => {
            let policy = &claim.policy;
            let dropped = heartbeat::dropped(conn, job, &conversation, policy, claim.now);
            if let Some(skip) = dropped.await? {
                return Ok(Begun::Skipped(place, skip));
            }
        }
        PROGRAM => return begin_program(conn, job, claim, place, payload, &history).await,
        PROMPT | COMMAND => {}
        other => return unusable(Some(place), &format!("there are no jobs of kind {other:?}")),
    }
    let fixed = claim.policy.fixed_reply.as_ref();
    if let Some(text) = fixed.filter(|_| text::has_fixed_answer(&payload)) {
        return Ok(Begun::Fixed(place, text::fixed(text, &payload)));
    }
    let chosen = choose(conn, &conversation, &payload, &claim.policy).await?;
    let Chosen { agent, mut session, ends, is_another } = match chosen {
        Ok(chosen) => chosen,
        Err(why) => return unusable(Some(place), &why),
    };
    let set = Set {
        // It is a model of the agent who answered before.
        model: conversation.model.clone().filter(|_| !is_another),
        thinking: conversation.settings().thinking,
    };
    let has_failed = failures(&history).next().is_some();
    let mut reset = ends.map(|ends| (Reason::Agent, Some(ends)));
    // An earlier attempt may have begun the fresh session already.
    if let Some(fresh) = payload.fresh.filter(|_| history.is_empty()) {
        sessions::clear(conn, id).await?;
        let ends = session.take().map(|session| session.session);
        reset = Some((fresh.into(), reset.and_then(|(_, other)| other).or(ends)));
    }
    // A session that somebody named is gone on with at first; after a failure it
    // may have been dropped.
    let named = payload.wishes.session.as_deref().filter(|_| !has_failed);
    let memo = memo(session, &agent, named);
    let turn = NewTurn {
        id: claim.turn,
        conversation: id,
        job: Some(job.id),
        attempt: job.attempt,
        agent: agent.name.to_string(),
        begun_at: claim.now,
    };
    turns::begin(conn, &turn).await?;
    if payload.origin.is_aside() {
        turns::mark_aside(conn, turn.id).await?;
    }
    let joined = match claim.policy.rules.busy {
        // What failed together is tried alone.
        Busy::Combine if !has_failed => {
            let behind = jobs::waiting_behind(conn, &job.lane, TOGETHER).await?;
            joining(&payload, behind)
        }
        Busy::Combine | Busy::Queue | Busy::Steer | Busy::Interrupt => Vec::new(),
    };
    // A dead job that somebody revived begins to count anew.
    let n_failures = usize::try_from(job.failures).unwrap_or(0);
    let earlier = failures(&history).take(n_failures).collect();
    let beginning = Beginning { place, payload, agent, set, memo, earlier, joined, reset };
    Ok(Begun::Turn(Box::new(beginning)))
}

/// Begins a program. One that an earlier attempt began is not run again.
async fn begin_program(
    conn: &mut Conn,
    job: &Job,
    claim: &Claim,
    place: Place,
    payload: Payload,
    history: &[StoredTurn],
) -> Result<Begun, StoreError> {
    let command = place.belongs.as_ref().and_then(|belongs| belongs.command.as_ref());
    let command = match command {
        Some(command) => stored_commands::find(conn, command.id).await?,
        None => None,
    };
    let (Some(command), Some(words), Some(cwd)) = (command, payload.words, payload.wishes.cwd)
    else {
        let why = "it is not known which program to run".to_owned();
        return Ok(Begun::Unusable(Some(place), why));
    };
    let kind = command.command.kind;
    let turn = NewTurn {
        id: claim.turn,
        conversation: place.conversation,
        job: Some(job.id),
        attempt: job.attempt,
        agent: kind.as_str().to_owned(),
        begun_at: claim.now,
    };
    turns::begin(conn, &turn).await?;
    let limit = program::limit(payload.wishes.timeout_ms);
    let is_again = !history.is_empty();
    Ok(Begun::Program(Box::new(Program { place, kind, words, cwd, limit, is_again })))
}

/// Returns the earlier turns of a job, of which none runs any more.
async fn history(conn: &mut Conn, job: &Job, now: Millis) -> Result<Vec<StoredTurn>, StoreError> {
    if job.attempt == 1 {
        return Ok(Vec::new());
    }
    let history = turns::of_job(conn, job.id).await?;
    for turn in history.iter().filter(|turn| turn.state == TurnState::Running) {
        permissions::expire_turn(conn, turn.turn.id, now).await?;
    }
    turns::abandon(conn, job.id, job.attempt, now).await?;
    Ok(history)
}

/// Who answers, and the session that he has in the conversation.
struct Chosen {
    agent: AgentRef,
    session: Option<Session>,
    /// The session of another that ends with it.
    ends: Option<String>,
    /// Whether he is not the one who answered before.
    is_another: bool,
}

/// Chooses who answers. Whoever is named becomes the conversation's agent, and
/// nobody comes back to a session from before somebody else answered.
async fn choose(
    conn: &mut Conn,
    conversation: &Conversation,
    payload: &Payload,
    policy: &Policy,
) -> Result<Result<Chosen, String>, StoreError> {
    let named = payload.wishes.agent.as_deref();
    let agent = match policy.agents.resolve(named.or(conversation.agent.as_deref())) {
        Ok(agent) => agent,
        Err(why) => return Ok(Err(why)),
    };
    let now = policy.agents.resolve(conversation.agent.as_deref());
    let is_another = !now.is_ok_and(|now| now.name == agent.name);
    // If he cannot be run, his turn says so; the conversation stays with whom it is.
    let stays = is_another && !policy.can_run(&agent);
    let all = sessions::list(conn, conversation.id).await?;
    let (own, others): (Vec<_>, Vec<_>) = all.into_iter().partition(|(of, _)| *of == *agent.name);
    let mut session = own.into_iter().next().map(|(_, session)| session);
    let mut ends = others.into_iter().next().map(|(_, session)| session.session);
    if stays {
        ends = None;
    } else if is_another {
        // It ends all sessions.
        conversations::set_agent(conn, conversation.id, &agent.name).await?;
        ends = ends.or_else(|| session.take().map(|session| session.session));
        session = None;
    } else if ends.is_some() {
        sessions::forget_others(conn, conversation.id, &agent.name).await?;
    }
    Ok(Ok(Chosen { agent, session, ends, is_another }))
}

/// Returns what is known of the session that the turn goes on with.
fn memo(kept: Option<Session>, agent: &AgentRef, named: Option<&str>) -> Option<Memo> {
    let kept = kept.map(|session| {
        // A memo of another version is not understood; the id is enough to go on.
        let memo = serde_json::from_str(&session.memo);
        memo.unwrap_or_else(|_| Memo::of_id(agent.name.to_string(), session.session))
    });
    match named {
        Some(id) if kept.as_ref().is_none_or(|memo: &Memo| memo.id != id) => {
            Some(Memo::of_id(agent.name.to_string(), id))
        }
        Some(_) | None => kept,
    }
}

/// Returns those of the waiting messages that can be part of a prompt: the next
/// ones, up to the first that wants something else, goes elsewhere, or would make
/// it too long.
pub(crate) fn joining(first: &Payload, behind: Vec<Job>) -> Vec<(JobId, Payload)> {
    let spoken = |payload: &Payload| {
        payload.text.len() + payload.details.transcript.as_ref().map_or(0, String::len)
    };
    let mut length = spoken(first);
    let mut joins = |payload: &Payload| {
        length += spoken(payload);
        payload.fresh.is_none()
            && first.origin.is_spoken()
            && length <= LONGEST
            && payload.wishes == first.wishes
            && payload.origin == first.origin
            && payload.origin.is_spoken()
            // Each has a stream of its own.
            && payload.belongs.is_none()
            && (&payload.channel, &payload.address) == (&first.channel, &first.address)
    };
    let behind = behind.into_iter().map(|job| {
        let payload = Payload::read(&job.payload).ok();
        payload.filter(|payload| job.kind == PROMPT && joins(payload)).map(|it| (job.id, it))
    });
    behind.map_while(|joined| joined).collect()
}

/// Returns how earlier turns failed, the last one first. One that was cancelled
/// because its gateway stopped is none of them.
fn failures(history: &[StoredTurn]) -> impl Iterator<Item = FailureKind> {
    let failures = history.iter().rev().filter_map(failure_of);
    failures.filter(|kind| *kind != FailureKind::Cancelled)
}

/// Returns how a turn failed, if it ended and did.
fn failure_of(turn: &StoredTurn) -> Option<FailureKind> {
    #[derive(serde::Deserialize)]
    struct Report {
        error: Option<Kind>,
    }
    #[derive(serde::Deserialize)]
    struct Kind {
        kind: String,
    }
    let report: Report = serde_json::from_str(turn.result.as_deref()?).ok()?;
    let kind = report.error?.kind;
    FailureKind::ALL.into_iter().find(|known| known.code() == kind)
}

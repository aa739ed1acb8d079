//! One connection to the gateway: what is asked is done, one thing after the
//! other, and what is followed is told meanwhile.
//!
//! Whoever does not read stops only himself: what is to be told is read from
//! the store when it can be written.

use std::time::Duration;

use serde_json::value::RawValue;
use tokio::{
    io::{AsyncWriteExt as _, BufReader},
    net::{
        UnixStream,
        unix::{OwnedReadHalf, OwnedWriteHalf},
    },
    time,
};
use tokio_util::sync::CancellationToken;

use super::{
    lines::{LineError, LineReader},
    message::{
        Accepted, Cancel, Cancelled, Delivered, Ended, Event, Follow, Hello, MAX_LINE,
        MAX_PROMPT_LINE, Message, PROTOCOL, Refused, Reply, Request, Skipped,
    },
};
use crate::{
    gateway::{
        Gateway,
        asking::{Actor, AnswerError},
        follow::{Ending, Followed, Of},
        inbound::{Inbound, Origin},
    },
    id::JobId,
    outbound::Outgoing,
    queue::LaneCancel,
    schedule::heartbeat::Made,
    store::{StoreError, conversations::Address, events::StoredEvent},
};

/// The name of whoever is at the socket: nobody else can open it.
const OPERATOR: &str = "operator";
/// Who a message is from, unless that is said.
const SENDER: &str = "local";
/// How much is written at once.
const WRITE: usize = 64 * 1024;
/// The wait after the store could not be asked.
const PAUSE: Duration = Duration::from_secs(1);

/// Somebody who is connected.
pub(super) struct Caller {
    lines: LineReader<BufReader<OwnedReadHalf>>,
    to: OwnedWriteHalf,
    gateway: Gateway,
    stopping: CancellationToken,
}

/// The connection is over, and why is nobody's business.
struct Over;

impl From<std::io::Error> for Over {
    fn from(_: std::io::Error) -> Self {
        Self
    }
}

impl Caller {
    pub(super) fn new(stream: UnixStream, gateway: Gateway, stopping: CancellationToken) -> Self {
        let (from, to) = stream.into_split();
        let lines = LineReader::new(BufReader::new(from), MAX_PROMPT_LINE);
        Self { lines, to, gateway, stopping }
    }

    /// Does what is asked until the connection ends.
    pub(super) async fn talk(mut self) {
        let hello = Hello {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            protocol: PROTOCOL,
            pid: std::process::id(),
        };
        if self.say(&Reply::Hello(hello)).await.is_err() {
            return;
        }
        loop {
            let line = tokio::select! {
                line = self.lines.next() => line,
                () = self.stopping.cancelled() => return,
            };
            let done = match self.understand(line).await {
                Ok(Some(Request::Follow(follow))) => self.follow(follow).await,
                Ok(Some(request)) => self.obey(request).await,
                Ok(None) => Ok(()),
                Err(over) => Err(over),
            };
            if done.is_err() {
                return;
            }
        }
    }

    /// Reads a line. One that is not understood is refused, and nothing else
    /// comes of it; one that is too long ends the connection.
    async fn understand(
        &mut self,
        line: Result<Option<Vec<u8>>, LineError>,
    ) -> Result<Option<Request>, Over> {
        let line = match line {
            Ok(Some(line)) => line,
            Ok(None) | Err(LineError::Io(_)) => return Err(Over),
            Err(LineError::TooLong { .. }) => return Err(self.too_long().await),
        };
        if line.iter().all(u8::is_ascii_whitespace) {
            return Ok(None);
        }
        let request = Request::read(&line);
        if line.len() > MAX_LINE && !matches!(request, Ok(Request::Send(_) | Request::Deliver(_))) {
            return Err(self.too_long().await);
        }
        match request {
            Ok(request) => Ok(Some(request)),
            Err(error) => {
                self.say(&refused("invalid_request", error)).await?;
                Ok(None)
            }
        }
    }

    async fn too_long(&mut self) -> Over {
        let mib = 1024 * 1024;
        let why = format!(
            "a line is too long: {} MiB are taken, {} with a prompt",
            MAX_LINE / mib,
            MAX_PROMPT_LINE / mib
        );
        // Whoever does not hear it sees the end.
        self.say(&refused("invalid_request", why)).await.ok();
        Over
    }

    /// Does what is asked, and says what came of it.
    async fn obey(&mut self, request: Request) -> Result<(), Over> {
        let reply = match request {
            Request::Send(message) => self.accept(*message).await,
            Request::Answer { request, answer } => {
                let by = Actor::Operator(OPERATOR.to_owned());
                match self.gateway.answer(request, answer, by).await {
                    Ok(()) => Reply::Answered { outcome: "taken" },
                    Err(error) => refused(code(&error), error),
                }
            }
            Request::Cancel(Cancel::Job(job)) => match self.gateway.cancel_job(job).await {
                Ok(outcome) => Reply::Cancelled(Cancelled {
                    outcome: outcome.word().to_owned(),
                    ..Cancelled::default()
                }),
                Err(error) => store_failed(&error),
            },
            Request::Cancel(Cancel::Conversation(conversation)) => {
                match self.gateway.cancel_conversation(conversation).await {
                    Ok(outcome) => Reply::Cancelled(lane_cancelled(outcome)),
                    Err(error) => store_failed(&error),
                }
            }
            Request::Heartbeat(conversation) => self.heartbeat(conversation).await,
            Request::Status => Reply::Status(Box::new(self.gateway.standing().await)),
            Request::Look => {
                self.gateway.look_again();
                Reply::Looked
            }
            Request::Deliver(outgoing) => self.deliver(*outgoing).await,
            Request::Follow(_) => refused("following", "one thing is followed at a time"),
        };
        self.say(&reply).await
    }

    async fn accept(&self, message: Message) -> Reply {
        let Message { conversation, text, id, sender, wishes, is_bare, details } = message;
        let inbound = Inbound {
            address: conversation,
            sender: sender.unwrap_or_else(|| SENDER.to_owned()),
            message: id,
            text,
            wishes,
            origin: if is_bare { Origin::Run } else { Origin::Person },
            details,
            belongs: None,
            words: None,
        };
        match self.gateway.accept(inbound).await {
            Ok(accepted) => Reply::Accepted(Accepted {
                job: accepted.job,
                conversation: accepted.conversation,
                again: accepted.is_again,
            }),
            Err(refusal) => refused(refusal.code(), refusal),
        }
    }

    async fn heartbeat(&self, conversation: Option<Address>) -> Reply {
        match self.gateway.heartbeat(conversation).await {
            Ok(Made::Job { job, conversation }) => {
                Reply::Accepted(Accepted { job, conversation, again: false })
            }
            Ok(Made::Skipped(skip)) => {
                let (reason, message) = (skip.code().to_owned(), skip.to_string());
                Reply::Skipped(Skipped { reason, message })
            }
            // Only slots of time can have been before.
            Ok(Made::Before) => refused("invalid_request", "there was this heartbeat before"),
            Err(refusal) => refused(refusal.code(), refusal),
        }
    }

    async fn deliver(&self, outgoing: Outgoing) -> Reply {
        match self.gateway.deliver(outgoing).await {
            Ok(delivered) => Reply::Delivered(Delivered {
                message: delivered.message,
                conversation: delivered.conversation,
                again: delivered.is_again,
            }),
            Err(refusal) => refused(refusal.code(), refusal),
        }
    }

    async fn follow(&mut self, follow: Follow) -> Result<(), Over> {
        match follow {
            Follow::Job(job) => self.follow_job(job).await,
            Follow::Log { conversation, after } => {
                let of = conversation.map_or(Of::Everything, Of::Conversation);
                self.follow_log(of, after).await
            }
        }
    }

    /// Tells of a job until it has ended.
    async fn follow_job(&mut self, job: JobId) -> Result<(), Over> {
        let mut follower = self.gateway.follow(job);
        loop {
            // All of these can be dropped half-way without losing anything.
            let followed = tokio::select! {
                followed = follower.next() => followed,
                line = self.lines.next() => {
                    self.meanwhile(line).await?;
                    continue;
                }
                () = self.stopping.cancelled() => {
                    while let Ok(Some(followed)) = follower.now().await {
                        let is_end = !matches!(followed, Followed::Events(_));
                        self.tell(job, followed).await?;
                        if is_end {
                            break;
                        }
                    }
                    return Err(Over);
                }
            };
            match followed {
                Ok(followed @ Followed::Events(_)) => self.tell(job, followed).await?,
                Ok(followed) => return self.tell(job, followed).await,
                Err(error) => self.wait_for_store(&error).await?,
            }
        }
    }

    async fn tell(&mut self, job: JobId, followed: Followed) -> Result<(), Over> {
        match followed {
            Followed::Events(events) => self.tell_events(events).await,
            Followed::Ended(ending) => self.say(&Reply::Ended(ended(ending))).await,
            Followed::Unknown => {
                self.say(&refused("unknown_job", format!("there is no job {job}"))).await
            }
        }
    }

    /// Tells of the log for ever.
    async fn follow_log(&mut self, of: Of, after: i64) -> Result<(), Over> {
        let mut reader = self.gateway.reader(of, after);
        loop {
            // Who wants everything there is misses nothing that is not there.
            if reader.position() > 0
                && let Ok(Some(number)) = reader.missed().await
            {
                self.say(&Reply::Missed { number }).await?;
            }
            let events = tokio::select! {
                events = reader.next() => events,
                line = self.lines.next() => {
                    self.meanwhile(line).await?;
                    continue;
                }
                () = self.stopping.cancelled() => {
                    while let Ok(events) = reader.page().await
                        && !events.is_empty()
                    {
                        self.tell_events(events).await?;
                    }
                    return Err(Over);
                }
            };
            match events {
                Ok(events) => self.tell_events(events).await?,
                Err(error) => self.wait_for_store(&error).await?,
            }
        }
    }

    /// Does what may be asked while something is followed.
    async fn meanwhile(&mut self, line: Result<Option<Vec<u8>>, LineError>) -> Result<(), Over> {
        match self.understand(line).await? {
            None => Ok(()),
            Some(request @ (Request::Answer { .. } | Request::Cancel(_))) => {
                self.obey(request).await
            }
            Some(
                Request::Send(_)
                | Request::Deliver(_)
                | Request::Follow(_)
                | Request::Heartbeat(_)
                | Request::Status
                | Request::Look,
            ) => {
                let why = "this connection follows something; it takes `answer` and `cancel`";
                self.say(&refused("following", why)).await
            }
        }
    }

    /// Waits before the store is asked again. An error that will not pass is
    /// told, and the connection ended: nothing can be told any more.
    async fn wait_for_store(&mut self, error: &StoreError) -> Result<(), Over> {
        if error.is_passing() {
            time::sleep(PAUSE).await;
            return Ok(());
        }
        self.say(&store_failed(error)).await?;
        Err(Over)
    }

    async fn tell_events(&mut self, events: Vec<StoredEvent>) -> Result<(), Over> {
        let mut text = String::new();
        for StoredEvent { number, event } in events {
            write_line(&mut text, &Reply::Event(Event { number, event: as_stored(event.body) }));
            if text.len() >= WRITE {
                self.to.write_all(text.as_bytes()).await?;
                text.clear();
            }
        }
        Ok(self.to.write_all(text.as_bytes()).await?)
    }

    async fn say(&mut self, reply: &Reply) -> Result<(), Over> {
        let mut text = String::new();
        write_line(&mut text, reply);
        Ok(self.to.write_all(text.as_bytes()).await?)
    }
}

fn write_line(text: &mut String, reply: &Reply) {
    match serde_json::to_string(reply) {
        Ok(line) => {
            text.push_str(&line);
            text.push('\n');
        }
        // All of them can be written.
        Err(error) => tracing::error!(%error, "something could not be said on the socket"),
    }
}

/// Takes a stored JSON text as it is. It is one line, whoever wrote it, and what
/// is no JSON is a text.
fn as_stored(body: String) -> Box<RawValue> {
    let body = if body.contains('\n') { body.replace('\n', " ") } else { body };
    let text = |body: &str| serde_json::value::to_raw_value(body).unwrap_or_default();
    match serde_json::from_str::<&RawValue>(&body) {
        Ok(_) => RawValue::from_string(body).unwrap_or_default(),
        Err(_) => text(&body),
    }
}

fn ended(ending: Ending) -> Ended {
    let Ending { job, state, reason, report, .. } = ending;
    Ended { job, state: state.to_string(), reason, complete: report.map(as_stored) }
}

fn lane_cancelled(LaneCancel { n_cancelled, running }: LaneCancel) -> Cancelled {
    let outcome = match (running, n_cancelled) {
        (Some(_), _) => "cancel_requested",
        (None, 0) => "nothing_to_cancel",
        (None, _) => "cancelled",
    };
    Cancelled { outcome: outcome.to_owned(), waiting: n_cancelled, running }
}

fn code(error: &AnswerError) -> &'static str {
    match error {
        AnswerError::Unknown => "unknown_request",
        AnswerError::NotYours => "forbidden",
        AnswerError::Again(_) | AnswerError::Before(_) => "decided",
        AnswerError::Late => "expired",
        AnswerError::Store(_) => "store",
    }
}

fn refused(code: &str, message: impl ToString) -> Reply {
    Reply::Refused(Refused { code: code.to_owned(), message: message.to_string() })
}

fn store_failed(error: &StoreError) -> Reply {
    refused("store", error.chain())
}

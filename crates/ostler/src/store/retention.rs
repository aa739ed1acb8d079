//! Clearing away what is long over: which rows, for how long they are kept, and
//! in which portions. What each table removes is in its own file.

use std::time::Duration;

use super::{
    Conn, Store, StoreError, answered_requests, audit, commands, contacts, events, jobs,
    jobs::{
        Came,
        Over::{Dead, DoneOrCancelled},
    },
    messages::{self, Removable},
    outbox, overheard, pairings, permissions, posts, turns, webhooks,
};
use crate::clock::Millis;

/// How much is removed in one transaction, so that others need not wait long.
const BATCH: u32 = 500;
const DAY: Duration = Duration::from_secs(24 * 60 * 60);
/// For how long a request that was answered is known. Part of the contract.
const ANSWERED: Duration = DAY;
/// For how long the names of messages are known that came by signed calls. Such a call bears
/// no date: whoever got hold of one could let somebody say again what he said then.
const SIGNED: Duration = DAY.saturating_mul(365);

/// For how long to keep what is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Keep {
    /// Jobs that are done or cancelled, the names of messages, replies, turns,
    /// permission requests and deleted webhooks. A message that comes again later than this is
    /// a new one, unless it came by a signed call.
    pub(crate) ended: Duration,
    /// Dead jobs, which somebody should have a look at, the audit, and when people wrote.
    pub(crate) dead: Duration,
    /// The event log; nothing for as long as the store.
    pub(crate) events: Option<Duration>,
    /// The message history, and what of it may go; nothing for as long as the store.
    pub(crate) history: Option<(Duration, Removable)>,
}

impl Default for Keep {
    fn default() -> Self {
        Self { ended: 7 * DAY, dead: 30 * DAY, events: Some(7 * DAY), history: None }
    }
}

/// Something that is removed when it is old.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum What {
    EndedJobs,
    DeadJobs,
    Messages(Came),
    Outbox,
    Webhooks,
    Requests,
    Commands,
    Events,
    Turns,
    Posts,
    Overheard,
    /// When people wrote, strangers too.
    Contacts,
    Audit,
    AnsweredRequests,
    /// Strangers whose code has expired.
    Pairings,
    History(Removable),
}

/// Everything but the history, webhooks and turns after what they wait for.
const ALL: [What; 16] = [
    What::EndedJobs,
    What::DeadJobs,
    What::Messages(Came::Otherwise),
    What::Messages(Came::Signed),
    What::Outbox,
    What::Webhooks,
    What::Requests,
    What::Commands,
    What::Events,
    What::Turns,
    What::Posts,
    What::Overheard,
    What::Contacts,
    What::Audit,
    What::AnsweredRequests,
    What::Pairings,
];

impl Store {
    /// Removes what is long over, and returns how many rows that were.
    pub(crate) async fn clean_up(&self, keep: Keep, now: Millis) -> Result<u64, StoreError> {
        let mut n_removed = 0;
        let history = keep.history.map(|(_, which)| What::History(which));
        for what in ALL.into_iter().chain(history) {
            let Some(kept) = keep.of(what) else { continue };
            loop {
                let args = (what, now.before(kept));
                let n_now = self.write_repeatable(args, |conn, (what, before)| {
                    Box::pin(what.remove(conn, *before))
                });
                match n_now.await? {
                    0 => break,
                    n_now => n_removed += n_now,
                }
            }
        }
        Ok(n_removed)
    }
}

impl Keep {
    fn of(self, what: What) -> Option<Duration> {
        match what {
            What::EndedJobs
            | What::Messages(Came::Otherwise)
            | What::Outbox
            | What::Webhooks
            | What::Requests
            | What::Commands
            | What::Posts
            | What::Overheard
            | What::Turns => Some(self.ended),
            What::DeadJobs | What::Audit | What::Contacts => Some(self.dead),
            What::Messages(Came::Signed) => Some(SIGNED),
            What::AnsweredRequests => Some(ANSWERED),
            What::Pairings => Some(Duration::ZERO),
            What::Events => self.events,
            What::History(_) => self.history.map(|(kept, _)| kept),
        }
    }
}

impl What {
    async fn remove(self, conn: &mut Conn, before: Millis) -> Result<u64, StoreError> {
        match self {
            Self::EndedJobs => jobs::remove_before(conn, DoneOrCancelled, before, BATCH).await,
            Self::DeadJobs => jobs::remove_before(conn, Dead, before, BATCH).await,
            Self::Messages(came) => jobs::forget_messages(conn, came, before, BATCH).await,
            Self::Outbox => outbox::remove_before(conn, before, BATCH).await,
            Self::Posts => posts::remove_before(conn, before, BATCH).await,
            Self::Overheard => overheard::remove_before(conn, before, BATCH).await,
            Self::Contacts => contacts::remove_before(conn, before, BATCH).await,
            Self::Webhooks => webhooks::remove_before(conn, before, BATCH).await,
            Self::Requests => permissions::remove_before(conn, before, BATCH).await,
            Self::Commands => commands::remove_before(conn, before, BATCH).await,
            Self::Events => events::remove_before(conn, before, BATCH).await,
            Self::Turns => turns::remove_before(conn, before, BATCH).await,
            Self::Audit => audit::remove_before(conn, before, BATCH).await,
            Self::AnsweredRequests => answered_requests::remove_before(conn, before, BATCH).await,
            Self::Pairings => pairings::remove_expired(conn, before, BATCH).await,
            Self::History(which) => messages::remove_before(conn, which, before, BATCH).await,
        }
    }
}

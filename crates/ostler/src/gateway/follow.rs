//! Reading the event log, from any number on, live or later.
//!
//! A reader asks the store, never a buffer of its own: one that is slow, or
//! was away, misses nothing but what retention removed, and is told of that.

use crate::{
    clock::Millis,
    id::{ConversationId, JobId},
    queue::{Job, JobState},
    store::{
        Conn, Store, StoreError, Topic, Wakeups,
        events::{self, StoredEvent},
        jobs, turns,
    },
};

/// How many events are read at once.
const PAGE: u32 = 500;

/// Whose events to read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Of {
    Everything,
    Conversation(ConversationId),
    /// Those of a job's turns.
    Job(JobId),
}

/// Reads the log.
#[derive(Debug)]
pub(crate) struct Reader {
    store: Store,
    of: Of,
    after: i64,
    wakeups: Wakeups,
}

impl Reader {
    /// Reads what comes after a number; 0 for everything there is.
    pub(crate) fn new(store: Store, of: Of, after: i64) -> Self {
        let wakeups = store.wakeups(Topic::Events);
        Self { store, of, after, wakeups }
    }

    /// Returns the number up to which everything was read.
    pub(crate) fn position(&self) -> i64 {
        self.after
    }

    /// Returns the newest number that retention removed and that this reader
    /// had not read, if there is one. It goes on behind that.
    pub(crate) async fn missed(&mut self) -> Result<Option<i64>, StoreError> {
        let extent = self.store.read((), |conn, ()| Box::pin(events::extent(conn))).await?;
        if extent.removed <= self.after {
            return Ok(None);
        }
        self.after = extent.removed;
        Ok(Some(extent.removed))
    }

    /// Reads what is there, at most a page; nothing if there is nothing new.
    pub(crate) async fn page(&mut self) -> Result<Vec<StoredEvent>, StoreError> {
        let args = (self.of, self.after);
        let page = self.store.read(args, |conn, (of, after)| {
            Box::pin(async move {
                match of {
                    Of::Everything => events::read(conn, *after, PAGE).await,
                    Of::Conversation(id) => events::read_of(conn, *id, *after, PAGE).await,
                    Of::Job(id) => events::read_job(conn, *id, *after, PAGE).await,
                }
            })
        });
        let page = page.await?;
        if let Some(last) = page.last() {
            self.after = last.number;
        }
        Ok(page)
    }

    /// Waits until there may be more. Cancel-safe.
    pub(crate) async fn wait(&mut self) {
        self.wakeups.next().await;
    }

    /// Reads the next events, and waits for them if need be. Cancel-safe: what
    /// was not returned is read again.
    pub(crate) async fn next(&mut self) -> Result<Vec<StoredEvent>, StoreError> {
        loop {
            let page = self.page().await?;
            if !page.is_empty() {
                return Ok(page);
            }
            self.wait().await;
        }
    }
}

/// How a job ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Ending {
    pub(crate) job: JobId,
    pub(crate) state: JobState,
    pub(crate) reason: Option<String>,
    /// The report of the turn that answered it, as JSON, if one did.
    pub(crate) report: Option<String>,
    pub(crate) at: Option<Millis>,
}

/// What somebody who follows a job is told.
#[derive(Debug)]
pub(crate) enum Followed {
    Events(Vec<StoredEvent>),
    Ended(Ending),
    /// There is no such job.
    Unknown,
}

/// Follows a job to its end.
#[derive(Debug)]
pub(crate) struct Follower {
    job: JobId,
    reader: Reader,
    jobs: Wakeups,
    /// Whether there was nothing more when it was last looked at.
    is_current: bool,
    /// How it ended, when what was said before it has to be told first.
    ended: Option<Ending>,
}

/// What one look at a job shows.
struct Look {
    page: Vec<StoredEvent>,
    ended: Option<Ending>,
}

impl Follower {
    pub(crate) fn new(store: Store, job: JobId) -> Self {
        let jobs = store.wakeups(Topic::Jobs);
        let reader = Reader::new(store, Of::Job(job), 0);
        Self { job, reader, jobs, is_current: false, ended: None }
    }

    /// Returns the next events, or the end after the last of them. Cancel-safe.
    pub(crate) async fn next(&mut self) -> Result<Followed, StoreError> {
        loop {
            if self.is_current && self.ended.is_none() {
                tokio::select! {
                    () = self.reader.wait() => {}
                    _ = self.jobs.next() => {}
                }
                self.is_current = false;
            }
            if let Some(followed) = self.now().await? {
                return Ok(followed);
            }
        }
    }

    /// Returns the same if it is there, and does not wait for it. Cancel-safe.
    pub(crate) async fn now(&mut self) -> Result<Option<Followed>, StoreError> {
        if let Some(ended) = self.ended.take() {
            return Ok(Some(Followed::Ended(ended)));
        }
        let args = (self.job, self.reader.after);
        let look =
            self.reader.store.read(args, |conn, (job, after)| Box::pin(look(conn, *job, *after)));
        let Some(Look { page, ended }) = look.await? else { return Ok(Some(Followed::Unknown)) };
        let is_all = page.len() < PAGE as usize;
        self.is_current = is_all;
        let Some(last) = page.last() else { return Ok(ended.map(Followed::Ended)) };
        self.reader.after = last.number;
        self.ended = ended.filter(|_| is_all);
        Ok(Some(Followed::Events(page)))
    }
}

/// Looks at a job: what was said since, and how it ended if it has. Nothing, if
/// there is no such job.
async fn look(conn: &mut Conn, id: JobId, after: i64) -> Result<Option<Look>, StoreError> {
    // Looked at before the events: those of an ended job are all there.
    let Some(job) = jobs::find(conn, id).await? else { return Ok(None) };
    let page = events::read_job(conn, id, after, PAGE).await?;
    if !job.state.is_over() {
        return Ok(Some(Look { page, ended: None }));
    }
    let answered_by = super::joined::answering(job.reason.as_deref()).unwrap_or(job.id);
    let turns = turns::of_job(conn, answered_by).await?;
    let report = turns.into_iter().rev().find_map(|turn| turn.result);
    let Job { id, state, reason, ended_at, .. } = job;
    let ended = Ending { job: id, state, reason, report, at: ended_at };
    Ok(Some(Look { page, ended: Some(ended) }))
}

//! The archive: what was said, as pages that people can read, one for each
//! conversation and day.
//!
//! The history in the store comes first. One task writes to files what is not
//! there yet, and then notes that it is; so a disk that is full or away holds
//! up nothing but the archive. Of several gateways one does it.

mod entry;
mod page;
mod path;
#[cfg(test)]
mod tests;

use std::{
    collections::{BTreeMap, BTreeSet},
    io,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use thiserror::Error;
use tokio::{
    sync::watch,
    time::{self, Instant},
};
use tokio_util::sync::CancellationToken;

pub(crate) use self::entry::{who, words};
use self::page::Page;
use crate::{
    background::Background,
    clock::Millis,
    config,
    gateway::policy::Policy,
    id::MessageId,
    store::{
        Store, StoreError, duties,
        messages::{self, Removable, Unarchived},
    },
};

/// How often it is looked whether there is something new.
const LOOK: Duration = Duration::from_secs(2);
/// The wait after something went wrong.
const AGAIN: Duration = Duration::from_secs(10);
/// How many messages are written at once. Each may be long.
const BATCH: u32 = 20;
/// After how much silence of a gateway another writes the archive.
const LEASE: Duration = Duration::from_secs(60);

/// What is kept of what was said, as configured. By default nothing is written to
/// files, and nothing is removed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Keeping {
    /// Where the pages are, if there are any.
    pub(crate) dir: Option<PathBuf>,
    /// For how long the history is kept; `None` for ever.
    pub(crate) retention: Option<Duration>,
}

impl Keeping {
    /// Takes what is configured.
    pub(crate) fn new(config: &config::Archive, data_dir: &Path) -> Self {
        let dir = config.dir.clone().unwrap_or_else(|| data_dir.join("archive"));
        Self { dir: config.enabled.then_some(dir), retention: config.history_retention }
    }

    /// Returns for how long the history is kept, and what of it may go then: with
    /// an archive, only what is in it.
    pub(crate) fn kept(&self) -> Option<(Duration, Removable)> {
        let which = if self.dir.is_some() { Removable::Archived } else { Removable::All };
        self.retention.map(|retention| (retention, which))
    }
}

/// Why something is not in the archive yet.
#[derive(Debug, Error)]
enum Trouble {
    #[error("the history cannot be read or marked: {0}")]
    Store(#[from] StoreError),
    #[error("{} cannot be written: {source}", path.display())]
    Page { path: PathBuf, source: io::Error },
}

/// The task that writes the archive.
#[derive(Debug)]
pub(crate) struct Archivist(Background);

impl Archivist {
    /// Starts it. `name` is that of the gateway.
    pub(crate) fn start(store: Store, policy: watch::Receiver<Arc<Policy>>, name: &str) -> Self {
        let owner = name.to_owned();
        Self(Background::start(|stop| {
            work(Desk { store, owner, on_duty_until: None, stop }, policy)
        }))
    }

    /// Writes what is left, if that does not take too long, and ends.
    pub(crate) async fn stop(self, limit: Duration) {
        if !self.0.stop(limit).await {
            tracing::warn!("the archive is not complete; the next gateway goes on with it");
        }
    }
}

/// Writes until the gateway stops, and then what is left.
async fn work(mut desk: Desk, policy: watch::Receiver<Arc<Policy>>) {
    let mut is_in_trouble = false;
    let mut is_stopping = false;
    while !is_stopping {
        let pause = if is_in_trouble { AGAIN } else { LOOK };
        tokio::select! {
            () = desk.stop.cancelled() => is_stopping = true,
            () = time::sleep(pause) => {}
        }
        let Some(dir) = policy.borrow().archive.dir.clone() else { continue };
        match desk.catch_up(&dir).await {
            Ok(()) if is_in_trouble => {
                is_in_trouble = false;
                tracing::info!("the archive goes on");
            }
            Ok(()) => {}
            Err(trouble) => {
                if !std::mem::replace(&mut is_in_trouble, true) {
                    tracing::warn!("the archive has to wait: {trouble}");
                }
            }
        }
    }
    desk.leave().await;
}

/// Whoever writes.
#[derive(Debug)]
struct Desk {
    store: Store,
    owner: String,
    /// Until when no other gateway writes.
    on_duty_until: Option<Instant>,
    /// What is left has to be written soon.
    stop: CancellationToken,
}

impl Desk {
    /// Writes everything that is not in the archive. A page that cannot be written
    /// does not hold up the others.
    async fn catch_up(&mut self, dir: &Path) -> Result<(), Trouble> {
        let is_new = self.store.read((), |conn, ()| Box::pin(messages::has_unarchived(conn)));
        if !is_new.await? {
            return Ok(());
        }
        let mut broken = BTreeSet::new();
        let mut trouble = None;
        let mut after = None;
        while self.is_on_duty().await? {
            let begun = Instant::now();
            let batch = self
                .store
                .read(after, |conn, after| Box::pin(messages::unarchived(conn, *after, BATCH)));
            let batch = batch.await?;
            let Some(last) = batch.last() else { break };
            after = Some(last.message.id);
            let mut written = Vec::new();
            for (path, page) in pages(dir, batch) {
                // What comes later would stand before what is missing.
                if broken.contains(&path) {
                    continue;
                }
                let ids: Vec<MessageId> = page.entries.iter().map(|(id, _)| *id).collect();
                match write(path.clone(), page).await {
                    Ok(()) => written.extend(ids),
                    Err(source) => {
                        broken.insert(path.clone());
                        trouble.get_or_insert(Trouble::Page { path, source });
                    }
                }
            }
            if !written.is_empty() {
                let noted = self
                    .store
                    .write_repeatable(written, |conn, ids| Box::pin(messages::archived(conn, ids)));
                noted.await.map_err(Trouble::Store)?;
            }
            // Half of the time the disk is for others.
            self.stop.run_until_cancelled(time::sleep(begun.elapsed())).await;
        }
        trouble.map_or(Ok(()), Err)
    }

    /// Returns whether it is this gateway that writes, and sees to it that it stays so.
    async fn is_on_duty(&mut self) -> Result<bool, StoreError> {
        let now = Instant::now();
        if self.on_duty_until.is_some_and(|until| now + LEASE / 2 < until) {
            return Ok(true);
        }
        let args = (self.owner.clone(), Millis::now());
        let taken = self.store.write_repeatable(args, |conn, (owner, now)| {
            Box::pin(duties::take(conn, duties::ARCHIVE, owner, *now, LEASE))
        });
        let is_taken: bool = taken.await?;
        self.on_duty_until = is_taken.then(|| now + LEASE);
        Ok(is_taken)
    }

    /// Lets another gateway write at once.
    async fn leave(self) {
        if self.on_duty_until.is_none() {
            return;
        }
        let left: Result<(), StoreError> = self
            .store
            .write_repeatable(self.owner, |conn, owner| {
                Box::pin(duties::give_back(conn, duties::ARCHIVE, owner))
            })
            .await;
        if let Err(error) = left {
            tracing::debug!(%error, "the duty to write the archive is over with its lease");
        }
    }
}

/// Puts messages onto their pages, each in the order of its conversation.
fn pages(dir: &Path, mut batch: Vec<Unarchived>) -> BTreeMap<PathBuf, Page> {
    batch.sort_by_key(|one| (one.message.conversation, one.message.number, one.message.id));
    let mut pages = BTreeMap::new();
    for one in &batch {
        let day = path::day(one.message.at);
        let path = path::page(dir, one, &day);
        let page = pages.entry(path).or_insert_with(|| Page {
            title: entry::title(&path::name(&one.channel, &one.name), &day),
            entries: Vec::new(),
        });
        page.entries.push((one.message.id, entry::entry(&one.message)));
    }
    pages
}

/// Writes a page beside the tasks that must not wait for a disk.
async fn write(path: PathBuf, page: Page) -> io::Result<()> {
    let written = tokio::task::spawn_blocking(move || page::append(&path, &page));
    written.await.unwrap_or_else(|error| Err(io::Error::other(error)))
}

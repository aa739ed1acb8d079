//! The newest events in memory, and where somebody stands who reads them. Pure:
//! nothing here waits or asks the store.

use std::collections::VecDeque;

use axum::body::Bytes;

use crate::{
    id::ProjectId,
    store::events::{Belonging, Portion, Selection, StoredEvent},
};

/// The most that is kept in memory.
const EVENTS: usize = 4096;
const BYTES: usize = 16 * 1024 * 1024;
/// How much a reader is given at once. A single event may be longer.
pub(super) const CHUNK: usize = 16 * 1024;

/// An event of a project, ready to be sent to any number of readers.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    pub(super) number: i64,
    pub(super) project: ProjectId,
    pub(super) stream: Option<Box<str>>,
    pub(super) frame: Bytes,
}

impl Entry {
    /// Returns nothing of what belongs to no project: nobody can ask for it.
    pub(super) fn new(stored: &StoredEvent, frame: Bytes) -> Option<Self> {
        let Belonging { project, command } = stored.event.belongs.as_ref()?;
        let stream = command.as_ref().map(|command| command.stream.as_str().into());
        Some(Self { number: stored.number, project: *project, stream, frame })
    }

    fn is_of(&self, selection: &Selection) -> bool {
        match selection {
            Selection::Everything => true,
            Selection::Project(project) => self.project == *project,
            Selection::Stream(project, stream) => {
                self.project == *project && self.stream.as_deref() == Some(stream)
            }
        }
    }
}

/// The newest events: every one of a project whose number is above `from` and not
/// above `newest`.
#[derive(Debug)]
pub(super) struct Ring {
    from: i64,
    newest: i64,
    entries: VecDeque<Entry>,
    n_bytes: usize,
    limits: Limits,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    pub(super) events: usize,
    pub(super) bytes: usize,
}

impl Ring {
    /// Makes one that has nothing after a number that was stored.
    pub(super) fn new(newest: i64) -> Self {
        Self::with_limits(newest, Limits { events: EVENTS, bytes: BYTES })
    }

    pub(super) fn with_limits(newest: i64, limits: Limits) -> Self {
        Self { from: newest, newest, entries: VecDeque::new(), n_bytes: 0, limits }
    }

    /// Returns the number up to which everything was read.
    pub(super) fn newest(&self) -> i64 {
        self.newest
    }

    /// Takes the next events of the log: the number up to which it was read, what
    /// retention had removed by then, and those that somebody can ask for. Returns
    /// whether that is news to anybody: what belongs to no project is not.
    pub(super) fn add(
        &mut self,
        last: i64,
        removed: i64,
        entries: impl IntoIterator<Item = Entry>,
    ) -> bool {
        let mut is_news = false;
        if removed > self.newest {
            // Retention was faster; whoever has not read that much asks the store.
            self.entries.clear();
            self.n_bytes = 0;
            self.from = removed;
            self.newest = removed;
            is_news = true;
        }
        for entry in entries.into_iter().filter(|entry| entry.number > removed) {
            self.n_bytes += entry.frame.len();
            self.entries.push_back(entry);
            is_news = true;
        }
        self.newest = self.newest.max(last);
        while self.entries.len() > self.limits.events || self.n_bytes > self.limits.bytes {
            let Some(oldest) = self.entries.pop_front() else { break };
            self.n_bytes -= oldest.frame.len();
            self.from = oldest.number;
        }
        is_news
    }

    #[cfg(test)]
    pub(super) fn weight(&self) -> (usize, usize) {
        (self.entries.len(), self.n_bytes)
    }
}

/// Where somebody stands who reads: he was given everything up to a number that
/// he selected. All that is kept of a reader who is slow.
#[derive(Clone, Debug)]
pub(super) struct Cursor {
    pub(super) selection: Selection,
    pub(super) position: i64,
}

/// What is there for a reader.
#[derive(Debug)]
pub(super) enum Look {
    /// This comes next.
    Frames(Vec<Bytes>),
    /// He has everything.
    Nothing,
    /// What comes next is in the store only.
    Older,
}

impl Cursor {
    /// Takes what comes next from memory, at most a chunk.
    pub(super) fn look(&mut self, ring: &Ring) -> Look {
        if self.position < ring.from {
            return Look::Older;
        }
        let known = ring.entries.partition_point(|entry| entry.number <= self.position);
        let mut frames = Vec::new();
        let mut n_bytes = 0;
        for entry in ring.entries.range(known..).filter(|entry| entry.is_of(&self.selection)) {
            n_bytes += entry.frame.len();
            if n_bytes > CHUNK && !frames.is_empty() {
                return Look::Frames(frames);
            }
            frames.push(entry.frame.clone());
            self.position = entry.number;
        }
        // A page of the store may have been newer than what is in memory.
        self.position = self.position.max(ring.newest);
        if frames.is_empty() { Look::Nothing } else { Look::Frames(frames) }
    }

    /// Goes on behind a portion of the store that was read from this position on.
    /// `newest` is what the memory had reached before that: all of it was stored, so
    /// a portion without a rest has everything up to there. Returns what retention
    /// removed before it was read, and drops that from the portion.
    pub(super) fn turn(&mut self, portion: &mut Portion, newest: i64) -> Option<i64> {
        let missed = (portion.removed > self.position).then_some(portion.removed);
        portion.events.retain(|stored| stored.number > portion.removed);
        let last = portion.events.last().map_or(0, |stored| stored.number);
        let reached = if portion.is_all { newest } else { 0 };
        self.position = self.position.max(last).max(reached).max(missed.unwrap_or(0));
        missed
    }
}

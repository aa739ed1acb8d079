//! What happens in a session while its messages are read again.

use super::event::What;

/// How many events may wait, and how many bytes of them.
const MAX_EVENTS: usize = 10_000;
const MAX_BYTES: usize = 16 * 1024 * 1024;

/// Events that wait.
#[derive(Debug, Default)]
pub(super) struct Meanwhile {
    events: Vec<What>,
    n_bytes: usize,
}

impl Meanwhile {
    /// Takes an event of this size; returns whether there was room. If not, what
    /// waited is lost but for an error, and has to be read again.
    #[must_use]
    pub(super) fn push(&mut self, what: What, size: usize) -> bool {
        let n_bytes = self.n_bytes.saturating_add(size);
        let has_room = self.events.len() < MAX_EVENTS && n_bytes <= MAX_BYTES;
        self.events.push(what);
        self.n_bytes = n_bytes;
        if !has_room {
            self.forget();
        }
        has_room
    }

    /// Forgets what can be read again. An error is only told; the first counts.
    pub(super) fn forget(&mut self) {
        let events = std::mem::take(&mut self.events);
        self.events.extend(events.into_iter().find(|what| matches!(what, What::Failed(_))));
        self.n_bytes = 0;
    }

    /// Returns what happened, in order.
    pub(super) fn into_events(self) -> Vec<What> {
        self.events
    }
}

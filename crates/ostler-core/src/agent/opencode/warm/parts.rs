//! The texts and thoughts of one turn: what of each was told, and what the
//! answer is.
//!
//! A text comes in pieces and whole at its end. After a gap in the stream its
//! pieces may have holes, so they are not told; the whole text makes up for it.

use std::collections::BTreeMap;

use crate::event::{EventBody, Status};

/// Who a text is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// The user.
    Answer,
    /// Whoever wants to see the model think.
    Thought,
    /// The model: words of the CLI, or the history made shorter.
    Hidden,
}

/// The texts of a turn.
#[derive(Debug, Default)]
pub(super) struct Parts {
    parts: BTreeMap<String, Part>,
    n_parts: usize,
}

#[derive(Debug)]
struct Part {
    number: usize,
    message: String,
    kind: Kind,
    block: String,
    text: String,
    n_blocks: usize,
    /// Pieces may have been missed.
    is_gapped: bool,
    is_done: bool,
    is_retracted: bool,
}

/// A text as the server has it now.
#[derive(Debug)]
pub(super) struct Known {
    pub(super) id: String,
    pub(super) message: String,
    pub(super) kind: Kind,
    pub(super) text: String,
    /// Nothing will be added.
    pub(super) is_done: bool,
    /// It was read, not told: pieces may have been missed.
    pub(super) is_read: bool,
}

impl Parts {
    /// Takes a text; returns what is new of it.
    pub(super) fn known(&mut self, known: Known) -> Vec<EventBody> {
        let Known { id, message, kind, text, is_done, is_read } = known;
        let number = self.n_parts;
        let part = self.parts.entry(id).or_insert_with_key(|id| Part {
            number,
            message,
            kind,
            block: id.clone(),
            text: String::new(),
            n_blocks: 1,
            is_gapped: is_read && !is_done,
            is_done: false,
            is_retracted: false,
        });
        if part.number == number {
            self.n_parts += 1;
        }
        part.is_done |= is_done;
        if part.is_retracted || (text.is_empty() && !is_done) {
            return Vec::new();
        }
        part.whole(text)
    }

    /// Takes a piece of a text.
    pub(super) fn piece(&mut self, id: &str, piece: String) -> Option<EventBody> {
        let part = self.parts.get_mut(id)?;
        if part.is_gapped || part.is_done || part.is_retracted {
            return None;
        }
        part.text.push_str(&piece);
        part.event(piece)
    }

    /// Some pieces may be missing from here on.
    pub(super) fn gap(&mut self) {
        self.parts.values_mut().for_each(|part| part.is_gapped = true);
    }

    /// Takes back the texts of a message that was begun anew.
    pub(super) fn retract(&mut self, message: &str, only_unfinished: bool) -> Vec<EventBody> {
        let mut events = Vec::new();
        for part in self.parts.values_mut() {
            let is_meant = part.message == message && !(only_unfinished && part.is_done);
            if is_meant && !part.is_retracted {
                part.is_retracted = true;
                if part.kind != Kind::Hidden && !part.text.is_empty() {
                    let block = part.block.clone();
                    events.push(EventBody::Status(Status::Retracted { block }));
                }
            }
        }
        events
    }

    /// Returns the texts of a message, those for the user or the hidden ones.
    pub(super) fn text(&self, message: &str, kind: Kind) -> Option<String> {
        let is_meant =
            |part: &&Part| part.message == message && part.kind == kind && !part.is_retracted;
        let mut parts: Vec<&Part> = self.parts.values().filter(is_meant).collect();
        parts.sort_by_key(|part| part.number);
        let texts: Vec<&str> = parts.iter().map(|part| part.text.as_str()).collect();
        (!texts.is_empty()).then(|| texts.join("\n"))
    }
}

impl Part {
    fn whole(&mut self, text: String) -> Vec<EventBody> {
        if let Some(rest) = text.strip_prefix(&self.text) {
            let rest = rest.to_owned();
            self.text = text;
            return self.event(rest).into_iter().collect();
        }
        let told = std::mem::replace(&mut self.text, text);
        if told.strip_prefix(&self.text).is_some_and(|more| more.trim().is_empty()) {
            // Blanks at its end were cut off.
            return Vec::new();
        }
        let block = self.block.clone();
        self.n_blocks += 1;
        self.block = format!("{block}-{}", self.n_blocks);
        let retracted =
            (self.kind != Kind::Hidden).then_some(EventBody::Status(Status::Retracted { block }));
        retracted.into_iter().chain(self.event(self.text.clone())).collect()
    }

    fn event(&self, text: String) -> Option<EventBody> {
        if text.is_empty() {
            return None;
        }
        let block = self.block.clone();
        match self.kind {
            Kind::Answer => Some(EventBody::Output { text, block }),
            Kind::Thought => Some(EventBody::Thinking { text, block }),
            Kind::Hidden => None,
        }
    }
}

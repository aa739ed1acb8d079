//! What both forms of Gemini's output have in common: the session and the end.

use super::fault;
use crate::{
    agent::{
        Action, Launch, ONLY_SESSION, ONLY_TURN, TurnKey, emit::emit, last_word::LastWord,
        plain::MAX_ANSWER_BYTES,
    },
    event::{EventBody, StopReason, Usage},
    failure::Failure,
};

/// The one turn of a one-shot process.
pub(super) struct Turn {
    /// The session that is resumed. Plain text does not tell the id of a new one.
    pub(super) resumed: Option<String>,
    id: Option<String>,
    opened: bool,
    /// The block of text that is being written: its number, from 1.
    block: u32,
    block_ended: bool,
    /// The text of the last block.
    answer: Option<String>,
    /// Whether a line was too long to read since the last block began.
    pub(super) has_lost_line: bool,
    /// Why the model stopped, if there is a better word than that it was done.
    pub(super) stop_reason: Option<StopReason>,
    pub(super) end: LastWord,
}

impl Turn {
    pub(super) fn new(launch: &Launch<'_>) -> Self {
        Self {
            resumed: launch.open.memo().map(|memo| memo.id.clone()),
            id: None,
            opened: false,
            block: 1,
            block_ended: false,
            answer: None,
            has_lost_line: false,
            stop_reason: None,
            end: LastWord::new(ONLY_TURN, launch.options.model.clone()),
        }
    }

    pub(super) fn key(&self) -> TurnKey {
        self.end.turn
    }

    pub(super) fn has_ended(&self) -> bool {
        self.end.is_said()
    }

    /// Takes the id that the CLI tells.
    ///
    /// A new session is not real before the model has answered: when its first
    /// request fails, the CLI takes the prompt back and cannot resume what is left.
    pub(super) fn session(&mut self, id: String, out: &mut Vec<Action>) {
        self.id.get_or_insert(id);
        if self.resumed.is_some() {
            self.confirm(out);
        }
    }

    /// Says that the session has something in it.
    pub(super) fn confirm(&mut self, out: &mut Vec<Action>) {
        if !self.opened
            && let Some(id) = self.id.clone()
        {
            self.opened = true;
            out.push(Action::Opened { session: ONLY_SESSION, id });
        }
    }

    /// Takes a piece of the answer. After something else was done it belongs to
    /// a new block, and the answer is the last block.
    pub(super) fn text(&mut self, text: String, out: &mut Vec<Action>) {
        if text.is_empty() {
            return;
        }
        self.confirm(out);
        if std::mem::take(&mut self.block_ended) && self.answer.take().is_some() {
            self.block += 1;
            self.has_lost_line = false;
        }
        let answer = self.answer.get_or_insert_default();
        if answer.len() <= MAX_ANSWER_BYTES {
            answer.push_str(&text);
        }
        let block = format!("b{}", self.block);
        emit(self.key(), EventBody::Output { text, block }, out);
    }

    /// Returns whether there is an answer so far.
    pub(super) fn has_answer(&self) -> bool {
        self.answer.is_some()
    }

    /// Says that the next text is not a part of this one.
    pub(super) fn end_block(&mut self) {
        self.block_ended = true;
    }

    /// Ends the turn well, with the text that was told.
    pub(super) fn complete(&mut self, usage: Usage, out: &mut Vec<Action>) {
        if self.has_lost_line {
            // What was lost may have been a part of the answer.
            return self.fail(Failure::unreadable(), usage, out);
        }
        let reason = self.stop_reason.take().unwrap_or(StopReason::EndTurn);
        let text = self.answer.take().unwrap_or_default();
        self.end.usage = usage;
        self.end.complete(text, reason, out);
    }

    /// Ends the turn badly, with what there was of an answer.
    pub(super) fn fail(&mut self, failure: Failure, usage: Usage, out: &mut Vec<Action>) {
        let reason = self.stop_reason.take().unwrap_or_else(|| fault::stop_reason(&failure));
        self.end.usage = usage;
        self.end.fail(failure, reason, self.answer.take(), out);
    }
}

//! Keeps track of which text was already told.
//!
//! A block of a message comes in pieces, then whole, then once more whole in
//! the message; in short forms only the last of these comes. Each piece of text
//! must be told once. The text of a message that the CLI tries again is void.

use std::{collections::BTreeMap, mem};

use serde_json::Value;

use super::field;
use crate::event::{EventBody, Status};

/// What a block holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum BlockKind {
    Output,
    Thinking,
}

/// The blocks of the newest message.
#[derive(Debug, Default)]
pub(super) struct Blocks {
    n_messages: u32,
    n_replaced: u32,
    /// Whether the newest message has not ended yet.
    is_open: bool,
    /// By their place in the message.
    blocks: BTreeMap<(u64, BlockKind), Block>,
}

#[derive(Debug)]
struct Block {
    kind: BlockKind,
    name: String,
    told: String,
}

impl Blocks {
    /// A message begins.
    pub(super) fn start(&mut self) {
        self.n_messages += 1;
        self.is_open = true;
        self.blocks.clear();
    }

    /// A piece of a block came.
    pub(super) fn piece(
        &mut self,
        index: u64,
        kind: BlockKind,
        text: String,
        tell: &mut impl FnMut(EventBody),
    ) {
        let block = self.block(index, kind);
        block.told.push_str(&text);
        block.tell(text, tell);
    }

    /// A whole block came: tells what is new about it.
    pub(super) fn whole(
        &mut self,
        index: u64,
        kind: BlockKind,
        text: &str,
        tell: &mut impl FnMut(EventBody),
    ) {
        let block = self.block(index, kind);
        match text.strip_prefix(block.told.as_str()) {
            Some(rest) => {
                block.told.push_str(rest);
                block.tell(rest.to_owned(), tell);
            }
            // Thinking may be recorded in another wording than it was shown.
            None if kind == BlockKind::Thinking => {}
            None => {
                block.retract(tell);
                self.n_replaced += 1;
                let suffix = format!("-{}", self.n_replaced);
                let block = self.block(index, kind);
                block.name.push_str(&suffix);
                text.clone_into(&mut block.told);
                block.tell(text.to_owned(), tell);
            }
        }
    }

    /// A message ended: tells what of its content was not told before.
    pub(super) fn end(&mut self, content: &Value, tell: &mut impl FnMut(EventBody)) {
        if !self.is_open {
            self.start();
        }
        self.is_open = false;
        if let Some(text) = content.as_str() {
            return self.whole(0, BlockKind::Output, text, tell);
        }
        for (index, part) in (0..).zip(content.as_array().into_iter().flatten()) {
            match field::text(part, "type") {
                Some("text") => {
                    let text = field::text(part, "text").unwrap_or_default();
                    self.whole(index, BlockKind::Output, text, tell);
                }
                Some("thinking") => {
                    let text = field::text(part, "thinking").unwrap_or_default();
                    self.whole(index, BlockKind::Thinking, text, tell);
                }
                // Calls of tools are told when they are made.
                Some(_) | None => {}
            }
        }
    }

    /// The newest message counts no more.
    pub(super) fn retract(&mut self, tell: &mut impl FnMut(EventBody)) {
        for block in mem::take(&mut self.blocks).into_values() {
            if block.kind == BlockKind::Output {
                block.retract(tell);
            }
        }
    }

    fn block(&mut self, index: u64, kind: BlockKind) -> &mut Block {
        let n_messages = self.n_messages;
        self.blocks.entry((index, kind)).or_insert_with(|| {
            let prefix = match kind {
                BlockKind::Output => 'm',
                BlockKind::Thinking => 't',
            };
            Block { kind, name: format!("{prefix}{n_messages}.{index}"), told: String::new() }
        })
    }
}

impl Block {
    fn tell(&self, text: String, tell: &mut impl FnMut(EventBody)) {
        if text.is_empty() {
            return;
        }
        let block = self.name.clone();
        tell(match self.kind {
            BlockKind::Output => EventBody::Output { text, block },
            BlockKind::Thinking => EventBody::Thinking { text, block },
        });
    }

    fn retract(&self, tell: &mut impl FnMut(EventBody)) {
        if !self.told.is_empty() {
            tell(EventBody::Status(Status::Retracted { block: self.name.clone() }));
        }
    }
}

//! Keeps track of which text was already told.
//!
//! A block of text can come in pieces, whole, or in pieces and then whole; it
//! can also be withdrawn when the connection to the model broke. Each piece of
//! text must be told once. The CLI sends the whole block before it says that
//! the block stopped, so a block that was never confirmed when the next message
//! begins belongs to an attempt that failed.

use std::mem;

/// What a block holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BlockKind {
    Output,
    Thinking,
}

/// What to tell about a block.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Tell {
    /// A piece of text.
    Text { kind: BlockKind, block: String, text: String },
    /// The text told so far is void.
    Retract { block: String },
}

/// The blocks of the messages that are being written, one for each sub-agent.
#[derive(Debug, Default)]
pub(super) struct Blocks {
    n_made: u64,
    messages: Vec<Message>,
}

#[derive(Debug)]
struct Message {
    id: String,
    parent: Option<String>,
    blocks: Vec<Block>,
}

#[derive(Debug)]
struct Block {
    index: u64,
    kind: BlockKind,
    name: String,
    /// What was told of it; kept only until the whole block has come.
    told: String,
    confirmed: bool,
}

impl Blocks {
    /// A message begins; what its predecessor left unconfirmed is withdrawn.
    pub(super) fn start(&mut self, id: &str, parent: Option<&str>) -> Vec<Tell> {
        let tells = self.withdraw(parent, |_| true);
        self.messages.retain(|message| message.parent.as_deref() != parent);
        self.messages.push(Message::new(id, parent));
        tells
    }

    /// A piece of a block came.
    pub(super) fn piece(
        &mut self,
        parent: Option<&str>,
        index: u64,
        kind: BlockKind,
        text: String,
    ) -> Option<Tell> {
        if text.is_empty() {
            return None;
        }
        let Self { n_made, messages } = self;
        let of_parent = |message: &Message| message.parent.as_deref() == parent;
        if !messages.iter().any(of_parent) {
            messages.push(Message::new("", parent));
        }
        let message = messages.iter_mut().find(|message| of_parent(message))?;
        let is_open =
            |block: &Block| block.index == index && block.kind == kind && !block.confirmed;
        if !message.blocks.iter().any(is_open) {
            message.blocks.push(Block {
                index,
                kind,
                name: next_name(n_made),
                told: String::new(),
                confirmed: false,
            });
        }
        let block = message.blocks.iter_mut().find(|block| is_open(block))?;
        block.told.push_str(&text);
        Some(Tell::Text { kind, block: block.name.clone(), text })
    }

    /// A whole block came: tells what is new about it.
    pub(super) fn whole(
        &mut self,
        id: &str,
        parent: Option<&str>,
        kind: BlockKind,
        text: String,
    ) -> Vec<Tell> {
        let known = self
            .messages
            .iter_mut()
            .find(|message| message.id == id && message.parent.as_deref() == parent)
            .and_then(|message| {
                let mut blocks = message.blocks.iter_mut();
                blocks.find(|block| block.kind == kind && !block.confirmed)
            });
        let Some(block) = known else {
            let mut tells = self.withdraw(parent, |message| message.id != id);
            tells.extend(self.fresh(kind, text));
            return tells;
        };
        block.confirmed = true;
        let told = mem::take(&mut block.told);
        let name = block.name.clone();
        match text.strip_prefix(&told) {
            Some("") => Vec::new(),
            Some(rest) => vec![Tell::Text { kind, block: name, text: rest.to_owned() }],
            // Thinking is shown in another wording than it is recorded, or not
            // recorded at all.
            None if kind == BlockKind::Thinking || text.is_empty() => Vec::new(),
            None => {
                let mut tells = vec![Tell::Retract { block: name }];
                tells.extend(self.fresh(kind, text));
                tells
            }
        }
    }

    /// A block of its own, which belongs to no message.
    pub(super) fn fresh(&mut self, kind: BlockKind, text: String) -> Option<Tell> {
        (!text.is_empty()).then(|| Tell::Text { kind, block: next_name(&mut self.n_made), text })
    }

    /// The CLI gave up a message from one of its blocks on.
    pub(super) fn abandon(&mut self, id: &str, from_index: u64) -> Vec<Tell> {
        let mut tells = Vec::new();
        for message in self.messages.iter_mut().filter(|message| message.id == id) {
            message.blocks.retain(|block| {
                let gone = block.index >= from_index;
                if gone {
                    tells.push(Tell::Retract { block: block.name.clone() });
                }
                !gone
            });
        }
        tells
    }

    fn withdraw(&mut self, parent: Option<&str>, which: impl Fn(&Message) -> bool) -> Vec<Tell> {
        let mut tells = Vec::new();
        for message in &mut self.messages {
            if message.parent.as_deref() != parent || !which(message) {
                continue;
            }
            let blocks = mem::take(&mut message.blocks);
            // Thinking may never be confirmed; it was told for what it is.
            let void = |block: &Block| !block.confirmed && block.kind == BlockKind::Output;
            tells.extend(
                blocks.into_iter().filter(void).map(|block| Tell::Retract { block: block.name }),
            );
        }
        tells
    }
}

impl Message {
    fn new(id: &str, parent: Option<&str>) -> Self {
        Self { id: id.to_owned(), parent: parent.map(str::to_owned), blocks: Vec::new() }
    }
}

fn next_name(n_made: &mut u64) -> String {
    *n_made += 1;
    format!("b{n_made}")
}

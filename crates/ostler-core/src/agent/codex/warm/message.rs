//! The texts of one turn while they come in pieces: answers and thoughts.
//!
//! A message that begins and is never completed was dropped, by a retry or by
//! steering. What was shown of it is taken back when the next one begins.

use std::collections::BTreeMap;

use crate::{
    agent::plain::MAX_ANSWER_BYTES,
    event::{EventBody, Status},
};

/// The texts so far.
#[derive(Debug, Default)]
pub(super) struct Texts {
    /// How many blocks have had each id.
    names: BTreeMap<String, u32>,
    /// The messages that are not complete.
    open: BTreeMap<String, Piece>,
    thoughts: BTreeMap<String, Thought>,
    /// The last complete message.
    answer: Option<String>,
}

#[derive(Debug)]
struct Piece {
    block: String,
    text: String,
}

#[derive(Debug)]
struct Thought {
    block: String,
    part: u64,
}

impl Texts {
    /// A message begins: the one before it, if it is not complete, was dropped.
    pub(super) fn begin(&mut self) -> Vec<EventBody> {
        let dropped = std::mem::take(&mut self.open).into_values();
        dropped.map(|piece| retracted(piece.block)).collect()
    }

    /// Takes a piece of a message.
    pub(super) fn piece(&mut self, id: &str, text: String) -> EventBody {
        if !self.open.contains_key(id) {
            let block = self.name(id);
            self.open.insert(id.to_owned(), Piece { block, text: String::new() });
        }
        let mut block = String::new();
        if let Some(piece) = self.open.get_mut(id) {
            block.clone_from(&piece.block);
            if piece.text.len() <= MAX_ANSWER_BYTES {
                piece.text.push_str(&text);
            }
        }
        EventBody::Output { text, block }
    }

    /// Takes a whole message, and returns what of it was not shown in pieces.
    pub(super) fn whole(&mut self, id: &str, text: String) -> Vec<EventBody> {
        let known = self.open.remove(id);
        self.answer = Some(text.clone());
        match known {
            None if text.is_empty() => Vec::new(),
            None => vec![EventBody::Output { block: self.name(id), text }],
            Some(piece) if piece.text.len() > MAX_ANSWER_BYTES => Vec::new(),
            Some(piece) => match text.strip_prefix(piece.text.as_str()) {
                Some("") => Vec::new(),
                Some(rest) => vec![EventBody::Output { text: rest.to_owned(), block: piece.block }],
                None => {
                    let block = self.name(id);
                    vec![retracted(piece.block), EventBody::Output { text, block }]
                }
            },
        }
    }

    /// Takes a piece of a thought. Its parts are separated as in the whole.
    pub(super) fn thought_piece(&mut self, id: &str, part: u64, text: &str) -> EventBody {
        if !self.thoughts.contains_key(id) {
            let block = self.name(id);
            self.thoughts.insert(id.to_owned(), Thought { block, part });
        }
        let (mut block, mut separator) = (String::new(), "");
        if let Some(thought) = self.thoughts.get_mut(id) {
            block.clone_from(&thought.block);
            if std::mem::replace(&mut thought.part, part) != part {
                separator = "\n\n";
            }
        }
        EventBody::Thinking { text: format!("{separator}{text}"), block }
    }

    /// Takes a whole thought, unless its pieces were shown.
    pub(super) fn whole_thought(&mut self, id: &str, text: String) -> Option<EventBody> {
        if self.thoughts.remove(id).is_some() || text.is_empty() {
            return None;
        }
        Some(EventBody::Thinking { text, block: self.name(id) })
    }

    /// Takes the answer: the last complete message.
    pub(super) fn take_answer(&mut self) -> Option<String> {
        self.answer.take()
    }

    /// Takes what there is of an answer that is not complete.
    pub(super) fn take_partial(&mut self) -> Option<String> {
        let open = std::mem::take(&mut self.open).into_values().next();
        open.map(|piece| piece.text).or_else(|| self.answer.take())
    }

    /// Returns a name for a block that no other block of the turn has.
    fn name(&mut self, id: &str) -> String {
        let id = if id.is_empty() { "message" } else { id };
        let n = self.names.entry(id.to_owned()).or_default();
        *n += 1;
        if *n == 1 { id.to_owned() } else { format!("{id}#{n}") }
    }
}

fn retracted(block: String) -> EventBody {
    EventBody::Status(Status::Retracted { block })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What was told, in short: `block: text`, or the block that is taken back.
    fn told(events: impl IntoIterator<Item = EventBody>) -> Vec<String> {
        let line = |event| {
            if let EventBody::Status(Status::Retracted { block }) = event {
                return format!("not {block}");
            }
            let (EventBody::Output { text, block } | EventBody::Thinking { text, block }) = event
            else {
                panic!("{event:?}")
            };
            format!("{block}: {text}")
        };
        events.into_iter().map(line).collect()
    }

    fn piece(texts: &mut Texts, id: &str, text: &str) -> String {
        told([texts.piece(id, text.to_owned())]).concat()
    }

    fn whole(texts: &mut Texts, id: &str, text: &str) -> Vec<String> {
        told(texts.whole(id, text.to_owned()))
    }

    const NOTHING: [&str; 0] = [];

    #[test]
    fn a_message_that_came_in_pieces_is_not_told_again() {
        let mut texts = Texts::default();
        assert_eq!(piece(&mut texts, "a", "He"), "a: He");
        assert_eq!(piece(&mut texts, "a", "llo"), "a: llo");
        assert_eq!(whole(&mut texts, "a", "Hello"), NOTHING);
        assert_eq!(texts.take_answer().as_deref(), Some("Hello"));
    }

    #[test]
    fn the_whole_adds_what_the_pieces_lacked() {
        let mut texts = Texts::default();
        piece(&mut texts, "a", "He");
        assert_eq!(whole(&mut texts, "a", "Hello"), ["a: llo"]);
        assert_eq!(whole(&mut texts, "b", "Bye"), ["b: Bye"]);
    }

    #[test]
    fn pieces_that_are_not_in_the_whole_are_taken_back() {
        let mut texts = Texts::default();
        piece(&mut texts, "a", "Hola");
        assert_eq!(whole(&mut texts, "a", "Hello"), ["not a", "a#2: Hello"]);
    }

    #[test]
    fn a_message_that_never_completes_is_taken_back_when_the_next_begins() {
        let mut texts = Texts::default();
        piece(&mut texts, "a", "Dropped");
        assert_eq!(told(texts.begin()), ["not a"]);
        assert_eq!(told(texts.begin()), NOTHING);
        assert_eq!(piece(&mut texts, "a", "New"), "a#2: New");
        assert_eq!(texts.take_partial().as_deref(), Some("New"));
    }

    #[test]
    fn the_parts_of_a_thought_are_separated() {
        let mut texts = Texts::default();
        let pieces = [(0, "one"), (1, "two"), (1, "!")];
        let pieces = pieces.map(|(part, text)| texts.thought_piece("r", part, text));
        assert_eq!(told(pieces), ["r: one", "r: \n\ntwo", "r: !"]);
        assert!(texts.whole_thought("r", "one\n\ntwo!".to_owned()).is_none());
        assert_eq!(told(texts.whole_thought("s", "other".to_owned())), ["s: other"]);
    }
}

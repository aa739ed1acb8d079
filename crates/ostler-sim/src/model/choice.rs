//! Which behaviour a request gets.
//!
//! The newest prompt alone decides: its first `sim:` word, else the fallback
//! word that the simulated model was started with. Words in older prompts,
//! system texts and tool outputs never count, so a resumed conversation does
//! not repeat what it did before.

use std::collections::VecDeque;
use std::hash::{DefaultHasher, Hash, Hasher};

use super::behaviour::{self, ONCE, Turn};
use super::conversation::Conversation;
use super::reply::Reply;
use super::word::Word;

/// The behaviour that was chosen, and what it says.
#[derive(Debug)]
pub(crate) struct Choice {
    /// The word, with its `once-` prefix if it had one; none for a request that
    /// is beside the turn.
    pub(crate) word: Option<String>,
    pub(crate) reply: Reply,
}

/// Chooses a behaviour and lets it speak.
pub(crate) fn choose(conversation: &Conversation, fallback: &str, seen: &mut Seen) -> Choice {
    if let Some(aside) = &conversation.aside {
        return Choice { word: None, reply: behaviour::aside(aside) };
    }
    let prompt = conversation.newest_prompt().unwrap_or_default();
    let word = Word::find(prompt)
        .or_else(|| Word::parse(fallback))
        .unwrap_or(Word { name: "text", line: None });
    let name = match word.name.strip_prefix(ONCE) {
        Some(name) if seen.first_time(conversation) => name,
        Some(_) => "text",
        None => word.name,
    };
    let turn = Turn { conversation, prompt, word };
    let reply = match behaviour::find(name) {
        Some(behaviour) => (behaviour.plan)(&turn),
        None => behaviour::unknown(name),
    };
    Choice { word: Some(word.name.to_owned()), reply }
}

/// Remembers which prompts have had their one failure.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    prompts: VecDeque<u64>,
}

impl Seen {
    /// Returns whether this prompt of this conversation comes for the first time.
    fn first_time(&mut self, conversation: &Conversation) -> bool {
        let mut hasher = DefaultHasher::new();
        conversation.session.hash(&mut hasher);
        // Not every CLI names its conversation.
        conversation.working_directory().hash(&mut hasher);
        conversation.prompts().len().hash(&mut hasher);
        conversation.newest_prompt().hash(&mut hasher);
        let prompt = hasher.finish();
        if self.prompts.contains(&prompt) {
            return false;
        }
        if self.prompts.len() >= MAX_SEEN {
            self.prompts.pop_front();
        }
        self.prompts.push_back(prompt);
        true
    }
}

const MAX_SEEN: usize = 1000;

#[cfg(test)]
mod tests {
    use super::super::conversation::Entry;
    use super::super::reply::{Answer, Block, Refusal};
    use super::*;

    fn talk(session: &str, prompts: &[&str]) -> Conversation {
        Conversation {
            session: session.to_owned(),
            entries: prompts.iter().map(|text| Entry::User((*text).to_owned())).collect(),
            ..Conversation::default()
        }
    }

    fn choose_text(prompts: &[&str], fallback: &str) -> String {
        let Reply::Answer(Answer { blocks, .. }) =
            choose(&talk("s", prompts), fallback, &mut Seen::default()).reply
        else {
            panic!("an answer")
        };
        match blocks.as_slice() {
            [Block::Text(text)] => text.clone(),
            other => panic!("one text, not {other:?}"),
        }
    }

    #[test]
    fn a_newest_prompt_without_a_word_gets_the_default_answer() {
        assert_eq!(choose_text(&["sim:echo-text", "hello"], "text"), behaviour::HELLO);
    }

    #[test]
    fn the_fallback_word_speaks_for_prompts_without_one() {
        assert_eq!(choose_text(&["--help"], "echo-text"), "--help");
        assert_eq!(choose_text(&["--help sim:text"], "echo-text"), behaviour::HELLO);
    }

    #[test]
    fn a_text_is_said_up_to_the_end_of_its_line() {
        assert_eq!(choose_text(&["# Boot\n\nsim:say=ALL IS WELL\nmore"], "text"), "ALL IS WELL");
    }

    #[test]
    fn an_unknown_word_is_named_in_the_answer() {
        let text = choose_text(&["sim:nonsense"], "text");
        assert!(text.starts_with("There is no sim:nonsense. There is: text, thinking"), "{text}");
    }

    #[test]
    fn history_counts_the_prompts() {
        assert_eq!(
            choose_text(&["one", "sim:history"], "text"),
            "I remember 2 prompts; the first was: one"
        );
    }

    #[test]
    fn only_the_first_request_of_a_prompt_fails_once() {
        let mut seen = Seen::default();
        let mut refused = |session, prompts: &[&str]| {
            choose(&talk(session, prompts), "text", &mut seen).reply
                == Reply::Refuse(Refusal::ServerError)
        };
        assert!(refused("a", &["sim:once-500"]));
        assert!(!refused("a", &["sim:once-500"]));
        assert!(refused("b", &["sim:once-500"]), "another conversation");
        assert!(refused("a", &["sim:once-500", "sim:once-500"]), "a new prompt");
    }
}

//! Words in a chat that are not for the agent: what a message says that is
//! nothing but one of them. Pure.
//!
//! The words that begin a conversation afresh are not among them: they take
//! their turn with the messages before and after them.

use ostler_core::request::Thinking;

use crate::config::word;

/// What sets something back to what is configured.
pub(crate) const DEFAULT: &str = "default";

/// What ends what runs, said alone.
const STOP_WORDS: [&str; 5] = ["stop", "esc", "abort", "wait", "exit"];
/// What may stand behind these.
const PUNCTUATION: [char; 7] = ['.', '!', '?', ',', ';', ':', '…'];
/// A longer message is none of these. Names that are longer do not exist.
pub(crate) const LONGEST: usize = 200;

/// Something that is wanted of the gateway.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Directive {
    /// The end of what runs.
    Stop,
    Status,
    Help,
    Restart,
    /// Another agent; none asks which there are.
    Agent(Option<String>),
    /// Another model; none asks which it is.
    Model(Option<String>),
    Think(Option<Level>),
    /// More or less detail; none, or a word that is neither, asks how it is.
    Verbose(Option<bool>),
}

/// How hard the model is to think.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Level {
    Of(Thinking),
    AsConfigured,
    /// A word that is no level.
    Unknown(String),
}

/// Reads a message; nothing if it is one for the agent.
pub(crate) fn read(text: &str) -> Option<Directive> {
    let text = text.trim();
    if text.len() > LONGEST {
        return None;
    }
    let Some(rest) = text.strip_prefix('/') else {
        return is_stop_word(text).then_some(Directive::Stop);
    };
    let mut words = rest.split_whitespace();
    // What is after a space is no command: `/ status`.
    let name = words.next().filter(|name| rest.starts_with(name))?.to_ascii_lowercase();
    let (value, more) = (words.next(), words.next());
    if more.is_some() {
        return None;
    }
    match (name.as_str(), value) {
        ("stop", None) => Some(Directive::Stop),
        ("status", None) => Some(Directive::Status),
        ("help", None) => Some(Directive::Help),
        ("restart", None) => Some(Directive::Restart),
        ("agent", name) => Some(Directive::Agent(name.map(str::to_owned))),
        ("model", name) => Some(Directive::Model(name.map(str::to_owned))),
        ("think", level) => Some(Directive::Think(level.map(Level::read))),
        ("verbose", value) => Some(Directive::Verbose(value.and_then(switch))),
        _ => None,
    }
}

impl Level {
    fn read(given: &str) -> Self {
        let lower = given.to_ascii_lowercase();
        if lower == DEFAULT {
            return Self::AsConfigured;
        }
        word::thinking::read(&lower).map_or_else(|| Self::Unknown(given.to_owned()), Self::Of)
    }
}

fn is_stop_word(text: &str) -> bool {
    let text = text.trim_end_matches(|c: char| c.is_whitespace() || PUNCTUATION.contains(&c));
    STOP_WORDS.iter().any(|word| word.eq_ignore_ascii_case(text))
}

fn switch(word: &str) -> Option<bool> {
    match word.to_ascii_lowercase().as_str() {
        "on" => Some(true),
        "off" => Some(false),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{Directive::*, *};

    #[test]
    fn a_message_that_is_one_of_the_words_is_read_in_any_case() {
        let name = |name: &str| Some(name.to_owned());
        for (text, expected) in [
            ("/stop", Stop),
            (" /STATUS\n", Status),
            ("/Help", Help),
            ("/restart", Restart),
            ("/agent", Agent(None)),
            ("/agent  Codex ", Agent(name("Codex"))),
            ("/model", Model(None)),
            ("/MODEL gpt-5.2", Model(name("gpt-5.2"))),
            ("/think", Think(None)),
            ("/think HIGH", Think(Some(Level::Of(Thinking::High)))),
            ("/think off", Think(Some(Level::Of(Thinking::Off)))),
            ("/think Default", Think(Some(Level::AsConfigured))),
            ("/think Hard", Think(Some(Level::Unknown("Hard".to_owned())))),
            ("/verbose", Verbose(None)),
            ("/verbose on", Verbose(Some(true))),
            ("/verbose OFF", Verbose(Some(false))),
            ("/verbose loud", Verbose(None)),
        ] {
            assert_eq!(read(text), Some(expected), "{text:?}");
        }
    }

    #[test]
    fn a_stop_word_alone_stops_whatever_follows_it_of_points() {
        for word in STOP_WORDS {
            for text in [word, &word.to_uppercase(), &format!(" {word}!!! "), &format!("{word} …")]
            {
                assert_eq!(read(text), Some(Stop), "{text:?}");
            }
        }
    }

    #[test]
    fn what_is_more_than_the_word_is_for_the_agent() {
        let long = format!("/model {}", "m".repeat(LONGEST));
        for text in [
            "",
            "/",
            "//",
            "!",
            "/ status",
            "/new",
            "/path/to/file is broken",
            "/status of the build",
            "/stop the server please",
            "/stop!",
            "/agent codex please",
            "/think about it",
            "/verbosely",
            "/status/",
            "stop the server please",
            "stop it",
            "please stop",
            "stopping",
            "-stop",
            "wait a moment",
            &long,
        ] {
            assert_eq!(read(text), None, "{text:?}");
        }
    }

    proptest! {
        #[test]
        fn only_a_slash_or_a_stop_word_is_ever_read(text in any::<String>()) {
            let trimmed = text.trim();
            let letters = trimmed.trim_end_matches(|c: char| !c.is_alphanumeric());
            let is_stop = STOP_WORDS.contains(&letters.to_ascii_lowercase().as_str());
            if !trimmed.starts_with('/') && !is_stop {
                prop_assert_eq!(read(&text), None);
            }
        }

        #[test]
        fn whatever_follows_a_slash_is_read_without_harm(
            name in "(stop|agent|model|think|verbose|status)?", rest in any::<String>(),
        ) {
            read(&format!("/{name}{rest}"));
        }
    }
}

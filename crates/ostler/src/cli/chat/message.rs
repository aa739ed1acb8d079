//! What a program says to `ostler chat`, one JSON object a line.
//!
//! Unknown fields are ignored, so that a newer client can talk to an older
//! Ostler; an unknown type is not, because something would be expected of it.

use ostler_core::permission::{Answer, Decision};
use serde_json::{Map, Value};
use thiserror::Error;

/// What is wanted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Message {
    /// A prompt, to be run or to wait.
    Prompt(String),
    /// The end of what runs.
    Cancel,
    /// A further text for what runs.
    Steer(String),
    /// A decision.
    Answer { request: String, answer: Answer },
}

/// Why a line was not understood.
#[derive(Debug, Error, PartialEq, Eq)]
pub(crate) enum Misunderstood {
    #[error("a line is not valid UTF-8 (at byte {at})")]
    NotUtf8 { at: usize },
    #[error("a line is longer than {} MiB", max / 1024 / 1024)]
    TooLong { max: usize },
    #[error("a line is not JSON: {0}")]
    NotJson(String),
    #[error("a line is not a JSON object")]
    NotAnObject,
    #[error("unknown type {0}; known are prompt, cancel, steer and answer")]
    UnknownType(String),
    #[error("{kind} needs {field:?}, a text")]
    NoText { kind: &'static str, field: &'static str },
    #[error("{kind}: the text is empty")]
    EmptyText { kind: &'static str },
    #[error("unknown decision {0:?}; known are allow, allow_always and deny")]
    UnknownDecision(String),
}

/// Reads one line.
pub(crate) fn parse(line: &str) -> Result<Message, Misunderstood> {
    let value: Value =
        serde_json::from_str(line).map_err(|error| Misunderstood::NotJson(error.to_string()))?;
    let Value::Object(object) = value else {
        return Err(Misunderstood::NotAnObject);
    };
    match object.get("type").and_then(Value::as_str) {
        Some("prompt") => Ok(Message::Prompt(said(&object, "prompt")?)),
        Some("cancel") => Ok(Message::Cancel),
        Some("steer") => Ok(Message::Steer(said(&object, "steer")?)),
        Some("answer") => answer(&object),
        _ => {
            let kind = object.get("type").map_or("(none)".to_owned(), Value::to_string);
            Err(Misunderstood::UnknownType(start_of(&kind)))
        }
    }
}

fn said(object: &Map<String, Value>, kind: &'static str) -> Result<String, Misunderstood> {
    let text = text(object, kind, "text")?;
    if text.trim().is_empty() {
        return Err(Misunderstood::EmptyText { kind });
    }
    Ok(text)
}

fn answer(object: &Map<String, Value>) -> Result<Message, Misunderstood> {
    let kind = "answer";
    let request = text(object, kind, "request")?;
    let word = text(object, kind, "decision")?;
    let decision =
        Decision::parse(&word).ok_or_else(|| Misunderstood::UnknownDecision(start_of(&word)))?;
    let text = match object.get("text") {
        None | Some(Value::Null) => None,
        Some(_) => Some(text(object, kind, "text")?),
    };
    Ok(Message::Answer { request, answer: Answer { decision, text } })
}

fn text(
    object: &Map<String, Value>,
    kind: &'static str,
    field: &'static str,
) -> Result<String, Misunderstood> {
    let text = object.get(field).and_then(Value::as_str);
    text.map(str::to_owned).ok_or(Misunderstood::NoText { kind, field })
}

/// Returns enough of a word to recognize it.
fn start_of(word: &str) -> String {
    word.chars().take(40).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_four_messages_are_read() {
        let prompt = parse(r#"{"type":"prompt","text":"hi\nyou","more":1}"#);
        assert_eq!(prompt, Ok(Message::Prompt("hi\nyou".into())));
        assert_eq!(parse(r#"{"type":"cancel"}"#), Ok(Message::Cancel));
        let steer = parse(r#"{"type":"steer","text":"left"}"#);
        assert_eq!(steer, Ok(Message::Steer("left".into())));
        for (word, decision) in [
            ("allow", Decision::Allow),
            ("allow_always", Decision::AllowAlways),
            ("deny", Decision::Deny),
        ] {
            let line =
                format!(r#"{{"type":"answer","request":"r1","decision":"{word}","text":null}}"#);
            let answer = Answer::new(decision);
            assert_eq!(parse(&line), Ok(Message::Answer { request: "r1".into(), answer }));
        }
    }

    #[test]
    fn what_is_not_understood_is_named() {
        for (line, says) in [
            ("", "not JSON"),
            ("hello", "not JSON"),
            ("[1]", "not a JSON object"),
            ("{}", "unknown type (none)"),
            (r#"{"type":"dance"}"#, r#"unknown type "dance""#),
            (r#"{"type":7}"#, "unknown type 7"),
            (r#"{"type":"prompt"}"#, r#"prompt needs "text""#),
            (r#"{"type":"prompt","text":5}"#, r#"prompt needs "text""#),
            (r#"{"type":"prompt","text":" \n"}"#, "prompt: the text is empty"),
            (r#"{"type":"steer","text":""}"#, "steer: the text is empty"),
            (r#"{"type":"answer","decision":"allow"}"#, r#"answer needs "request""#),
            (r#"{"type":"answer","request":"r"}"#, r#"answer needs "decision""#),
            (r#"{"type":"answer","request":"r","decision":"yes"}"#, "unknown decision"),
            (r#"{"type":"answer","request":"r","decision":"deny","text":[]}"#, "needs \"text\""),
        ] {
            let error = parse(line).unwrap_err().to_string();
            assert!(error.contains(says), "{line}: {error}");
        }
    }
}

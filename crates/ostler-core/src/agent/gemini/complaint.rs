//! Reads standard error, where Gemini says much and means little.
//!
//! It prints notices on every run, the whole error object with its stack on
//! every failed request, and with `format=json` its last words as a JSON
//! document. What matters is kept for the end of the turn: the status of the
//! last failed request, the last words, and who said them.

use std::time::Duration;

use serde_json::Value;

use super::fault::Said;
use crate::{
    agent::{
        Action, ONLY_TURN,
        document::{Documents, Piece},
        emit::{emit, emit_unknown, emit_warning},
    },
    event::{EventBody, Status, Stream},
};

/// How lines begin that tell a reader nothing.
const NOISE: &[&str] = &[
    // Said twice by every run that may do everything, which the operator chose.
    "YOLO mode is enabled.",
    // Said when no ripgrep is installed; searching works all the same.
    "Ripgrep is not available.",
    // Its own stopwatch, confused by a run that ends early.
    "[STARTUP] ",
    // About the terminal, of which there is none.
    "Warning: 256-color support not detected.",
    "Warning: True color (24-bit) support not detected.",
    // The tool's result says the same.
    "Error executing tool ",
    // Follows a failure whose words were printed before.
    "An unexpected critical error occurred:[object Object]",
];

/// How lines begin that warn and do not complain.
const WARNINGS: &[&str] = &["Warning: ", "[WARNING] ", "Security Warning: "];

/// What the CLI says when the prompt was too long for it. It goes on with half of it.
const TRUNCATED: &str = "Warning: stdin input truncated";

/// What stands before the path of a report, after which the error's own words follow.
const REPORT: &str = " Full report available at: ";

/// What a line of standard error asks for.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Heard {
    /// Nothing more.
    Nothing,
    /// The CLI tries a request again, for this number of times.
    Retry { attempt: u32, delay: Option<Duration> },
    /// It cut the prompt.
    PromptCut,
}

/// What was said on standard error.
#[derive(Debug, Default)]
pub(super) struct Complaints {
    documents: Documents,
    state: State,
    /// The HTTP status of the last request that failed.
    pub(super) status: Option<u16>,
    /// Whether the account's means are used up, which only a class name tells.
    pub(super) is_quota: bool,
    /// How long to wait, if the provider said so.
    pub(super) retry_after: Option<Duration>,
    /// The error that the last dump was about.
    pub(super) dumped: Option<String>,
    /// The last words of `format=json`.
    pub(super) error: Option<Said>,
    /// The session that they name.
    pub(super) session: Option<String>,
    /// The first line that was not understood.
    pub(super) complaint: Option<String>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    #[default]
    Lines,
    /// In the words of an error that is dumped; they may have several lines.
    Words,
    /// In its stack and its fields: indented lines, then maybe a bracket.
    Stack,
    /// In a notice about this attempt, whose words may have several lines.
    Attempt(u32),
}

impl Complaints {
    /// Takes a line.
    pub(super) fn line(&mut self, bytes: &[u8], out: &mut Vec<Action>) -> Heard {
        let mut pieces = Vec::new();
        // The document is sometimes printed once more, with a label before it.
        let bytes =
            bytes.strip_prefix(b"[ERROR] ").filter(|rest| rest.starts_with(b"{")).unwrap_or(bytes);
        if self.is_dump(bytes) {
            return Heard::Nothing;
        }
        let mut take = |piece: Piece<'_>| {
            pieces.push(match piece {
                Piece::Document { value, raw } => (Some(value), raw.to_vec()),
                Piece::Line(line) => (None, line.to_vec()),
            })
        };
        self.documents.push(bytes, &mut take);
        self.take(pieces, out)
    }

    /// Takes what is left when no more lines will come.
    pub(super) fn finish(&mut self, out: &mut Vec<Action>) {
        let mut pieces = Vec::new();
        self.documents.finish(|piece| {
            let (Piece::Document { raw, .. } | Piece::Line(raw)) = piece;
            pieces.push((None, raw.to_vec()));
        });
        self.take(pieces, out);
    }

    fn take(&mut self, pieces: Vec<(Option<Value>, Vec<u8>)>, out: &mut Vec<Action>) -> Heard {
        let mut heard = Heard::Nothing;
        for (value, raw) in pieces {
            match value.as_ref().and_then(|value| Said::of_error(value.get("error")?)) {
                Some(said) => {
                    let id = value.as_ref().and_then(|value| value.get("session_id")?.as_str());
                    self.session = id.map(str::to_owned);
                    self.error = Some(said);
                }
                None => {
                    let next = self.text(&raw, out);
                    if next != Heard::Nothing {
                        heard = next;
                    }
                }
            }
        }
        heard
    }

    /// Consumes the lines of an error object, reading its status in passing.
    fn is_dump(&mut self, bytes: &[u8]) -> bool {
        let is_indented = bytes.first().is_some_and(u8::is_ascii_whitespace);
        self.state = match self.state {
            State::Words | State::Stack if is_indented => State::Stack,
            State::Stack if bytes == b"}" => State::Lines,
            State::Words if !is_known_start(bytes) => return true,
            State::Words | State::Stack => {
                self.state = State::Lines;
                return false;
            }
            State::Lines | State::Attempt(_) => return false,
        };
        self.facts(&String::from_utf8_lossy(bytes));
        true
    }

    fn facts(&mut self, line: &str) {
        self.status = status_in(line).or(self.status);
        if let Some(delay) = number_after(line, "retryDelayMs: ") {
            self.retry_after = Some(Duration::from_millis(delay));
        }
    }

    fn text(&mut self, bytes: &[u8], out: &mut Vec<Action>) -> Heard {
        let line = String::from_utf8_lossy(bytes);
        let line = line.trim_end();
        if let State::Attempt(attempt) = self.state {
            return self.rest_of_attempt(attempt, line, out);
        }
        if let Some(attempt) = number_after(line, "Attempt ").filter(|_| is_attempt(line)) {
            let attempt = u32::try_from(attempt).unwrap_or(u32::MAX);
            return self.rest_of_attempt(attempt, line, out);
        }
        if let Some((_, rest)) = line.split_once(REPORT) {
            self.state = State::Words;
            self.facts(rest);
            self.is_quota |= rest.contains("TerminalQuotaError");
            let words = rest.split_once(".json ").map_or(rest, |(_, words)| words);
            self.dumped = Some(without_class(words).to_owned());
            return Heard::Nothing;
        }
        if line.starts_with(TRUNCATED) {
            emit_warning(ONLY_TURN, line, out);
            return Heard::PromptCut;
        }
        if line.trim().is_empty() || NOISE.iter().any(|start| line.starts_with(start)) {
            return Heard::Nothing;
        }
        if WARNINGS.iter().any(|start| line.starts_with(start)) {
            emit_warning(ONLY_TURN, line, out);
            return Heard::Nothing;
        }
        self.complaint.get_or_insert_with(|| line.to_owned());
        emit_unknown(ONLY_TURN, Stream::Stderr, bytes, out);
        Heard::Nothing
    }

    /// Reads `Attempt 1 failed with status 500. Retrying with backoff... Error: why`
    /// and its kin, to the line on which it says what follows.
    fn rest_of_attempt(&mut self, attempt: u32, line: &str, out: &mut Vec<Action>) -> Heard {
        self.status = status_in(line).or(self.status);
        if line.ends_with("Max attempts reached") {
            self.state = State::Lines;
            return Heard::Nothing;
        }
        let Some((before, retrying)) = line.split_once("Retrying ") else {
            self.state = State::Attempt(attempt);
            self.dumped = line.split_once(" failed: ").map(|(_, words)| words.to_owned());
            return Heard::Nothing;
        };
        let delay = number_after(retrying, "after ").map(Duration::from_millis);
        if let Some((_, words)) = retrying.split_once("... ") {
            self.state = State::Words;
            self.dumped = Some(without_class(words).to_owned());
        } else {
            self.state = State::Lines;
            let words =
                before.split_once(" failed: ").map(|(_, words)| words.trim_end_matches(". "));
            self.dumped = words.map(str::to_owned).or(self.dumped.take());
        }
        let notice = Status::Retry {
            attempt: Some(attempt),
            max: None,
            delay_ms: delay.and_then(|delay| u64::try_from(delay.as_millis()).ok()),
            text: line.to_owned(),
        };
        emit(ONLY_TURN, EventBody::Status(notice), out);
        Heard::Retry { attempt, delay }
    }
}

fn is_attempt(line: &str) -> bool {
    let rest = line.trim_start_matches("Attempt ").trim_start_matches(|c: char| c.is_ascii_digit());
    line.starts_with("Attempt ") && rest.starts_with(" failed")
}

/// Whether something else begins here than the next line of an error's words.
fn is_known_start(bytes: &[u8]) -> bool {
    let line = String::from_utf8_lossy(bytes);
    is_attempt(&line)
        || line.contains(REPORT)
        || NOISE.iter().chain(WARNINGS).any(|start| line.starts_with(start))
        || ["{", "[ERROR] ", "An unexpected critical error occurred:"]
            .iter()
            .any(|start| line.starts_with(start))
}

/// Strips the name of an error's class: `_ApiError: why`.
fn without_class(words: &str) -> &str {
    match words.split_once(": ") {
        Some((class, rest)) if class.chars().all(|c| c.is_alphanumeric() || c == '_') => rest,
        _ => words,
    }
}

/// Returns the HTTP status of an error that a line names, in any of its spellings.
fn status_in(line: &str) -> Option<u16> {
    ["status: ", "code: ", "with status ", "\"code\":"]
        .iter()
        .filter_map(|mark| number_after(line, mark))
        .filter_map(|number| u16::try_from(number).ok())
        .find(|status| (400..600).contains(status))
}

/// Returns the number that follows a mark.
fn number_after(text: &str, mark: &str) -> Option<u64> {
    let (_, rest) = text.split_once(mark)?;
    let end = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
    rest.get(..end)?.parse().ok()
}

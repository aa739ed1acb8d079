//! What a live turn showed, kept small: the events that must come, the lines
//! that nobody understood, the end, and the calls that reached the model.
#![expect(clippy::wildcard_enum_match_arm, reason = "what a view leaves out needs no name")]

use ostler_core::{
    EventBody, TurnReport,
    event::{Status, Stream, ToolResult},
};
use ostler_sim::model::{Charge, Recorded};

/// How much of a line is shown.
const SHOWN: usize = 200;
/// How many lines that were not understood are kept.
const MAX_UNKNOWN: usize = 50;
/// How much text is kept. The simulated model says far less.
const MAX_TEXT: usize = 1024 * 1024;

/// One live turn.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    /// The streamed text, by block, in order.
    texts: Vec<(String, String)>,
    n_pieces: usize,
    /// The ids of the tool calls.
    pub(crate) tool_uses: Vec<String>,
    pub(crate) tool_results: Vec<ToolResult>,
    /// Lines on standard output that were not understood, each cut.
    pub(crate) unknown: Vec<String>,
    /// The first line on standard error that was not understood, cut.
    pub(crate) complaint: Option<String>,
    /// The end; absent only when the program itself is being ended.
    pub(crate) report: Option<TurnReport>,
    pub(crate) calls: Vec<Call>,
}

/// A call that reached the simulated model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Call {
    /// The newest prompt in it.
    pub(crate) prompt: Option<String>,
    /// What it cost; `None` when it was not answered.
    pub(crate) charge: Option<Charge>,
}

impl Call {
    /// Returns the call behind a request; `None` when it was none of a model.
    pub(crate) fn of(request: &Recorded) -> Option<Self> {
        let call = Self { prompt: request.prompt.clone(), charge: request.charge() };
        (call.prompt.is_some() || call.charge.is_some()).then_some(call)
    }
}

impl Seen {
    /// Takes an event in.
    pub(crate) fn add(&mut self, event: EventBody) {
        match event {
            EventBody::Output { text, block } => self.output(text, block),
            EventBody::Status(Status::Retracted { block }) => {
                self.texts.retain(|(known, _)| *known != block);
            }
            EventBody::ToolUse { id, .. } => self.tool_uses.push(id),
            EventBody::ToolResult(result) => self.tool_results.push(result),
            EventBody::Unknown { stream: Stream::Stdout, text }
                if self.unknown.len() < MAX_UNKNOWN =>
            {
                self.unknown.push(cut(&text));
            }
            EventBody::Unknown { stream: Stream::Stderr, text } => {
                self.complaint.get_or_insert_with(|| cut(&text));
            }
            EventBody::Complete(report) => self.report = Some(*report),
            _ => {}
        }
    }

    fn output(&mut self, text: String, block: String) {
        self.n_pieces = self.n_pieces.saturating_add(1);
        match self.texts.last_mut() {
            Some((known, whole)) if *known == block => {
                if whole.len() < MAX_TEXT {
                    whole.push_str(&text);
                }
            }
            Some(_) | None => self.texts.push((block, text)),
        }
    }

    /// Returns all streamed text that was not withdrawn.
    pub(crate) fn streamed(&self) -> String {
        self.texts.iter().map(|(_, text)| text.as_str()).collect()
    }

    /// Returns in how many pieces the text came.
    pub(crate) fn n_pieces(&self) -> usize {
        self.n_pieces
    }
}

/// Returns the start of a text.
pub(crate) fn cut(text: &str) -> String {
    match text.char_indices().nth(SHOWN) {
        Some((at, _)) => format!("{}…", text.get(..at).unwrap_or_default()),
        None => text.to_owned(),
    }
}

//! How a turn is shown: as text for people, or as JSON for programs.

use std::io;

use ostler_core::{
    agent::AgentName,
    event::{Event, EventBody, TurnId, TurnReport},
    failure::Failure,
    permission::Permission,
};

use super::{
    asking,
    chat::Aside,
    shown::{Complete, Shown, ShownFailure, What},
    turn_args::OutputArg,
};
use crate::ui::{Ui, printable};

/// Shows the events of turns, one after the other.
pub(crate) struct Renderer<'a> {
    output: OutputArg,
    ui: &'a mut Ui,
    /// The block of text that is being streamed.
    block: Option<String>,
}

impl<'a> Renderer<'a> {
    pub(crate) fn new(output: OutputArg, ui: &'a mut Ui) -> Self {
        Self { output, ui, block: None }
    }

    /// Shows a notice on standard error, whatever the output is.
    pub(crate) fn notice(&mut self, text: &str) {
        self.ui.notice(text);
    }

    /// Shows something that belongs to no turn: to programs as an object, to
    /// people as a notice.
    pub(crate) fn aside(&mut self, aside: &Aside) -> io::Result<()> {
        match self.output {
            OutputArg::StreamJson => self.ui.line(&to_json(aside)),
            OutputArg::Json | OutputArg::Text => {
                self.ui.notice(&aside.text());
                Ok(())
            }
        }
    }

    /// Asks a person for a decision.
    pub(crate) fn question(&mut self, permission: &Permission) {
        self.ui.notice(&asking::question(permission));
        self.ui.ask(asking::prompt(permission));
    }

    /// Asks again, after saying what can be replied.
    pub(crate) fn question_again(&mut self, permission: &Permission, hint: &str) {
        self.ui.notice(&format!("  {hint}"));
        self.ui.ask(asking::prompt(permission));
    }

    /// Returns what everything is printed through.
    pub(crate) fn ui(&mut self) -> &mut Ui {
        self.ui
    }

    /// Shows an event.
    #[expect(clippy::wildcard_enum_match_arm, reason = "only the end is an object of its own")]
    pub(crate) fn event(&mut self, event: &Event) -> io::Result<()> {
        match self.output {
            OutputArg::StreamJson => self.ui.line(&to_json(event)),
            OutputArg::Json => match &event.body {
                EventBody::Complete(report) => self.ui.line(&to_json(report)),
                _ => Ok(()),
            },
            OutputArg::Text => self.show(&Shown::of(event)),
        }
    }

    /// Shows an event to people.
    pub(crate) fn show(&mut self, shown: &Shown<'_>) -> io::Result<()> {
        if self.ui.is_terminal() { self.stream(shown) } else { self.once(shown) }
    }

    /// Leaves what a turn has said so far, for another one answers in its place.
    pub(crate) fn begin_again(&mut self) -> io::Result<()> {
        self.block = None;
        self.ui.end_line()
    }

    /// Tells that a turn could not be started.
    pub(crate) fn not_started(&mut self, agent: &str, failure: &Failure) {
        self.ui.notice(&format!("ostler: {}", failure.message));
        let report = TurnReport::not_started(AgentName::new(agent), failure.clone());
        let shown = match self.output {
            OutputArg::Text => Ok(()),
            OutputArg::Json => self.ui.line(&to_json(&report)),
            OutputArg::StreamJson => {
                let turn = TurnId::new();
                let at = jiff::Timestamp::now();
                let bodies =
                    [EventBody::Error(failure.clone()), EventBody::Complete(Box::new(report))];
                bodies.into_iter().zip(1..).try_for_each(|(body, seq)| {
                    let event = Event { seq, at, turn: turn.clone(), parent: None, body };
                    self.ui.line(&to_json(&event))
                })
            }
        };
        if let Err(error) = shown {
            self.ui.notice(&format!("ostler: could not print: {error}"));
        }
    }

    /// Off a terminal: the answer at the end, nothing but it.
    fn once(&mut self, shown: &Shown<'_>) -> io::Result<()> {
        match &shown.what {
            What::Complete(Complete { text, failure: None }) => {
                self.ui.write(text)?;
                self.ui.end_line()?;
            }
            What::Complete(Complete { text, failure: Some(failure) }) => {
                self.failure(text, failure);
            }
            What::Status { code: "warning", text } => self.status("warning", text),
            What::Resolved { decision, by, .. } => self.resolved(decision, by),
            What::Started { .. }
            | What::Output { .. }
            | What::ToolUse { .. }
            | What::ToolFailed { .. }
            | What::Permission { .. }
            | What::Status { .. }
            | What::Other => {}
        }
        Ok(())
    }

    /// On a terminal: the answer as it comes, and what happens around it on standard error.
    fn stream(&mut self, shown: &Shown<'_>) -> io::Result<()> {
        match &shown.what {
            What::Output { text, block } if !shown.is_nested => {
                if self.block.as_ref().is_some_and(|open| open != block) {
                    self.ui.end_line()?;
                }
                self.block = Some((*block).to_owned());
                self.ui.write(&printable(text))?;
            }
            What::Started { by_agent: true } => {
                self.ui.notice("  … the agent goes on by itself");
            }
            What::ToolUse { tool, title } => {
                self.ui.notice(&format!("  → {tool}: {}", one_line(title)));
            }
            What::ToolFailed { tool, output } => {
                self.ui.notice(&format!("  ✗ {tool}: {}", one_line(output)));
            }
            What::Status { code, text } => self.status(code, text),
            What::Resolved { decision, by, .. } => self.resolved(decision, by),
            What::Complete(Complete { text, failure }) => {
                self.ui.end_line()?;
                let streamed = self.block.take().is_some();
                match failure {
                    Some(failure) => self.failure(text, failure),
                    // An agent that does not stream, or whose answer came as no event.
                    None if !streamed => {
                        self.ui.write(&printable(text))?;
                        self.ui.end_line()?;
                    }
                    None => {}
                }
            }
            What::Output { .. }
            | What::Started { by_agent: false }
            | What::Permission { .. }
            | What::Other => {}
        }
        Ok(())
    }

    fn status(&mut self, code: &str, text: &str) {
        let line = match code {
            "warning" => format!("ostler: warning: {text}"),
            "retry" => format!("  … trying again: {}", one_line(text)),
            "queued" | "fresh_session" => format!("  … {text}"),
            "steered" => format!("  … taken into account: {}", one_line(text)),
            "compacted" => format!("  … history shortened: {}", one_line(text)),
            "retracted" => "  … the text above was withdrawn".to_owned(),
            _ => return,
        };
        self.ui.notice(&line);
    }

    fn resolved(&mut self, decision: &str, by: &str) {
        let by = match by {
            "session" => "as before",
            "timeout" => "nobody answered in time",
            "cancel" => "the turn is being ended",
            "agent" => "the agent did not wait",
            // Who decided it knows.
            _ => return,
        };
        self.ui.notice(&format!("  … {decision}: {by}"));
    }

    /// Tells why a turn failed: the text to show, and below it what that does not say.
    fn failure(&mut self, text: &str, failure: &ShownFailure<'_>) {
        let ShownFailure { kind, message } = failure;
        self.ui.notice(&format!("ostler: {text}"));
        if !text.contains(message) {
            self.ui.notice(&format!("  {message} ({kind})"));
        }
    }
}

fn to_json(value: &impl serde::Serialize) -> String {
    serde_json::to_string(value).unwrap_or_else(|error| {
        serde_json::json!({ "type": "error", "kind": "internal", "message": error.to_string() })
            .to_string()
    })
}

/// Returns the start of a text, on one line.
fn one_line(text: &str) -> String {
    let line: String = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(120) {
        Some((at, _)) => format!("{}…", line.get(..at).unwrap_or_default()),
        None => line,
    }
}

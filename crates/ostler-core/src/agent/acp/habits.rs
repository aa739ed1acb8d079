//! What some programs do and others that speak the protocol do not, by the name
//! that they give themselves.
//!
//! Only what was recorded: a program that is not listed is taken at its word.

use super::fault;
use crate::{
    failure::{Failure, FailureKind},
    protocol::acp::{Habits, Used},
};

/// Returns what programs of this name do.
pub(super) fn of(name: &str) -> &'static Habits {
    match name {
        "Copilot" => &COPILOT,
        "OpenCode" => &OPENCODE,
        "qwen-code" => &QWEN,
        _ => &Habits::NONE,
    }
}

/// Copilot tells of failures in the model's place, and that the turn ended well.
static COPILOT: Habits = Habits { is_notice, told_failure, counts_anew: true, ..Habits::NONE };

static OPENCODE: Habits = Habits { tells_last_call: true, ..Habits::NONE };

static QWEN: Habits = Habits {
    idle_requests: &["craft/drainMidTurnQueue"],
    mode_notice: Some("qwen/notify/session/mode-update"),
    ..Habits::NONE
};

/// How Copilot's notices begin. Each comes in one piece, of one line.
const NOTICES: &[&str] = &[
    "Info: Request failed due to a transient API error.",
    "Info: Response was interrupted due to a server error.",
    "Info: The conversation exceeded the model's context limit.",
    "Info: Operation cancelled by user",
    "Info: Disabled tools: ",
    // The path of a file that was made.
    "Info: /",
];

fn is_notice(piece: &str) -> bool {
    !piece.contains('\n') && NOTICES.iter().any(|notice| piece.starts_with(notice))
}

/// What Copilot says when the model was asked and gave nothing.
const NO_RESPONSE: &str = "Error: No response was returned.";

/// Such a text comes in one piece, and nothing was used since the turn began. A
/// model that is quoted, or that begins an answer like this, has used something.
fn told_failure(piece: &str, used: Used) -> Option<Failure> {
    let message = piece.strip_prefix("Error: ")?;
    if used == Used::Some && !piece.starts_with(NO_RESPONSE) {
        return None;
    }
    let kind = fault::of_words(message).unwrap_or(FailureKind::Unavailable);
    Some(Failure::new(kind, message.trim_end()))
}

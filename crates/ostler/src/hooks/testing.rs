//! Hooks for tests.

use std::time::Duration;

use crate::config::{Hook, HookAction, HookEvent, OnFailure};

/// Makes a hook with a patient time limit.
pub(crate) fn hook(name: &str, on: &[HookEvent], action: HookAction) -> Hook {
    Hook {
        name: name.to_owned(),
        on: on.to_vec(),
        action,
        timeout: Duration::from_secs(60),
        on_failure: OnFailure::Ignore,
        conversation: None,
        channels: None,
    }
}

pub(crate) fn instruction(name: &str, on: &[HookEvent], text: &str) -> Hook {
    hook(name, on, HookAction::Instruction(text.to_owned()))
}

pub(crate) fn shell(name: &str, on: &[HookEvent], script: &str) -> Hook {
    let words = ["sh", "-c", script].map(str::to_owned);
    hook(name, on, HookAction::Command(words.to_vec()))
}

pub(crate) fn url(name: &str, on: &[HookEvent], url: &str) -> Hook {
    hook(name, on, HookAction::Url(url.to_owned()))
}

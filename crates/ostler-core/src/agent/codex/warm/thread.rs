//! What the server says of a thread that it has opened.

use std::path::PathBuf;

use serde_json::Value;

use crate::failure::{Failure, FailureKind};

/// A thread as it was opened.
pub(super) struct Thread {
    pub(super) id: String,
    pub(super) file: Option<PathBuf>,
    pub(super) model: Option<String>,
    pub(super) effort: Option<String>,
    /// What commands can do, as the server words it. The user's own settings may
    /// be part of it.
    pub(super) sandbox: Value,
    policy: Value,
    is_busy: bool,
}

/// What a thread is to be held to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Bounds {
    /// When the server asks.
    pub(super) policy: &'static str,
    /// What commands can do, as it is written in requests.
    pub(super) sandbox: &'static str,
    /// The same as it is written in replies and with turns.
    pub(super) sandbox_type: &'static str,
}

impl Thread {
    /// Reads it; `None` when it has no id.
    pub(super) fn read(mut reply: Value) -> Option<Self> {
        let text = |value: Option<&Value>| value.and_then(Value::as_str).map(str::to_owned);
        let thread = reply.get("thread")?;
        let status = thread.get("status").and_then(|status| status.get("type"));
        Some(Self {
            id: text(thread.get("id"))?,
            file: text(thread.get("path")).map(Into::into),
            model: text(reply.get("model")),
            effort: text(reply.get("reasoningEffort")),
            is_busy: status.is_some_and(|status| status == "active"),
            policy: reply.get_mut("approvalPolicy").map(Value::take).unwrap_or_default(),
            sandbox: reply.get_mut("sandbox").map(Value::take).unwrap_or_default(),
        })
    }

    /// Returns why no prompt may be sent here.
    ///
    /// A thread that was loaded already keeps what it was opened with, and one
    /// with a running turn takes a prompt into that turn: both without a word,
    /// and with what the agent was allowed before.
    pub(super) fn refusal(&self, wanted: Bounds) -> Option<Failure> {
        if self.is_busy {
            let text = "codex still works on an earlier prompt of this session";
            return Some(Failure::new(FailureKind::SessionBusy, text));
        }
        let sandbox = self.sandbox.get("type").unwrap_or(&Value::Null);
        if sandbox == wanted.sandbox_type && self.policy == wanted.policy {
            return None;
        }
        let text = format!(
            "codex opened the session with sandbox {sandbox} and approval policy {}, not with \"{}\" and \"{}\" as it was told",
            self.policy, wanted.sandbox_type, wanted.policy
        );
        Some(Failure::new(FailureKind::Denied, text))
    }
}

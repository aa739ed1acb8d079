//! The lines of `codex exec --json`, and the usage that its last one reports.
//! The numbers are made up but add up: each pretended model call costs the
//! same.

use serde::Serialize;

#[derive(Debug, Serialize)]
#[serde(tag = "type")]
pub(super) enum Event<'a> {
    #[serde(rename = "thread.started")]
    ThreadStarted { thread_id: &'a str },
    #[serde(rename = "turn.started")]
    TurnStarted {},
    #[serde(rename = "item.started")]
    ItemStarted { item: Item<'a> },
    #[serde(rename = "item.completed")]
    ItemCompleted { item: Item<'a> },
    #[serde(rename = "turn.completed")]
    TurnCompleted { usage: Usage },
}

impl Event<'_> {
    pub(super) fn line(&self) -> String {
        // Strings and numbers always serialize; an empty line would be seen.
        serde_json::to_string(self).unwrap_or_default()
    }
}

#[derive(Debug, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum Item<'a> {
    AgentMessage {
        id: &'a str,
        text: &'a str,
    },
    CommandExecution {
        id: &'a str,
        command: &'a str,
        aggregated_output: &'a str,
        exit_code: Option<i32>,
        status: Status,
    },
}

#[derive(Debug, Clone, Copy, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Status {
    InProgress,
    Completed,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub(super) struct Usage {
    input_tokens: u64,
    cached_input_tokens: u64,
    cache_write_input_tokens: u64,
    output_tokens: u64,
    reasoning_output_tokens: u64,
}

impl Usage {
    /// Of a whole thread, as Codex reports it, not of one turn.
    pub(super) fn of(n_calls: u64) -> Self {
        Self {
            input_tokens: n_calls * 1200,
            cached_input_tokens: n_calls * 1000,
            cache_write_input_tokens: 0,
            output_tokens: n_calls * 34,
            reasoning_output_tokens: n_calls * 12,
        }
    }

    /// What text mode prints: cached input is left out.
    pub(super) fn total(self) -> u64 {
        self.input_tokens - self.cached_input_tokens + self.output_tokens
    }
}

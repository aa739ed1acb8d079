//! Reads what the CLI says about itself: retries, limits, denials.

use std::time::Duration;

use jiff::Timestamp;
use serde_json::Value;

use super::{
    failure::{self, Evidence},
    field,
    turn::Turn,
};
use crate::{
    agent::{
        Action,
        emit::{emit, emit_warning},
    },
    event::{EventBody, Status},
    failure::Failure,
};

/// Notices that carry nothing for a reader: progress of requests, thinking and
/// tasks, all of which other lines tell better.
const QUIET_NOTICES: &[&str] = &[
    "background_tasks_changed",
    "model_refusal_no_fallback",
    "session_state_changed",
    "status",
    "task_progress",
    "task_updated",
    "thinking_tokens",
    "ui_invalidate",
];

impl Turn {
    pub(super) fn notice(
        &mut self,
        now: Timestamp,
        line: &mut Value,
        out: &mut Vec<Action>,
    ) -> bool {
        match line.get("subtype").and_then(Value::as_str) {
            Some("init") => {
                self.begin(line, out);
                true
            }
            Some("api_retry") => {
                self.retry(now, line, out);
                true
            }
            Some("permission_denied") => {
                let tool = field::text(line, "tool_name").unwrap_or("a tool");
                let why = field::text(line, "message").unwrap_or_default();
                let text = format!("permission denied for {tool}: {why}");
                emit_warning(self.key, text, out);
                true
            }
            Some("informational") => match field::take_text(line, "content") {
                Some(text) => {
                    emit_warning(self.key, text, out);
                    true
                }
                None => false,
            },
            Some("task_started") => {
                self.tasks.extend(field::take_text(line, "task_id"));
                true
            }
            Some("task_notification") => {
                if let Some(task) = field::text(line, "task_id") {
                    self.tasks.remove(task);
                }
                true
            }
            Some("compact_boundary") => {
                let tokens = line.pointer("/compact_metadata/pre_tokens");
                let text = match tokens.and_then(Value::as_u64) {
                    Some(tokens) => format!("the history of {tokens} tokens was made shorter"),
                    None => "the history was made shorter".to_owned(),
                };
                emit(self.key, EventBody::Status(Status::Compacted { text }), out);
                true
            }
            Some(subtype) => QUIET_NOTICES.contains(&subtype),
            None => false,
        }
    }

    /// `/clear` goes on in a session of its own. The id in this line is not the
    /// one under which the CLI keeps it; later lines tell that.
    pub(super) fn reset(&mut self, line: &Value) -> bool {
        if field::text(line, "new_conversation_id").is_none() {
            return false;
        }
        self.session.forget();
        self.before.counted = self.session.counted;
        self.before.totals = self.session.totals;
        true
    }

    fn retry(&mut self, now: Timestamp, line: &Value, out: &mut Vec<Action>) {
        let count = |key| field::number(line, key).and_then(|n| u32::try_from(n).ok());
        let word = field::text(line, "error").unwrap_or("unknown");
        let status = field::number(line, "error_status");
        let why = match status {
            Some(status) => format!("{word} ({status})"),
            None => word.to_owned(),
        };
        let delay = delay(line);
        let notice = Status::Retry {
            attempt: count("attempt"),
            max: count("max_retries"),
            delay_ms: delay.and_then(|delay| u64::try_from(delay.as_millis()).ok()),
            text: why.clone(),
        };
        emit(self.key, EventBody::Status(notice), out);
        let delay = delay.unwrap_or_default();
        self.waited = self.waited.saturating_add(delay);
        if self.session.patience.is_none_or(|patience| self.waited <= patience) {
            return;
        }
        // The CLI obeys a provider that asks for minutes and says nothing
        // meanwhile. Its own waits are short, so this one is the provider's.
        let evidence = Evidence {
            status: status.and_then(|status| u16::try_from(status).ok()),
            words: vec![word.to_owned(), "api_error".to_owned()],
            message: format!("{why}; the provider asks to wait {} s", delay.as_secs()),
            resets_at: None,
        };
        self.given_up = Some(Failure { retry_after: Some(delay), ..evidence.conclude(now) });
    }

    /// Reads the state of a subscription's limit.
    pub(super) fn limit(&mut self, line: &Value, out: &mut Vec<Action>) -> bool {
        let Some(limit) = line.get("rate_limit_info") else {
            return false;
        };
        self.before.evidence.resets_at = failure::resets_at(limit);
        match field::text(limit, "status") {
            Some("allowed") | None => {}
            Some(status) => {
                let which = field::text(limit, "rateLimitType").unwrap_or("rate");
                let text = format!("{which} limit: {status}");
                emit_warning(self.key, text, out);
            }
        }
        true
    }
}

/// Reads how long the CLI waits; 2.1.197 tells fractions of milliseconds.
fn delay(line: &Value) -> Option<Duration> {
    let ms = line.get("retry_delay_ms").and_then(Value::as_f64)?;
    Duration::try_from_secs_f64(ms / 1000.0).ok()
}

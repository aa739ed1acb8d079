//! The table at the end of the tour.

use std::time::Duration;

use serde_json::Value;

use super::troupe::Cast;

/// A row: an agent with its turns.
pub(crate) struct Row {
    agent: String,
    cast: Cast,
    session: String,
    turns: Vec<Measured>,
    pub(crate) failure: Option<String>,
}

/// What was seen of a turn.
struct Measured {
    first_text: Option<Duration>,
    total: Duration,
    tokens: Option<u64>,
}

impl Row {
    pub(crate) fn new(agent: &str, cast: Cast) -> Self {
        let (agent, session) = (agent.to_owned(), String::new());
        Self { agent, cast, session, turns: Vec::new(), failure: None }
    }

    /// Adds a turn by its last event.
    pub(crate) fn add(&mut self, total: Duration, first_text: Option<Duration>, end: &Value) {
        let tokens = end.pointer("/usage/total_tokens").and_then(Value::as_u64);
        self.turns.push(Measured { first_text, total, tokens });
        let session = end.get("session_id").and_then(Value::as_str);
        self.session = session.unwrap_or_default().to_owned();
    }
}

/// Writes the table.
pub(crate) fn table(rows: &[Row]) -> String {
    let mut lines = vec![format!(
        "\n{:<9} {:<9} {:<37} {:>10} {:>8} {:>7}",
        "agent", "played", "session", "first text", "total", "tokens"
    )];
    for row in rows {
        if let Some(failure) = &row.failure {
            lines.push(format!("{:<9} {:<9} failed: {failure}", row.agent, row.cast.label()));
        }
        for (number, turn) in row.turns.iter().enumerate() {
            let session = if number == 0 { row.session.as_str() } else { "  resumed" };
            lines.push(format!(
                "{:<9} {:<9} {:<37} {:>10} {:>8} {:>7}",
                row.agent,
                row.cast.label(),
                session,
                turn.first_text.map_or_else(|| "-".to_owned(), milliseconds),
                milliseconds(turn.total),
                turn.tokens.map_or_else(|| "-".to_owned(), |tokens| tokens.to_string()),
            ));
        }
    }
    lines.join("\n")
}

fn milliseconds(duration: Duration) -> String {
    format!("{} ms", duration.as_millis())
}

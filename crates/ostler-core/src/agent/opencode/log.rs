//! What OpenCode prints on standard error: log entries, notices and errors.
//!
//! Entries are `key=value` pairs on one line, quoted where needed; the rest is
//! for people and coloured even when nobody sees it.

/// What a line of standard error says.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Notice {
    /// A call of the model failed. Whether it is tried again is not said.
    ModelFailed {
        /// In which session; that of a sub-agent is another.
        session: Option<String>,
        /// The model, as provider and model.
        model: Option<String>,
        /// Why, in the provider's words.
        message: String,
    },
    /// The turn failed before the model was called; standard output only says so.
    Failed {
        /// Why.
        message: String,
    },
    /// A permission was asked for, and the CLI said no by itself.
    Rejected {
        /// Which.
        text: String,
    },
    /// The agent that should have run does not exist, and another runs instead.
    AgentMissing {
        /// In the CLI's words.
        text: String,
    },
    /// The line above the conversation in the text form: agent and model.
    Banner {
        /// The model without its provider.
        model: String,
    },
    /// It tells a reader nothing.
    Noise,
}

/// Entries that tell a reader nothing, with the reason why not.
const NOISE: &[(&str, &str)] = &[
    // The same words come on standard output, with more facts.
    ("message", "process"),
    // The title of a session is made by a call of its own.
    ("small", "true"),
    ("agent", "title"),
    // The published copy of a session, which is switched off.
    ("message", "share subscriber failed"),
];

/// Reads a line; `None` when it is not known.
pub(super) fn read(line: &str) -> Option<Notice> {
    let line = plain(line);
    let line = line.trim();
    if line.is_empty() {
        return Some(Notice::Noise);
    }
    if let Some(entry) = Entry::read(line) {
        return entry.notice();
    }
    if let Some(model) = line.strip_prefix("> ").and_then(|rest| rest.split_once(" · ")) {
        return Some(Notice::Banner { model: model.1.to_owned() });
    }
    let notice = line.strip_prefix('!')?.trim_start();
    if notice.starts_with("permission requested: ") {
        return Some(Notice::Rejected { text: notice.to_owned() });
    }
    if notice.starts_with("agent \"") {
        return Some(Notice::AgentMissing { text: notice.to_owned() });
    }
    None
}

/// Removes colours.
pub(super) fn plain(text: &str) -> String {
    let mut result = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("\u{1b}[") {
        result.push_str(before);
        let end = after.find(|c: char| !c.is_ascii_digit() && c != ';').unwrap_or(after.len());
        let mut behind = after.get(end..).unwrap_or_default().chars();
        behind.next();
        rest = behind.as_str();
    }
    result.push_str(rest);
    result
}

/// Whether a line without colours is a log entry.
pub(super) fn is_entry(line: &str) -> bool {
    Entry::read(line.trim()).is_some()
}

/// A log entry.
struct Entry {
    fields: Vec<(String, String)>,
}

impl Entry {
    fn read(line: &str) -> Option<Self> {
        if !line.starts_with("timestamp=") {
            return None;
        }
        let mut fields = Vec::new();
        let mut rest = line;
        while let Some((key, after)) = rest.split_once('=') {
            let (value, behind) = value(after);
            fields.push((key.trim_start().to_owned(), value));
            rest = behind;
        }
        let entry = Self { fields };
        entry.get("level").is_some().then_some(entry)
    }

    fn get(&self, key: &str) -> Option<&str> {
        self.fields.iter().find(|(name, _)| name == key).map(|(_, value)| value.as_str())
    }

    fn notice(&self) -> Option<Notice> {
        if NOISE.iter().any(|(key, value)| self.get(key) == Some(value)) {
            return Some(Notice::Noise);
        }
        match self.get("message")? {
            "stream error" => Some(Notice::ModelFailed {
                session: self.get("session.id").map(str::to_owned),
                model: self.model(),
                message: words(self.get("error.error").unwrap_or_default()),
            }),
            "failed" => {
                Some(Notice::Failed { message: words(self.get("error").unwrap_or_default()) })
            }
            _ => None,
        }
    }

    fn model(&self) -> Option<String> {
        Some(format!("{}/{}", self.get("providerID")?, self.get("modelID")?))
    }
}

/// Splits the first value off, without its quotes.
fn value(text: &str) -> (String, &str) {
    if !text.starts_with('"') {
        let end = text.find(' ').unwrap_or(text.len());
        let (value, rest) = text.split_at_checked(end).unwrap_or((text, ""));
        return (value.to_owned(), rest);
    }
    let mut is_escaped = false;
    let end = text.char_indices().skip(1).find_map(|(at, c)| {
        let ends = c == '"' && !is_escaped;
        is_escaped = c == '\\' && !is_escaped;
        ends.then_some(at + 1)
    });
    let (quoted, rest) = end.and_then(|end| text.split_at_checked(end)).unwrap_or((text, ""));
    let value = serde_json::from_str(quoted).unwrap_or_else(|_| quoted.trim_matches('"').into());
    (value, rest)
}

/// Takes the class before an error's words and the cause behind them away.
fn words(error: &str) -> String {
    let error = match error.split_once(": ") {
        Some((class, rest)) if class.ends_with("Error") && !class.contains(' ') => rest,
        _ => error,
    };
    error.split_once(" (cause: ").map_or(error, |(words, _)| words).to_owned()
}

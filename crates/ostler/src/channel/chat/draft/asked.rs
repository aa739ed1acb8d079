//! A request for permission as a message: what is asked, in full, and what can be
//! answered.

use serde_json::{Map, Value};

use super::{
    super::{Button, Limits, Look, Post},
    text, time, words,
};

/// How much room there is for the last line.
const LAST_LINE: usize = 120;
/// The longest fence that a chat is trusted with.
const FENCE: usize = 16;

/// A request, as it is shown.
#[derive(Clone, Debug)]
pub(super) struct Asked {
    /// The id to answer by.
    pub(super) id: String,
    /// The name that the agent gave it.
    request: String,
    is_question: bool,
    /// What is asked; it leaves room for the last line.
    body: String,
    expires: Option<i64>,
    buttons: Vec<Button>,
    /// Who decided what.
    resolved: Option<String>,
}

impl Asked {
    /// Reads a request. One without an id cannot be answered, and is not shown.
    pub(super) fn read(event: &Value, limits: &Limits) -> Option<Self> {
        let id = event.get("id").and_then(Value::as_str).filter(|id| !id.is_empty())?;
        let is_question = text(event, "kind") == "question";
        let options = event.get("options").and_then(Value::as_array).into_iter().flatten();
        let options: Vec<&str> = options.filter_map(Value::as_str).collect();
        let buttons = match is_question {
            true => choices(id, &options, limits),
            false => decisions(id, &options, limits),
        };
        Some(Self {
            id: id.to_owned(),
            request: text(event, "request").to_owned(),
            is_question,
            body: body(event, &options, limits.text.saturating_sub(LAST_LINE.min(limits.text / 3))),
            expires: time::seconds(text(event, "expires_at")),
            buttons,
            resolved: None,
        })
    }

    /// Tells whether an answer is waited for.
    pub(super) fn is_open(&self) -> bool {
        self.resolved.is_none()
    }

    /// Tells whether a decision is about this request: agents use names again.
    pub(super) fn is_open_as(&self, request: &str) -> bool {
        self.is_open() && self.request == request
    }

    /// Takes down who decided what.
    pub(super) fn resolve(&mut self, event: &Value) {
        let what = match text(event, "decision") {
            "allow" | "allow_always" if self.is_question => "💬 Answered",
            "allow" => "✅ Allowed",
            "allow_always" => "✅ Allowed for this session",
            "deny" => "⛔ Denied",
            _ => "Decided",
        };
        let by = match text(event, "by") {
            "user" => "by a person".to_owned(),
            "session" => "as it was allowed for this session before".to_owned(),
            "timeout" => "as nobody answered in time".to_owned(),
            "cancel" => "as the turn was cancelled".to_owned(),
            "agent" => "by the agent, which did not wait".to_owned(),
            "" => String::new(),
            by => format!("by {}", words::escaped(&words::line(by, 30))),
        };
        self.resolved = Some(format!("-# {what} {by}").trim_end().to_owned());
    }

    /// Returns the message.
    pub(super) fn post(&self, is_over: bool, limits: &Limits) -> Post {
        let (last, buttons) = match (&self.resolved, self.expires) {
            (Some(resolved), _) => (resolved.clone(), Vec::new()),
            (None, _) if is_over => ("-# No longer open".to_owned(), Vec::new()),
            (None, Some(at)) => (format!("-# Expires <t:{at}:R>"), self.buttons.clone()),
            (None, None) => (String::new(), self.buttons.clone()),
        };
        let text = format!("{}\n{last}", self.body);
        let text = text.trim_end().chars().take(limits.text).collect();
        Post { text, buttons, files: Vec::new() }
    }
}

/// Returns what is asked in at most so many characters, or nearly nothing where
/// there is no room.
fn body(event: &Value, options: &[&str], room: usize) -> String {
    let what = match text(event, "kind") {
        "command" => "Permission to run a command",
        "edit" => "Permission to change a file",
        "read" => "Permission to read a file",
        "network" => "Permission to use the network",
        "question" => "A question",
        _ => "Permission to use a tool",
    };
    let mut body = format!("**{what}**");
    let tool = words::escaped(&words::line(text(event, "tool"), 40));
    if !tool.is_empty() {
        body = format!("{body} · {tool}");
    }
    let title = text(event, "title");
    let is_question = text(event, "kind") == "question";
    // Questions are read as text; of anything else that is long the block below has all.
    let line = words::line(title, if is_question { room / 3 } else { 100 });
    if !line.is_empty() {
        body = format!("{body}\n{}", words::escaped(&line));
    }
    let mut more = match is_question {
        true => numbered(options),
        false => input(event.get("input").unwrap_or(&Value::Null)),
    };
    // A title that is not shown in full above is shown here.
    if more == title || more.is_empty() {
        more = if line == title { String::new() } else { title.to_owned() };
    } else if line != title && !more.contains(title) {
        more = format!("{title}\n\n{more}");
    }
    if !more.is_empty() {
        let more = words::harmless(&more);
        let more = match more.contains(&"`".repeat(FENCE)) {
            true => more.replace('`', "ˋ"),
            false => more,
        };
        let left = room.saturating_sub(body.chars().count() + 2 * FENCE + 3);
        body = format!("{body}\n{}", words::fenced(&words::without_middle(more.trim_end(), left)));
    }
    body.chars().take(room).collect()
}

/// Returns what a tool would be called with: a command as it is, and the rest of it.
fn input(input: &Value) -> String {
    match input {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        Value::Object(fields) => match fields.get("command") {
            Some(Value::String(command)) => {
                let is_more = |name: &String| !matches!(name.as_str(), "command" | "description");
                let rest = fields.iter().filter(|(name, _)| is_more(name));
                let rest: Map<_, _> = rest.map(|(k, v)| (k.clone(), v.clone())).collect();
                match rest.is_empty() {
                    true => command.clone(),
                    false => format!("{command}\n\n{:#}", Value::Object(rest)),
                }
            }
            Some(_) | None if fields.is_empty() => String::new(),
            Some(_) | None => format!("{input:#}"),
        },
        Value::Bool(_) | Value::Number(_) | Value::Array(_) => format!("{input:#}"),
    }
}

fn numbered(options: &[&str]) -> String {
    let lines: Vec<_> =
        options.iter().zip(1..).map(|(option, n)| format!("{n}. {option}")).collect();
    lines.join("\n")
}

/// Returns a button for each decision that is possible.
fn decisions(id: &str, options: &[&str], limits: &Limits) -> Vec<Button> {
    let all = [
        ("allow", "Allow", Look::Good),
        ("allow_always", "Allow for this session", Look::Plain),
        ("deny", "Deny", Look::Bad),
    ];
    let options = if options.is_empty() { &["allow", "deny"] } else { options };
    let known = options.iter().filter_map(|option| all.iter().find(|(code, ..)| code == option));
    let mut known: Vec<_> = known.collect();
    if known.len() > limits.buttons {
        known.retain(|(_, _, look)| *look != Look::Plain);
    }
    let buttons = known.into_iter().map(|(code, label, look)| Button {
        id: format!("{id}:{code}"),
        label: words::shortened(label, limits.label),
        look: *look,
    });
    buttons.take(limits.buttons).collect()
}

/// Returns a button for each choice of a question, and one for any other answer.
fn choices(id: &str, options: &[&str], limits: &Limits) -> Vec<Button> {
    let button =
        |id, label: &str| Button { id, label: words::line(label, limits.label), look: Look::Plain };
    let choices = options.iter().enumerate().take(limits.buttons.saturating_sub(1));
    let choices = choices.map(|(index, option)| {
        let label = if option.trim().is_empty() { "?" } else { option };
        button(format!("{id}:option:{index}"), label)
    });
    let other = (limits.buttons > 0).then(|| button(format!("{id}:text"), "Answer…"));
    choices.chain(other).collect()
}

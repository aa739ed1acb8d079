//! A request for permission as a message: what is asked, in full, and what can be
//! answered.

mod told;

use jiff::Timestamp;
use serde_json::Value;

use self::told::{Kept, Told};
use super::{
    super::{Attachment, Button, Choices, Limits, Look, Post, Slot, markup::Markup},
    text, words,
};

/// How much room there is for the last line.
const LAST_LINE: usize = 120;
/// What the choice to write something ends with.
const WRITTEN: &str = ":text";

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
    /// The messages above it, if it takes several.
    pages: Vec<String>,
    /// All of it as a file, if it takes one, and what it was made of: a chat may not
    /// take the file.
    file: Option<Attachment>,
    event: Option<Value>,
    expires: Option<i64>,
    buttons: Vec<Button>,
    /// The number of the first of them, where they are told by numbers.
    first: usize,
    /// Who decided what.
    resolved: Option<String>,
}

impl Asked {
    /// Reads a request, of whose choices the first has this number. One without an id
    /// cannot be answered, and is not shown.
    pub(super) fn read(event: &Value, limits: &Limits, first: usize) -> Option<Self> {
        let id = event.get("id").and_then(Value::as_str).filter(|id| !id.is_empty())?;
        let is_question = text(event, "kind") == "question";
        let options = event.get("options").and_then(Value::as_array).into_iter().flatten();
        let options: Vec<&str> = options.filter_map(Value::as_str).collect();
        let mut buttons = match is_question {
            true => choices(id, &options, limits),
            false => decisions(id, &options, limits),
        };
        let listed = match limits.choices {
            Choices::Buttons => 0,
            Choices::Numbers if is_question => 0,
            Choices::Numbers => {
                limits.measure.of(&list(&buttons, first, limits.markup)).saturating_add(1)
            }
        };
        let last = (LAST_LINE + listed).min(limits.text / 3);
        let room = limits.text.saturating_sub(last);
        let Told { body, pages, file, kept } = told::tell(event, &options, first, limits, room);
        // Nobody allows what he cannot read.
        if kept == Kept::TooLittle && !is_question {
            buttons.retain(|button| button.look == Look::Bad);
        }
        Some(Self {
            id: id.to_owned(),
            request: text(event, "request").to_owned(),
            is_question,
            body,
            pages,
            event: file.is_some().then(|| event.clone()),
            file,
            expires: text(event, "expires_at").parse().ok().map(Timestamp::as_second),
            buttons,
            first,
            resolved: None,
        })
    }

    pub(super) fn has_file(&self) -> bool {
        self.event.is_some()
    }

    /// Says it without a file, as far as these limits let it.
    pub(super) fn leave_file_out(&mut self, limits: &Limits) {
        let Some(event) = self.event.take() else { return };
        let resolved = self.resolved.take();
        if let Some(asked) = Self::read(&event, limits, self.first) {
            *self = Self { resolved, ..asked };
        }
    }

    /// Returns what the choices stand for, in the order of their numbers.
    pub(super) fn choices(&self) -> impl Iterator<Item = &str> {
        let ids = self.buttons.iter().map(|button| button.id.as_str());
        // What is written instead has no number.
        ids.filter(|id| !id.ends_with(WRITTEN))
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
    pub(super) fn resolve(&mut self, event: &Value, markup: Markup) {
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
            by => format!("by {}", markup.as_it_is(&words::line(by, 30))),
        };
        self.resolved = Some(markup.aside(format!("{what} {by}").trim_end()));
    }

    /// Returns its messages.
    pub(super) fn posts(&self, is_over: bool, limits: &Limits) -> Vec<(Slot, Post)> {
        let pages = self.pages.iter().zip(0..);
        let page = |(page, number): (&String, u32)| {
            (Slot::Page(self.id.clone(), number), Post::of(page.clone()))
        };
        let last = (Slot::Asked(self.id.clone()), self.post(is_over, limits));
        pages.map(page).chain([last]).collect()
    }

    /// Returns the message that can be answered.
    fn post(&self, is_over: bool, limits: &Limits) -> Post {
        let markup = limits.markup;
        let (last, is_open) = match (&self.resolved, self.expires) {
            (Some(resolved), _) => (resolved.clone(), false),
            (None, _) if is_over => (markup.aside("No longer open"), false),
            (None, Some(at)) => (markup.aside(&markup.until(at)), true),
            (None, None) => (String::new(), true),
        };
        let (choices, buttons) = match limits.choices {
            Choices::Buttons if is_open => (String::new(), self.buttons.clone()),
            Choices::Numbers if is_open => {
                (format!("{}\n", self.numbers(markup)), self.buttons.clone())
            }
            Choices::Buttons | Choices::Numbers => (String::new(), Vec::new()),
        };
        let text = format!("{}\n{choices}{last}", self.body);
        let text = limits.measure.start(text.trim_end(), limits.text).to_owned();
        Post { text, buttons, files: self.file.clone().into_iter().collect() }
    }

    /// Says how to choose by a number.
    fn numbers(&self, markup: Markup) -> String {
        match (self.is_question, self.choices().count()) {
            (false, _) => list(&self.buttons, self.first, markup),
            (true, 0) => "Write your answer.".to_owned(),
            (true, _) => "Send a number, or write your answer.".to_owned(),
        }
    }
}

/// Returns choices as lines, each with its number.
fn list(buttons: &[Button], first: usize, markup: Markup) -> String {
    let line = |(button, number): (&Button, usize)| {
        format!("{} {}", markup.strong(&number.to_string()), button.label)
    };
    buttons.iter().zip(first..).map(line).collect::<Vec<_>>().join("\n")
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
    let other = (limits.buttons > 0).then(|| button(format!("{id}{WRITTEN}"), "Answer…"));
    choices.chain(other).collect()
}

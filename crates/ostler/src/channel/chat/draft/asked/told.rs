//! What is asked, in words: all of it, wherever that can be. A chat that has no room
//! for it in one message gets it as a file, or in several messages; what cannot be
//! had like that either may be denied, and not allowed.

use serde_json::{Map, Value};

use super::super::{
    super::{
        Attachment, Content, Limits,
        markup::Markup,
        split::{Piece, split},
    },
    reply::TEXT,
    text, words,
};

/// How many messages a request may take above the one that is answered.
const PAGES: usize = 10;
/// What all of it is called as a file.
const FILE: &str = "request.txt";
/// The longest title that is a line of its own, in characters.
const TITLE: usize = 100;
/// The longest option of a question, in characters.
const OPTION: usize = 1000;

/// What is asked, as a chat shows it.
pub(super) struct Told {
    /// What stands in the message that is answered.
    pub(super) body: String,
    /// The messages above it.
    pub(super) pages: Vec<String>,
    /// All of it.
    pub(super) file: Option<Attachment>,
    pub(super) kept: Kept,
}

/// How much of it can be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kept {
    /// All, or of a file that is changed enough to know which.
    Enough,
    TooLittle,
}

/// Says what is asked. The message that is answered has so much room for it.
pub(super) fn tell(
    event: &Value,
    options: &[&str],
    first: usize,
    limits: &Limits,
    room: usize,
) -> Told {
    let (markup, measure) = (limits.markup, limits.measure);
    let Asking { head, more } = Asking::read(event, options, first, limits);
    let above = |above: &str, below: &str| match below {
        "" => above.to_owned(),
        below => format!("{above}\n{below}"),
    };
    let block = |text: &str| if text.is_empty() { String::new() } else { markup.block(text) };
    let whole = above(&head, &block(&more));
    let told = |body: String, kept| Told { body, pages: Vec::new(), file: None, kept };
    if measure.fits(&whole, room) {
        return told(whole, Kept::Enough);
    }
    // The longest that has room, within a few tries: what is around it depends on it.
    let cut = |note: &str| {
        let mut left = limits.room_for(&more).min(room);
        loop {
            let body = above(&head, &block(&words::without_middle(&more, left)));
            let body = above(&body, &markup.aside(note));
            if left == 0 || measure.fits(&body, room) {
                return measure.start(&body, room).to_owned();
            }
            left -= left.div_ceil(8);
        }
    };
    let bytes = u64::try_from(more.len()).unwrap_or(u64::MAX);
    if limits.has_captions && limits.takes(TEXT) && bytes <= limits.file_bytes {
        let file =
            Attachment { name: FILE.to_owned(), content: Content::Bytes(more.as_bytes().into()) };
        let body = cut("All of it is in the file. Read it before you allow it.");
        return Told { file: Some(file), ..told(body, Kept::Enough) };
    }
    // What is written into a file can be as long as a book, and is seen in it later.
    if text(event, "kind") == "edit" {
        return told(cut("Not all of it is shown."), Kept::Enough);
    }
    let may_fit = measure.fits(&whole, limits.text.saturating_mul(PAGES));
    let pages = if may_fit { paged(&whole, limits) } else { Vec::new() };
    if !(1..=PAGES).contains(&pages.len()) {
        let note = match text(event, "kind") {
            "question" => "It is too long to be shown here.",
            _ => "It is too long to be shown here, and so it can only be denied here.",
        };
        return told(cut(note), Kept::TooLittle);
    }
    let body = above(&head, &markup.aside("All of it is above. Read it before you allow it."));
    let body = measure.start(&body, room).to_owned();
    Told { pages, ..told(body, Kept::Enough) }
}

/// Returns the messages of a text. Where nothing can be set off each line is marked as
/// one of others, and so is a page that goes on with a line.
fn paged(text: &str, limits: &Limits) -> Vec<String> {
    let mark = match limits.markup {
        Markup::Discord | Markup::WhatsApp => "",
        Markup::None => "> ",
    };
    let room = limits.text.saturating_sub(mark.len());
    let pieces = split(text, room, limits.measure).into_iter();
    let page = |piece: Piece| match text.get(..piece.source.start) {
        Some(before) if !before.is_empty() && !before.ends_with('\n') => {
            format!("{mark}{}", piece.text)
        }
        Some(_) | None => piece.text,
    };
    pieces.map(page).collect()
}

/// What is asked, whatever room there is.
struct Asking {
    /// What it is about, in a line or two.
    head: String,
    /// All that is not said there.
    more: String,
}

impl Asking {
    fn read(event: &Value, options: &[&str], first: usize, limits: &Limits) -> Self {
        let markup = limits.markup;
        let what = match text(event, "kind") {
            "command" => "Permission to run a command",
            "edit" => "Permission to change a file",
            "read" => "Permission to read a file",
            "network" => "Permission to use the network",
            "question" => "A question",
            _ => "Permission to use a tool",
        };
        let mut head = markup.strong(what);
        let tool = markup.as_it_is(&words::line(text(event, "tool"), 40));
        if !tool.is_empty() {
            head = format!("{head} · {tool}");
        }
        let title = text(event, "title");
        let is_question = text(event, "kind") == "question";
        // Questions are read as text; of anything else that is long the block below has all.
        let line = words::line(title, if is_question { limits.text / 3 } else { TITLE });
        if !line.is_empty() {
            head = format!("{head}\n{}", markup.set_off(&line));
        }
        let is_shown = is_shown(&line, title, markup);
        let more = match is_question {
            true => numbered(options, first),
            false => input(event.get("input").unwrap_or(&Value::Null), is_shown.then_some(title)),
        };
        let more = match more {
            more if more == title || more.is_empty() => {
                if is_shown {
                    String::new()
                } else {
                    title.to_owned()
                }
            }
            more if is_shown || more.contains(title) => more,
            more => format!("{title}\n\n{more}"),
        };
        Self { head, more: words::harmless(more.trim_end()) }
    }
}

/// Whether a title is shown in full by its line.
fn is_shown(line: &str, title: &str, markup: Markup) -> bool {
    line == title && markup.keeps(line)
}

/// Returns what a tool would be called with: a command as it is, if that is not what is
/// shown already, and the rest of it.
fn input(input: &Value, shown: Option<&str>) -> String {
    match input {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        Value::Object(fields) => match fields.get("command") {
            Some(Value::String(command)) => {
                let is_more = |name: &String| !matches!(name.as_str(), "command" | "description");
                let rest = fields.iter().filter(|(name, _)| is_more(name));
                let rest: Map<_, _> = rest.map(|(k, v)| (k.clone(), v.clone())).collect();
                if rest.is_empty() {
                    return command.clone();
                }
                let rest = Value::Object(rest);
                if shown != Some(command.as_str()) {
                    return format!("{command}\n\n{rest:#}");
                }
                // On one line it can stand in a message with buttons.
                let line = rest.to_string();
                if line.chars().count() <= TITLE { line } else { format!("{rest:#}") }
            }
            Some(_) | None if fields.is_empty() => String::new(),
            Some(_) | None => format!("{input:#}"),
        },
        Value::Bool(_) | Value::Number(_) | Value::Array(_) => format!("{input:#}"),
    }
}

/// Returns options as lines, one each.
fn numbered(options: &[&str], first: usize) -> String {
    let line = |(option, n): (&&str, usize)| format!("{n}. {}", words::line(option, OPTION));
    options.iter().zip(first..).map(line).collect::<Vec<_>>().join("\n")
}

//! A message as it stands on a page. Whatever is in its text stays within its
//! entry: the text is a quotation, in which headings and fences begin and end,
//! and HTML is none. Pure.

use std::fmt::Write as _;

use jiff::{Timestamp, tz::TimeZone};
use serde_json::Value;

use crate::{
    id::MessageId,
    store::messages::{Direction, Message},
    ui::printable,
};

/// How much of a name is shown, in characters.
const LONGEST_NAME: usize = 200;

/// Returns the start of a page.
pub(super) fn title(name: &str, day: &str) -> String {
    format!("# {} · {day}\n\nTimes are UTC.\n", plain(name))
}

/// Returns the line that ends an entry, and by which it is known.
pub(super) fn mark(id: MessageId) -> String {
    format!("<!-- {id} -->\n")
}

/// Returns the entry of a message.
pub(super) fn entry(message: &Message) -> String {
    let time = Timestamp::from_millisecond(message.at.0);
    // Cut off, not rounded: the last moment of a day is on that day's page.
    let time = time.map(|at| at.to_zoned(TimeZone::UTC).strftime("%H:%M:%S").to_string());
    let time = time.unwrap_or_else(|_| message.at.to_string());
    let (text, kind) = words(message);
    let mut entry = format!("\n## {time} · {}", plain(who(message)));
    if let Some(kind) = kind {
        // Writing to a string cannot fail.
        write!(entry, " · {}", plain(&kind)).ok();
    }
    entry.push_str("\n\n");
    quote(&text, &mut entry);
    entry.push('\n');
    entry.push_str(&mark(message.id));
    entry
}

/// Returns who said it.
pub(crate) fn who(message: &Message) -> &str {
    let (sender, agent) = (message.sender.as_deref(), message.agent.as_deref());
    match message.direction {
        Direction::In => sender.unwrap_or("somebody"),
        Direction::Out => agent.or(sender).unwrap_or("ostler"),
    }
}

/// Returns what was said; if it is an error, also of which kind.
pub(crate) fn words(message: &Message) -> (String, Option<String>) {
    let Some(error) = &message.error else {
        return (message.text.clone().unwrap_or_default(), None);
    };
    let error: Value = serde_json::from_str(error).unwrap_or_default();
    let field = |name: &str| error.get(name).and_then(Value::as_str).map(str::to_owned);
    let kind = field("kind").unwrap_or_else(|| "error".to_owned());
    (field("message").unwrap_or_default(), Some(kind))
}

/// Returns a text that is shown as it is, in one line.
fn plain(text: &str) -> String {
    let mut plain = String::new();
    for c in printable(text).chars().take(LONGEST_NAME) {
        match c {
            '\n' | '\t' => plain.push(' '),
            '\\' | '`' | '*' | '_' | '{' | '}' | '[' | ']' | '<' | '>' | '#' | '|' | '!' | '&'
            | '~' => plain.extend(['\\', c]),
            _ => plain.push(c),
        }
    }
    plain
}

/// A block of code that is open: the character of its fence, and how many.
#[derive(Clone, Copy)]
struct Fence(char, usize);

/// Quotes a text. A quotation ends all that begins in it, so that nothing has to
/// be changed but what a browser would take for HTML outside of code.
fn quote(text: &str, to: &mut String) {
    let text = text.replace("\r\n", "\n").replace('\r', "\n");
    let mut fence = None;
    for line in printable(&text).split('\n') {
        let is_code = fence.is_some();
        fence = after(fence, line);
        if line.is_empty() {
            to.push('>');
        } else {
            to.push_str("> ");
            if is_code { to.push_str(line) } else { without_html(line, to) }
        }
        to.push('\n');
    }
}

/// Returns the block of code that is open after a line. One that is indented may
/// end with a list that it is in, so that it is not relied on.
fn after(open: Option<Fence>, line: &str) -> Option<Fence> {
    let run = |line: &str, of: char| line.chars().take_while(|c| *c == of).count();
    match open {
        None => {
            let fence = line.chars().next().filter(|c| matches!(c, '`' | '~'))?;
            let length = run(line, fence);
            let words = line.get(length..).unwrap_or_default();
            let is_fence = length >= 3 && !(fence == '`' && words.contains('`'));
            is_fence.then_some(Fence(fence, length))
        }
        Some(Fence(fence, length)) => {
            let closing = line.trim_start_matches(' ');
            let is_indented = line.len() - closing.len() > 3;
            let n_closing = run(closing, fence);
            let rest = closing.get(n_closing..).unwrap_or_default();
            let is_end = !is_indented && n_closing >= length && rest.trim().is_empty();
            open.filter(|_| !is_end)
        }
    }
}

/// Writes a line in which nothing is the start of HTML.
fn without_html(line: &str, to: &mut String) {
    let mut rest = line;
    while let Some(at) = rest.find('<') {
        let (before, from) = rest.split_at(at);
        to.push_str(before);
        let next = from.chars().nth(1);
        let is_html = next.is_some_and(|c| c.is_ascii_alphabetic() || matches!(c, '/' | '!' | '?'));
        to.push_str(if is_html { "&lt;" } else { "<" });
        rest = from.get(1..).unwrap_or_default();
    }
    to.push_str(rest);
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::{clock::Millis, id::ConversationId};

    pub(crate) fn message(text: &str) -> Message {
        Message {
            id: "msg_01890a5dac96774bbcceb302099a8057".parse().unwrap(),
            conversation: ConversationId::new(),
            number: 1,
            direction: Direction::In,
            origin: "person".to_owned(),
            channel: "local".to_owned(),
            address: "main".to_owned(),
            sender: Some("ann".to_owned()),
            agent: None,
            text: Some(text.to_owned()),
            error: None,
            job: None,
            turn: None,
            at: Millis(1_794_821_402_999),
        }
    }

    #[test]
    fn an_entry_has_time_sender_text_and_mark() {
        assert_eq!(
            entry(&message("# Hello\n\nthere")),
            "\n## 09:30:02 · ann\n\n> # Hello\n>\n> there\n\n\
             <!-- msg_01890a5dac96774bbcceb302099a8057 -->\n"
        );
    }

    #[test]
    fn an_error_names_its_kind() {
        let error = Some(r#"{"kind":"timeout","message":"it took too long"}"#.to_owned());
        let (agent, direction) = (Some("codex".to_owned()), Direction::Out);
        let failed = Message { text: None, error, agent, direction, ..message("") };
        let entry = entry(&failed);
        assert!(entry.contains("· codex · timeout\n\n> it took too long\n"), "{entry}");
    }

    #[test]
    fn html_is_text_outside_of_code_and_code_is_as_it_was() {
        let quoted = |text: &str| {
            let mut to = String::new();
            quote(text, &mut to);
            to
        };
        assert_eq!(quoted("a < b <b> <!-- </p>"), "> a < b &lt;b> &lt;!-- &lt;/p>\n");
        assert_eq!(quoted("```rust\nVec<u8>\n```\n<b>"), "> ```rust\n> Vec<u8>\n> ```\n> &lt;b>\n");
        assert_eq!(quoted("~~~\n```\n<b>\n~~~~ \n<b>"), "> ~~~\n> ```\n> <b>\n> ~~~~ \n> &lt;b>\n");
        // A fence in a list ends with the list.
        assert_eq!(quoted("- a\n  ```\n<b>"), "> - a\n>   ```\n> &lt;b>\n");
        assert_eq!(quoted("``` `\n<b>"), "> ``` `\n> &lt;b>\n");
        assert_eq!(quoted("a\r# b\r\nc\u{1b}[1m"), "> a\n> # b\n> c\u{fffd}[1m\n");
    }

    #[test]
    fn a_name_is_no_markdown() {
        let named = Message { sender: Some("*ann*\n# <x>".to_owned()), ..message("hi") };
        let entry = entry(&named);
        assert!(entry.contains("## 09:30:02 · \\*ann\\* \\# \\<x\\>\n"), "{entry}");
    }

    fn any_text() -> impl Strategy<Value = String> {
        let line = prop_oneof![
            ".*",
            Just("```".to_owned()),
            Just("~~~~ x".to_owned()),
            Just("<!-- msg_01890a5dac96774bbcceb302099a8057 -->".to_owned()),
            Just("# heading".to_owned()),
            Just("</div><script>".to_owned()),
            Just("> quoted".to_owned()),
            Just("---".to_owned()),
        ];
        let end = prop_oneof![Just("\n"), Just("\r\n"), Just("\r"), Just("\n\n")];
        let lines = proptest::collection::vec((line, end), 0..8);
        lines.prop_map(|lines| lines.into_iter().map(|(line, end)| line + end).collect())
    }

    proptest! {
        #[test]
        fn no_text_leaves_its_entry_and_each_can_be_read_back(text in any_text()) {
            let entry = entry(&message(&text));
            let lines: Vec<&str> = entry.lines().collect();
            let (start, rest) = lines.split_at(3);
            let (quoted, end) = rest.split_at(rest.len() - 2);
            prop_assert!(start[1].starts_with("## ") && start[2].is_empty());
            prop_assert_eq!(end, ["", "<!-- msg_01890a5dac96774bbcceb302099a8057 -->"]);
            prop_assert!(quoted.iter().all(|line| line.starts_with('>')), "{entry}");
            let read = quoted.iter().map(|line| line.strip_prefix("> ").unwrap_or_default());
            let read = read.collect::<Vec<_>>().join("\n").replace("&lt;", "<");
            let said = printable(&text.replace("\r\n", "\n").replace('\r', "\n"));
            prop_assert_eq!(read, said.replace("&lt;", "<"));
        }
    }
}

//! How an event becomes a line. Whatever the event holds, the line is one line
//! and has no character that controls a terminal or turns its text around.

use std::{
    collections::BTreeMap,
    error::Error,
    fmt::{self, Write as _},
};

use serde::Serialize;
use serde_json::{Value, json};
use tracing::field::{Field, Visit};

use super::{Form, Level, about::About};
use crate::{clock::Millis, unruly::is_unruly};

/// The most that a value may be long, in bytes.
const LONGEST: usize = 4096;
/// Where the parts of this program are found, which need not be said each time.
const OWN: &str = "ostler::";

/// Writes an event, whose fields the function records; with what its task is about,
/// unless it says that itself.
pub(super) fn write(
    form: Form,
    at: Millis,
    level: Level,
    target: &str,
    about: About,
    record: impl FnOnce(&mut dyn Visit),
) -> String {
    let mut fields = Fields::default();
    record(&mut fields);
    for (name, value) in about {
        if !fields.others.iter().any(|(said, _)| *said == name) {
            fields.others.push((name, json!(cut(value))));
        }
    }
    match form {
        Form::Text => text(at, level, target, &fields),
        Form::Json => json_line(at, level, target, fields),
    }
}

/// What an event holds: its message, and its fields in their order.
#[derive(Default)]
struct Fields {
    message: String,
    others: Vec<(&'static str, Value)>,
}

impl Fields {
    fn add(&mut self, field: &Field, value: Value) {
        match (field.name(), value) {
            ("message", Value::String(text)) => self.message = text,
            (name, value) => self.others.push((name, value)),
        }
    }
}

impl Visit for Fields {
    fn record_str(&mut self, field: &Field, value: &str) {
        self.add(field, json!(cut(value.to_owned())));
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.add(field, json!(value));
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.add(field, json!(value));
    }

    fn record_f64(&mut self, field: &Field, value: f64) {
        self.add(field, json!(value));
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.add(field, json!(value));
    }

    fn record_error(&mut self, field: &Field, value: &(dyn Error + 'static)) {
        self.add(field, json!(cut(value.to_string())));
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.add(field, json!(cut(format!("{value:?}"))));
    }
}

fn cut(mut text: String) -> String {
    if text.len() > LONGEST {
        text.truncate(text.floor_char_boundary(LONGEST));
        text.push('…');
    }
    text
}

fn text(at: Millis, level: Level, target: &str, fields: &Fields) -> String {
    let target = target.strip_prefix(OWN).unwrap_or(target);
    let mut line = format!("{at} {level} {target}: ");
    escape(&mut line, &fields.message, Quotes::Without);
    for (name, value) in &fields.others {
        // Writing to a string cannot fail.
        write!(line, " {name}=").ok();
        match value.as_str() {
            Some(text) if is_plain(text) => line.push_str(text),
            Some(text) => {
                line.push('"');
                escape(&mut line, text, Quotes::Within);
                line.push('"');
            }
            None => {
                write!(line, "{value}").ok();
            }
        }
    }
    line.push('\n');
    line
}

/// Whether a value can be told from what follows it without quotes.
fn is_plain(text: &str) -> bool {
    let is_special = |c: char| c.is_whitespace() || matches!(c, '"' | '\\' | '=') || is_unruly(c);
    !text.is_empty() && !text.contains(is_special)
}

/// Whether an escaped text stands between quotes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Quotes {
    Within,
    Without,
}

fn escape(line: &mut String, text: &str, quotes: Quotes) {
    for c in text.chars() {
        match c {
            '\n' => line.push_str("\\n"),
            '\r' => line.push_str("\\r"),
            '\t' => line.push_str("\\t"),
            '"' | '\\' if quotes == Quotes::Within => line.extend(['\\', c]),
            c if is_unruly(c) => line.extend(c.escape_unicode()),
            c => line.push(c),
        }
    }
}

/// A line in the form of JSON. The names are part of the contract.
#[derive(Serialize)]
struct Line<'a> {
    time: Millis,
    level: Level,
    target: &'a str,
    message: String,
    fields: BTreeMap<&'static str, Value>,
}

fn json_line(at: Millis, level: Level, target: &str, fields: Fields) -> String {
    let Fields { message, others } = fields;
    let fields = others.into_iter().collect();
    let line = Line { time: at, level, target, message, fields };
    // Texts and numbers under texts can always be written.
    let object = serde_json::to_string(&line).unwrap_or_default();
    // Dangerous characters can only be within its texts, where they may be escaped.
    let mut line = String::new();
    for c in object.chars() {
        if is_unruly(c) {
            // JSON has four digits for half of what needs more of them.
            for unit in c.encode_utf16(&mut [0; 2]) {
                write!(line, "\\u{unit:04x}").ok();
            }
        } else {
            line.push(c);
        }
    }
    line.push('\n');
    line
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const AT: Millis = Millis(1_500);

    fn line(form: Form, message: &str, value: &str) -> String {
        let others = vec![("value", json!(cut(value.to_owned()))), ("n", json!(7))];
        let fields = Fields { message: message.to_owned(), others };
        match form {
            Form::Text => text(AT, Level::Warn, "ostler::gateway", &fields),
            Form::Json => json_line(AT, Level::Warn, "ostler::gateway", fields),
        }
    }

    #[test]
    fn a_value_with_spaces_stands_in_quotes_and_a_newline_stays_in_the_line() {
        assert_eq!(
            line(Form::Text, "it\nfailed", "say \"hi\" \u{1b}[31m\r\u{9b}\u{202e}"),
            "1970-01-01T00:00:01.500Z warn gateway: it\\nfailed \
             value=\"say \\\"hi\\\" \\u{1b}[31m\\r\\u{9b}\\u{202e}\" n=7\n"
        );
        assert!(line(Form::Text, "x", "").contains("value=\"\" "));
        assert!(line(Form::Text, "x", "out_1").contains("value=out_1 "));
    }

    #[test]
    fn the_json_form_has_everything_under_its_name() {
        assert_eq!(
            line(Form::Json, "it failed", "a\u{1b}\u{9b}\u{202e}\u{e0041}"),
            "{\"time\":\"1970-01-01T00:00:01.500Z\",\"level\":\"warn\",\
             \"target\":\"ostler::gateway\",\"message\":\"it failed\",\
             \"fields\":{\"n\":7,\"value\":\"a\\u001b\\u009b\\u202e\\udb40\\udc41\"}}\n"
        );
    }

    #[test]
    fn a_long_value_is_cut() {
        let long = line(Form::Text, "x", &"é".repeat(LONGEST));
        assert!(long.len() < LONGEST + 100 && long.contains('…'), "{}", long.len());
    }

    proptest! {
        #[test]
        fn no_text_ends_a_line_or_controls_a_terminal(message in ".*", value in "\\PC*|(?s:.*)") {
            for form in [Form::Text, Form::Json] {
                let line = line(form, &message, &value);
                let body = line.strip_suffix('\n').unwrap();
                prop_assert!(!body.contains(is_unruly), "{:?}", line);
            }
            let line = line(Form::Json, &message, &value);
            let read: Value = serde_json::from_str(&line).unwrap();
            prop_assert_eq!(read["message"].as_str(), Some(message.as_str()));
            prop_assert_eq!(read["fields"]["value"].as_str(), Some(value.as_str()));
        }
    }
}

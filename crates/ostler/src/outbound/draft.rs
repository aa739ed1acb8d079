//! A file of the folder as a message: what its name says, and what its content
//! does. Strict, for a misspelt `to` must not lead to somebody else. Pure.

use std::{ffi::OsStr, os::unix::ffi::OsStrExt as _};

use serde::Deserialize;
use sha2::{Digest as _, Sha256};

use super::{Outgoing, Target};

/// How a message is written down.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// An object. A part of one is none, so that a whole one is complete.
    Json,
    /// A text, with a block of fields before it or not.
    Text,
}

/// Returns the form that a name stands for; nothing, if the file is left alone.
pub(super) fn form(name: &OsStr) -> Option<Form> {
    let name = name.as_bytes();
    if name.starts_with(b".") {
        return None;
    }
    let ends = |end: &[u8]| name.len() > end.len() && name.ends_with(end);
    if ends(b".json") {
        Some(Form::Json)
    } else if ends(b".md") || ends(b".txt") {
        Some(Form::Text)
    } else {
        None
    }
}

/// Returns what a file is called whose message has no name of its own: the same
/// for the same file, and another for one that says the same later.
pub(super) fn id(name: &OsStr, changed_at: (i64, i64), content: &[u8]) -> String {
    let mut hash = Sha256::new();
    for part in [name.as_bytes(), format!("{changed_at:?}").as_bytes(), content] {
        hash.update(u64::try_from(part.len()).unwrap_or(u64::MAX).to_be_bytes());
        hash.update(part);
    }
    hash.finalize().iter().fold("file-".to_owned(), |id, byte| id + &format!("{byte:02x}"))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Fields {
    to: Option<String>,
    text: String,
    id: Option<String>,
    from: Option<String>,
}

/// Reads a message; the error is for people.
pub(super) fn read(form: Form, content: &[u8]) -> Result<Outgoing, String> {
    let text = std::str::from_utf8(content).map_err(|_| "it is no UTF-8 text".to_owned())?;
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let Fields { to, text, id, from } = match form {
        Form::Json => serde_json::from_str(text).map_err(|error| error.to_string())?,
        Form::Text => with_front(text)?,
    };
    if text.trim().is_empty() {
        return Err("it has no text".to_owned());
    }
    let to = match to {
        Some(to) => Target::At(to.parse().map_err(|error| format!("`to`: {error}"))?),
        None => Target::Newest,
    };
    Ok(Outgoing { to, text, id, from })
}

/// Reads a text that may begin with a block of fields between two lines `---`.
fn with_front(text: &str) -> Result<Fields, String> {
    let mut fields = Fields { to: None, text: text.to_owned(), id: None, from: None };
    let mut lines = text.split_inclusive('\n');
    if lines.next().is_none_or(|line| line.trim_end() != "---") {
        return Ok(fields);
    }
    let mut front = Vec::new();
    let mut is_closed = false;
    for line in lines.by_ref() {
        if line.trim_end() == "---" {
            is_closed = true;
            break;
        }
        front.push(line.trim());
    }
    if !is_closed {
        // It was a line across the page.
        return Ok(fields);
    }
    for line in front.into_iter().filter(|line| !line.is_empty()) {
        let (name, value) = line.split_once(':').ok_or(format!("{line:?} is no `name: value`"))?;
        let value = Some(unquoted(value.trim()).to_owned());
        match name.trim() {
            "to" => fields.to = value,
            "id" => fields.id = value,
            "from" => fields.from = value,
            other => return Err(format!("unknown field {other:?}; known are to, id and from")),
        }
    }
    fields.text = lines.collect::<String>().trim_start_matches(['\r', '\n']).to_owned();
    Ok(fields)
}

fn unquoted(value: &str) -> &str {
    let within = |quote| value.strip_prefix(quote).and_then(|value| value.strip_suffix(quote));
    within('"').or_else(|| within('\'')).unwrap_or(value)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn outgoing(to: Option<&str>, text: &str, id: Option<&str>) -> Outgoing {
        let to = to.map_or(Target::Newest, |to| Target::At(to.parse().unwrap()));
        Outgoing { to, text: text.to_owned(), id: id.map(str::to_owned), from: None }
    }

    #[test]
    fn a_name_says_what_a_file_is() {
        let form = |name: &str| form(OsStr::new(name));
        assert_eq!(form("a.json"), Some(Form::Json));
        assert_eq!(form("a.b.md"), Some(Form::Text));
        assert_eq!(form("a.txt"), Some(Form::Text));
        for name in [".a.json", "a.json.tmp", "a.md.part", "a", ".json", ".md", "a.JSON~", "a.pdf"]
        {
            assert_eq!(form(name), None, "{name}");
        }
    }

    #[test]
    fn a_message_is_an_object_or_a_text_with_or_without_fields() {
        let json = |text: &str| read(Form::Json, text.as_bytes()).unwrap();
        let text = |text: &str| read(Form::Text, text.as_bytes()).unwrap();
        assert_eq!(
            json(r#"{"to":"local:main","text":"hi","id":"1"}"#),
            outgoing(Some("local:main"), "hi", Some("1"))
        );
        assert_eq!(json(r#"{"text":"hi"}"#), outgoing(None, "hi", None));
        assert_eq!(text("hi\nthere\n"), outgoing(None, "hi\nthere\n", None));
        let front = "---\nto: webhook:http://a/b\r\nid: '7'\n\n---\n\nhi\n---\n";
        assert_eq!(text(front), outgoing(Some("webhook:http://a/b"), "hi\n---\n", Some("7")));
        assert_eq!(text("---\nto: a\n"), outgoing(None, "---\nto: a\n", None));
        assert_eq!(text("\u{feff}hi"), outgoing(None, "hi", None));
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (form, content, says) in [
            (Form::Json, &b"{"[..], "EOF"),
            (Form::Json, br#"{"too":"local:a","text":"x"}"#, "too"),
            (Form::Json, br#"{"text":" "}"#, "no text"),
            (Form::Json, br#"{"to":"main","text":"x"}"#, "local:main"),
            (Form::Json, b"[]", "invalid"),
            (Form::Text, b"\xff\xfe", "UTF-8"),
            (Form::Text, b"", "no text"),
            (Form::Text, b"---\nto: local:a\n---\n", "no text"),
            (Form::Text, b"---\ntoo: local:a\n---\nx", "too"),
            (Form::Text, b"---\nhello\n---\nx", "hello"),
        ] {
            let error = read(form, content).unwrap_err();
            assert!(error.contains(says), "{error}");
        }
    }

    #[test]
    fn the_same_file_has_the_same_name_and_a_later_one_another() {
        let name = OsStr::new("a.txt");
        let first = id(name, (1, 2), b"done");
        assert_eq!(first, id(name, (1, 2), b"done"));
        assert_eq!(first.len(), 5 + 64);
        for other in [
            id(name, (1, 3), b"done"),
            id(name, (1, 2), b"Done"),
            id(OsStr::new("b"), (1, 2), b"done"),
        ] {
            assert_ne!(first, other);
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_a_message_or_refused(content in proptest::collection::vec(any::<u8>(), 0..200)) {
            read(Form::Json, &content).ok();
            if let Ok(outgoing) = read(Form::Text, &content) {
                prop_assert!(!outgoing.text.trim().is_empty());
            }
        }

        #[test]
        fn a_part_of_an_object_is_none(text in any::<String>(), at in any::<proptest::sample::Index>()) {
            let whole = serde_json::json!({ "to": "local:main", "text": text }).to_string();
            let cut = at.index(whole.len());
            prop_assert!(read(Form::Json, &whole.as_bytes()[..cut]).is_err());
        }
    }
}

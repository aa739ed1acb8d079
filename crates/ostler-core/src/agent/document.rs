//! Finds JSON documents in a stream of lines.
//!
//! Most lines are one document each. Some programs print a document over
//! several lines, and some print banners around it. This reader joins what
//! belongs together and gives everything else back as the plain lines they
//! were. It knows nothing about what the documents mean.
//!
//! The work is linear in the input, whatever the input is: a line is scanned
//! once for its nesting and parsed at most twice, once as a part of a document
//! and once on its own when the document turned out not to be one.

use std::borrow::Cow;

use serde_json::Value;

/// How much of an unfinished document is kept before it is given up.
const MAX_BUFFERED_BYTES: usize = 16 * 1024 * 1024;

/// What a line, or several, turned out to be.
#[derive(Debug, PartialEq)]
pub(crate) enum Piece<'a> {
    /// An object or an array.
    Document {
        /// Its content.
        value: Value,
        /// The text it was read from.
        raw: &'a [u8],
    },
    /// Something else, without its line end.
    Line(&'a [u8]),
}

/// Joins documents that are spread over lines.
#[derive(Debug, Default)]
pub(crate) struct Documents {
    /// The lines of an unfinished document, each with its line end.
    buffer: Vec<u8>,
    scan: Scan,
}

impl Documents {
    /// Takes one line and tells what is certain now.
    pub(crate) fn push(&mut self, line: &[u8], mut each: impl FnMut(Piece<'_>)) {
        if self.buffer.is_empty() {
            return self.begin(line, &mut each);
        }
        if self.buffer.len() + line.len() >= MAX_BUFFERED_BYTES {
            self.give_back(&mut each);
            return self.begin(line, &mut each);
        }
        match self.scan.line(line) {
            Nesting::Broken => {
                self.give_back(&mut each);
                self.begin(line, &mut each);
            }
            Nesting::Open => self.keep(line),
            Nesting::Closed => {
                self.keep(line);
                match parse(&self.buffer) {
                    Ok(value) => {
                        let raw = self.buffer.trim_ascii_end();
                        each(Piece::Document { value, raw });
                        self.clear();
                    }
                    Err(_) => self.give_back(&mut each),
                }
            }
        }
    }

    /// Gives back what is left when no more lines will come.
    pub(crate) fn finish(&mut self, mut each: impl FnMut(Piece<'_>)) {
        self.give_back(&mut each);
    }

    fn begin(&mut self, line: &[u8], each: &mut impl FnMut(Piece<'_>)) {
        let error = match parse(line) {
            Ok(value) => return each(Piece::Document { value, raw: line }),
            Err(error) => error,
        };
        let unfinished = error.is_some_and(|error| error.is_eof());
        if !unfinished || line.len() >= MAX_BUFFERED_BYTES {
            return each(Piece::Line(line));
        }
        self.scan = Scan::default();
        match self.scan.line(line) {
            Nesting::Open => self.keep(line),
            Nesting::Broken | Nesting::Closed => each(Piece::Line(line)),
        }
    }

    fn keep(&mut self, line: &[u8]) {
        self.buffer.extend_from_slice(line);
        self.buffer.push(b'\n');
    }

    /// Tells the kept lines one by one. Each may still be a document of its
    /// own, but none starts another search: that would be quadratic.
    fn give_back(&mut self, each: &mut impl FnMut(Piece<'_>)) {
        let buffer = std::mem::take(&mut self.buffer);
        self.clear();
        let Some(lines) = buffer.strip_suffix(b"\n") else {
            return;
        };
        for raw in lines.split(|byte| *byte == b'\n') {
            match parse(raw) {
                Ok(value) => each(Piece::Document { value, raw }),
                Err(_) => each(Piece::Line(raw)),
            }
        }
    }

    fn clear(&mut self) {
        self.buffer = Vec::new();
        self.scan = Scan::default();
    }
}

/// Parses an object or an array, also one with halves of surrogate pairs in its
/// strings. Anything else is an error, of the parser where it was asked.
///
/// Programs written in JavaScript cut strings between the two halves of an
/// emoji and print the half as an escape, which is no valid text. Such a half
/// becomes U+FFFD, as do bytes that are not UTF-8.
fn parse(bytes: &[u8]) -> Result<Value, Option<serde_json::Error>> {
    if !matches!(bytes.trim_ascii_start().first(), Some(b'{' | b'[')) {
        return Err(None);
    }
    serde_json::from_slice(bytes).or_else(|error| match repair(bytes) {
        Some(repaired) => serde_json::from_str(&repaired).map_err(Some),
        None => Err(Some(error)),
    })
}

fn repair(bytes: &[u8]) -> Option<String> {
    let text = String::from_utf8_lossy(bytes);
    let mut repaired = String::with_capacity(text.len());
    let mut changed = matches!(text, Cow::Owned(_));
    let mut rest: &str = &text;
    while let Some(at) = rest.find('\\') {
        let (before, escape) = rest.split_at(at);
        repaired.push_str(before);
        let n_bytes = match (surrogate(escape), escape.get(6..).and_then(surrogate)) {
            (Some(Half::High), Some(Half::Low)) => 12,
            (Some(_), _) => {
                repaired.push_str("\\ufffd");
                changed = true;
                rest = escape.get(6..).unwrap_or_default();
                continue;
            }
            // A backslash and what it escapes, so that `\\u` is not an escape.
            (None, _) => 1 + escape.chars().nth(1).map_or(0, char::len_utf8),
        };
        let (kept, after) = escape.split_at_checked(n_bytes)?;
        repaired.push_str(kept);
        rest = after;
    }
    repaired.push_str(rest);
    changed.then_some(repaired)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Half {
    High,
    Low,
}

/// Returns which half of a surrogate pair the escape at the start stands for.
fn surrogate(text: &str) -> Option<Half> {
    let digits = text.strip_prefix("\\u")?.get(..4)?;
    match u16::from_str_radix(digits, 16).ok()? {
        0xD800..=0xDBFF => Some(Half::High),
        0xDC00..=0xDFFF => Some(Half::Low),
        _ => None,
    }
}

/// Follows the nesting of a document over its lines, without reading values.
#[derive(Debug, Default)]
struct Scan {
    depth: usize,
    /// The last byte that was neither white space nor inside a string.
    last: Option<u8>,
}

/// How a document stands after a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Nesting {
    /// More must follow.
    Open,
    /// Every bracket has its partner.
    Closed,
    /// It cannot become a document any more.
    Broken,
}

impl Scan {
    fn line(&mut self, line: &[u8]) -> Nesting {
        if !self.may_follow(line) {
            return Nesting::Broken;
        }
        let mut bytes = line.iter();
        while let Some(&byte) = bytes.next() {
            match byte {
                b' ' | b'\t' | b'\r' => continue,
                // A string cannot go on in the next line.
                b'"' if !skip_string(&mut bytes) => return Nesting::Broken,
                b'{' | b'[' => self.depth += 1,
                b'}' | b']' => self.depth = self.depth.saturating_sub(1),
                _ => {}
            }
            self.last = Some(byte);
        }
        if self.depth == 0 { Nesting::Closed } else { Nesting::Open }
    }

    /// Returns whether the first value of a line may stand where it stands.
    /// Without this a lone bracket in a banner would hold back every line after it.
    fn may_follow(&self, line: &[u8]) -> bool {
        let Some(first) = line.trim_ascii_start().first() else {
            return true;
        };
        match self.last {
            _ if !b"{}[]\",:-0123456789tfn".contains(first) => false,
            Some(b'[' | b',' | b':') | None => true,
            Some(b'{') => matches!(first, b'"' | b'}'),
            Some(_) => !matches!(first, b'{' | b'[' | b'"'),
        }
    }
}

fn skip_string<'a>(bytes: &mut impl Iterator<Item = &'a u8>) -> bool {
    while let Some(byte) = bytes.next() {
        match byte {
            b'"' => return true,
            b'\\' => {
                bytes.next();
            }
            _ => {}
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn read(lines: &[&[u8]]) -> Vec<Result<Value, Vec<u8>>> {
        let mut documents = Documents::default();
        let mut pieces = Vec::new();
        let mut take = |piece: Piece<'_>| {
            pieces.push(match piece {
                Piece::Document { value, .. } => Ok(value),
                Piece::Line(line) => Err(line.to_vec()),
            });
        };
        for line in lines {
            documents.push(line, &mut take);
        }
        documents.finish(take);
        pieces
    }

    fn read_text(text: &str) -> Vec<Result<Value, Vec<u8>>> {
        let lines: Vec<&[u8]> = text.lines().map(str::as_bytes).collect();
        read(&lines)
    }

    fn line(text: &str) -> Result<Value, Vec<u8>> {
        Err(text.as_bytes().to_vec())
    }

    #[test]
    fn a_document_on_one_line_comes_at_once() {
        assert_eq!(read_text(r#"{"a":1}"#), [Ok(json!({"a": 1}))]);
        assert_eq!(read_text("[1]\n  {}\r"), [Ok(json!([1])), Ok(json!({}))]);
    }

    #[test]
    fn a_pretty_printed_document_is_joined() {
        let value = json!([{"a": ["x{", "]\\\""], "b": {}}, {"c": null}]);
        let text = serde_json::to_string_pretty(&value).unwrap();
        assert_eq!(
            read_text(&format!("banner\n{text}\nbye")),
            [line("banner"), Ok(value), line("bye")]
        );
    }

    #[test]
    fn blank_lines_inside_a_document_belong_to_it() {
        assert_eq!(read_text("{\n\n\"a\":1\n\n}"), [Ok(json!({"a": 1}))]);
    }

    #[test]
    fn banners_that_look_like_the_start_of_a_document_are_plain_lines() {
        assert_eq!(
            read_text("[info] up\n{starting}\n{\"a\":1}"),
            [line("[info] up"), line("{starting}"), Ok(json!({"a": 1}))]
        );
    }

    #[test]
    fn a_lone_bracket_does_not_hold_back_the_lines_after_it() {
        assert_eq!(read_text("{\n{\"a\":1}"), [line("{"), Ok(json!({"a": 1}))]);
        let mut documents = Documents::default();
        let mut n_seen = 0;
        for text in ["[", "{\"a\":1}", "{\"b\":2}"] {
            documents.push(text.as_bytes(), |_| n_seen += 1);
        }
        assert_eq!(n_seen, 3);
    }

    #[test]
    fn a_line_that_breaks_off_inside_a_string_is_a_plain_line() {
        let text = "{\"type\":\"assist";
        assert_eq!(read_text(&format!("{text}\n{{\"a\":1}}")), [line(text), Ok(json!({"a": 1}))]);
    }

    #[test]
    fn an_unfinished_document_is_given_back_line_by_line() {
        assert_eq!(read_text("{\n\"a\":1,"), [line("{"), line("\"a\":1,")]);
    }

    #[test]
    fn a_document_that_never_ends_is_given_up_at_the_limit() {
        let element = vec![b' '; 1024 * 1024];
        let mut documents = Documents::default();
        let mut n_lines = 0;
        documents.push(b"[", |_| n_lines += 1);
        for _ in 0..20 {
            documents.push(&element, |_| n_lines += 1);
            assert!(documents.buffer.len() <= MAX_BUFFERED_BYTES);
        }
        documents.finish(|_| n_lines += 1);
        assert_eq!(n_lines, 21);
    }

    #[test]
    fn half_an_emoji_does_not_cost_the_document() {
        assert_eq!(
            read_text(r#"{"a":"x\ud83d","b":"\ud83e\udd80","c":"\\ud83d","d":"\udd80"}"#),
            [Ok(json!({"a": "x\u{fffd}", "b": "🦀", "c": "\\ud83d", "d": "\u{fffd}"}))]
        );
        assert_eq!(read(&[b"{\"a\":\"\xff\"}"]), [Ok(json!({"a": "\u{fffd}"}))]);
    }

    #[test]
    fn hostile_nesting_costs_linear_time() {
        let mut documents = Documents::default();
        let mut n_lines = 0;
        documents.push(b"[", |_| n_lines += 1);
        for _ in 0..400_000 {
            documents.push(b"{}", |_| n_lines += 1);
            documents.push(b",", |_| n_lines += 1);
        }
        documents.finish(|_| n_lines += 1);
        assert_eq!(n_lines, 800_001);
    }

    proptest! {
        #[test]
        fn no_line_is_lost_and_none_is_made_up(
            lines in prop::collection::vec(
                prop_oneof![
                    "[\\[\\]{}:,\"a1\\\\ ]{0,6}",
                    Just("{".to_owned()), Just("}".to_owned()),
                    Just("[".to_owned()), Just("]".to_owned()),
                    Just("\"a\":1".to_owned()), Just("{\"a\":1}".to_owned()),
                ],
                0..12,
            )
        ) {
            let mut documents = Documents::default();
            let mut seen = Vec::new();
            let mut take = |piece: Piece<'_>| {
                let (Piece::Document { raw, .. } | Piece::Line(raw)) = piece;
                seen.extend(raw.split(|byte| *byte == b'\n').map(<[u8]>::to_vec));
            };
            for line in &lines {
                documents.push(line.as_bytes(), &mut take);
            }
            documents.finish(take);
            let given: Vec<_> = lines.iter().map(|line| line.as_bytes().trim_ascii_end().to_vec()).collect();
            let seen: Vec<_> = seen.iter().map(|line| line.trim_ascii_end().to_vec()).collect();
            prop_assert_eq!(seen, given);
        }

        #[test]
        fn any_bytes_are_taken(lines in prop::collection::vec(any::<Vec<u8>>(), 0..8)) {
            let lines: Vec<&[u8]> = lines.iter().map(Vec::as_slice).collect();
            read(&lines);
        }

        #[test]
        fn any_document_is_found_again_in_every_layout(
            keys in prop::collection::vec(any::<String>(), 1..6)
        ) {
            let value: Value = keys.iter().map(|key| (key.clone(), json!([key, {"k": key}]))).collect();
            let pretty = serde_json::to_string_pretty(&value).unwrap();
            let lines: Vec<&[u8]> = pretty.split('\n').map(str::as_bytes).collect();
            prop_assert_eq!(read(&lines), [Ok(value.clone())]);
            prop_assert_eq!(read(&[value.to_string().as_bytes()]), [Ok(value)]);
        }
    }
}

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

#[cfg(test)]
mod tests;

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

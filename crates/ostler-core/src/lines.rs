//! Bytes into lines, with a bound.
//!
//! Takes a byte stream in pieces of any size and gives back its lines; how the
//! stream was split never shows. A line that outgrows the bound is not kept:
//! its start is returned, marked as cut, and its rest is dropped unread. What a
//! line means is the business of whoever asked for it.

use std::{io::BufRead, mem};

/// The longest line that is kept whole. Tool results of tens of megabytes on
/// one line are real; beyond this, the line is an accident.
pub const MAX_LINE: usize = 64 * 1024 * 1024;

/// How much of the start of a longer line is kept: enough to see what it was.
pub const KEPT_OF_LONGER: usize = 64 * 1024;

/// One line, without its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// The line, or the start of one that was too long.
    pub bytes: Vec<u8>,
    /// Whether the line was too long to keep.
    pub cut: bool,
}

/// Collects bytes until they are a line.
///
/// Every byte is looked at once. A finished line takes its memory along, so a
/// long one leaves nothing behind.
#[derive(Debug)]
pub struct Lines {
    partial: Vec<u8>,
    cut: bool,
    max_line: usize,
    kept_of_longer: usize,
}

impl Default for Lines {
    fn default() -> Self {
        Self::new(MAX_LINE, KEPT_OF_LONGER)
    }
}

impl Lines {
    /// Keeps lines of up to `max_line` bytes, and `kept_of_longer` bytes of longer ones.
    #[must_use]
    pub fn new(max_line: usize, kept_of_longer: usize) -> Self {
        Self {
            partial: Vec::new(),
            cut: false,
            max_line,
            kept_of_longer: kept_of_longer.min(max_line),
        }
    }

    /// Takes bytes from the front of `input`, up to the end of the first line.
    ///
    /// Returns that line, or `None` once `input` is used up. One `\r` before
    /// the `\n` belongs to the line end.
    pub fn take(&mut self, input: &mut &[u8]) -> Option<Line> {
        while !input.is_empty() {
            let ended = if self.cut { skip_line(input) } else { self.keep(input) };
            if ended {
                let mut line = self.take_partial();
                if !line.cut && line.bytes.last() == Some(&b'\r') {
                    line.bytes.truncate(line.bytes.len().saturating_sub(1));
                }
                return Some(line);
            }
        }
        None
    }

    /// Returns the last line when the stream ended without a line end.
    pub fn finish(&mut self) -> Option<Line> {
        (self.cut || !self.partial.is_empty()).then(|| self.take_partial())
    }

    /// Returns how many bytes wait for their line end.
    #[must_use]
    pub fn held(&self) -> usize {
        self.partial.len()
    }

    /// Keeps bytes up to the line end or the bound; returns whether the line ended.
    fn keep(&mut self, input: &mut &[u8]) -> bool {
        let room = self.max_line.saturating_sub(self.partial.len());
        let mut head = input.get(..room).unwrap_or(input);
        // Both work on memory only: neither reading nor skipping can fail.
        let n_read = head.read_until(b'\n', &mut self.partial).unwrap_or(0);
        *input = input.get(n_read..).unwrap_or_default();
        if n_read > 0 && self.partial.last() == Some(&b'\n') {
            self.partial.truncate(self.partial.len().saturating_sub(1));
            return true;
        }
        if self.partial.len() < self.max_line {
            return false;
        }
        // The line is as long as it may be: only its end may follow.
        match input.first() {
            None => false,
            Some(b'\n') => {
                *input = input.get(1..).unwrap_or_default();
                true
            }
            Some(_) => {
                self.partial.truncate(self.kept_of_longer);
                self.partial.shrink_to_fit();
                self.cut = true;
                false
            }
        }
    }

    fn take_partial(&mut self) -> Line {
        Line { bytes: mem::take(&mut self.partial), cut: mem::take(&mut self.cut) }
    }
}

/// Drops bytes up to the line end; returns whether there was one.
fn skip_line(input: &mut &[u8]) -> bool {
    let before = *input;
    let n_skipped = input.skip_until(b'\n').unwrap_or(0);
    before.get(n_skipped.wrapping_sub(1)) == Some(&b'\n')
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn split(lines: &mut Lines, pieces: &[&[u8]]) -> Vec<Line> {
        let mut found = Vec::new();
        for piece in pieces {
            let mut input = *piece;
            while let Some(line) = lines.take(&mut input) {
                found.push(line);
            }
            assert!(input.is_empty());
        }
        found.extend(lines.finish());
        found
    }

    fn texts(lines: &[Line]) -> Vec<(&str, bool)> {
        lines.iter().map(|line| (std::str::from_utf8(&line.bytes).unwrap(), line.cut)).collect()
    }

    #[test]
    fn the_last_line_needs_no_line_end() {
        let found = split(&mut Lines::default(), &[b"one\n\ntwo\r\nthr", b"ee"]);
        assert_eq!(texts(&found), [("one", false), ("", false), ("two", false), ("three", false)]);
    }

    #[test]
    fn only_one_carriage_return_belongs_to_the_line_end() {
        let found = split(&mut Lines::default(), &[b"a\r\r", b"\nb\rc\n\r\nd\r"]);
        assert_eq!(texts(&found), [("a\r", false), ("b\rc", false), ("", false), ("d\r", false)]);
    }

    #[test]
    fn of_a_line_over_the_bound_only_the_start_is_kept() {
        let found = split(
            &mut Lines::new(8, 3),
            &[b"12345678\n123456789\nnext\n", b"1234", b"56789", b"0"],
        );
        assert_eq!(
            texts(&found),
            [("12345678", false), ("123", true), ("next", false), ("123", true)]
        );
    }

    #[test]
    fn a_long_line_takes_its_memory_along() {
        let mut lines = Lines::new(1024 * 1024, 16);
        let whole = vec![b'x'; 1024 * 1024];
        assert_eq!(lines.take(&mut &whole[..]), None);
        assert_eq!(lines.held(), whole.len());
        assert!(lines.take(&mut &b"\n"[..]).is_some());
        assert_eq!(lines.partial.capacity(), 0);
        assert_eq!(lines.take(&mut &whole[..]), None);
        assert_eq!(lines.take(&mut &b"x"[..]), None);
        assert!(lines.partial.capacity() <= 64);
    }

    fn stream() -> impl Strategy<Value = Vec<u8>> {
        let byte =
            prop_oneof![4 => Just(b'a'), 2 => Just(b'\n'), 1 => Just(b'\r'), 1 => any::<u8>()];
        prop::collection::vec(byte, 0..400)
    }

    proptest! {
        #[test]
        fn any_split_gives_the_same_lines(
            bytes in stream(),
            sizes in prop::collection::vec(1_usize..40, 1..20),
            max_line in 1_usize..60,
            kept in 0_usize..60,
        ) {
            let mut pieces = Vec::new();
            let mut rest = &bytes[..];
            for size in sizes.iter().cycle() {
                if rest.is_empty() {
                    break;
                }
                let (piece, after) = rest.split_at((*size).min(rest.len()));
                pieces.push(piece);
                rest = after;
            }
            let whole = split(&mut Lines::new(max_line, kept), &[&bytes]);
            prop_assert_eq!(split(&mut Lines::new(max_line, kept), &pieces), whole);
        }

        #[test]
        fn the_lines_together_are_the_stream(bytes in stream()) {
            let unix: Vec<u8> = bytes.into_iter().filter(|byte| *byte != b'\r').collect();
            let found = split(&mut Lines::default(), &[&unix]);
            let mut joined = Vec::new();
            for line in &found {
                prop_assert!(!line.cut);
                joined.extend_from_slice(&line.bytes);
                joined.push(b'\n');
            }
            if unix.last() != Some(&b'\n') {
                joined.pop();
            }
            prop_assert_eq!(joined, unix);
        }

        #[test]
        fn never_more_than_the_bound_is_held(
            bytes in stream(),
            max_line in 1_usize..60,
            kept in 0_usize..60,
        ) {
            let mut lines = Lines::new(max_line, kept);
            for byte in bytes {
                let line = lines.take(&mut &[byte][..]);
                prop_assert!(lines.held() <= max_line);
                if let Some(line) = line {
                    let bound = if line.cut { kept.min(max_line) } else { max_line };
                    prop_assert!(line.bytes.len() <= bound);
                }
            }
        }
    }
}

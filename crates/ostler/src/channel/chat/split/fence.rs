//! Fences of code, as CommonMark has them, and wherever a list puts them: what opens
//! one, what closes it, and how it is closed and opened again around a cut.

use super::Measure;

/// The fewest marks of a fence.
const MARKS: usize = 3;
/// The most blanks before a fence. No chat takes what is indented for code by itself,
/// and in lists within lists fences stand far inside.
const INDENT: usize = 16;

/// A fence that is open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Fence<'a> {
    /// The marks alone.
    marker: &'a str,
    /// The line that opened it: the marks and what they are followed by.
    line: &'a str,
}

impl Fence<'_> {
    /// Returns the line that opens it again. It is empty if the marks are too long
    /// to be repeated.
    pub(super) fn opening(self, limit: usize, measure: Measure) -> String {
        let is_short = measure.fits(self.line, (limit / 4).saturating_sub(1));
        match (self.is_repeated(limit), is_short) {
            (true, true) => format!("{}\n", self.line),
            (true, false) => format!("{}\n", self.marker),
            (false, _) => String::new(),
        }
    }

    /// Returns what closes it at the end of a piece.
    pub(super) fn closing(self, limit: usize) -> String {
        if self.is_repeated(limit) { format!("\n{}", self.marker) } else { String::new() }
    }

    /// Returns how many characters that is.
    pub(super) fn closing_length(self, limit: usize) -> usize {
        if self.is_repeated(limit) { self.marker.len() + 1 } else { 0 }
    }

    /// Tells whether a line begins with what can close it.
    pub(super) fn may_be_closed_by(self, line: &str) -> bool {
        let marks = line.trim_start_matches([' ', '\t']);
        line.len() - marks.len() <= INDENT && marks.starts_with(self.marker)
    }

    fn is_repeated(self, limit: usize) -> bool {
        self.marker.len() < limit / 4
    }
}

/// Tells whether a text would be a fence if it stood at the beginning of a line.
pub(super) fn begins_with_marks(text: &str) -> bool {
    text.starts_with("```") || text.starts_with("~~~")
}

/// What is known of a line as it is read, one character after the other.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Line {
    at: At,
    indent: usize,
    marks: usize,
    mark: char,
    has_info: bool,
    has_tick: bool,
}

/// Where in a line the reader is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum At {
    #[default]
    Indent,
    Marks,
    Info,
    /// The line has nothing to do with fences.
    Plain,
}

impl Line {
    /// Reads a line, or the beginning of one.
    pub(super) fn read(line: &str) -> Self {
        let mut read = Self::default();
        line.chars().for_each(|c| read.add(c));
        read
    }

    /// Reads the next character.
    pub(super) fn add(&mut self, c: char) {
        match (self.at, c) {
            (At::Plain, _) => {}
            (At::Indent, ' ' | '\t') if self.indent < INDENT => self.indent += 1,
            (At::Indent, '`' | '~') => (self.at, self.mark, self.marks) = (At::Marks, c, 1),
            (At::Indent, _) => self.at = At::Plain,
            (At::Marks, c) if c == self.mark => self.marks += 1,
            (At::Marks, _) if self.marks < MARKS => self.at = At::Plain,
            (At::Marks | At::Info, c) => {
                self.at = At::Info;
                self.has_info |= !c.is_whitespace();
                self.has_tick |= c == '`';
            }
        }
    }

    /// Tells whether it begins like a fence.
    pub(super) fn is_like_fence(&self) -> bool {
        match self.at {
            At::Marks | At::Info => self.marks >= MARKS,
            At::Indent | At::Plain => false,
        }
    }

    /// Returns the fence that is open after the line, which is given as far as it
    /// was read.
    pub(super) fn after<'a>(&self, before: Option<Fence<'a>>, line: &'a str) -> Option<Fence<'a>> {
        if !self.is_like_fence() {
            return before;
        }
        match before {
            Some(fence) => {
                let is_same = fence.marker.starts_with(self.mark);
                let is_closed = is_same && self.marks >= fence.marker.len() && !self.has_info;
                (!is_closed).then_some(fence)
            }
            // What has such marks behind it is code within a line.
            None if self.mark == '`' && self.has_tick => None,
            None => {
                let line = line.trim();
                line.get(..self.marks).map(|marker| Fence { marker, line })
            }
        }
    }
}

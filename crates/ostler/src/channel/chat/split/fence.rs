//! Blocks of code as the chats have them: three backticks begin one, wherever they
//! stand, and the next three end it. Only within a line of code they do neither.

use std::collections::HashMap;
use std::ops::Range;

use super::{Measure, unit::Size};

/// What begins and ends a block.
const MARKS: &str = "```";
/// The longest name of a language.
const LANGUAGE: usize = 40;

/// A block that is open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Fence<'a> {
    /// The language that it was begun with; none if there is nothing.
    language: &'a str,
    /// Whether it stands in a quotation.
    is_quoted: bool,
}

impl Fence<'_> {
    /// Returns the line that opens it again. It is empty where there is no room.
    pub(super) fn opening(self, limit: usize, measure: Measure) -> String {
        let line = format!("{}{}", self.marks(), self.language);
        if !self.is_repeated(limit) {
            String::new()
        } else if measure.fits(&line, (limit / 4).saturating_sub(1)) {
            format!("{line}\n")
        } else {
            format!("{}\n", self.marks())
        }
    }

    /// Returns what closes it at the end of a piece.
    pub(super) fn closing(self, limit: usize) -> String {
        if self.is_repeated(limit) { format!("\n{}", self.marks()) } else { String::new() }
    }

    /// Returns how many characters that is.
    pub(super) fn closing_length(self, limit: usize) -> usize {
        if self.is_repeated(limit) { self.marks().len() + 1 } else { 0 }
    }

    fn marks(self) -> &'static str {
        if self.is_quoted { "> ```" } else { MARKS }
    }

    fn is_repeated(self, limit: usize) -> bool {
        self.marks().len() < limit / 4
    }
}

/// Tells whether a line begins with marks, behind what lists and quotations put
/// before them.
pub(super) fn begins_with_marks(line: &str) -> bool {
    without_markers(line).starts_with(MARKS)
}

/// Returns a line without the marks of lists and quotations that it begins with.
fn without_markers(line: &str) -> &str {
    let mut line = line.trim_start_matches([' ', '\t']);
    loop {
        let digits = line.trim_start_matches(|c: char| c.is_ascii_digit());
        let rest = match line.len() - digits.len() {
            0 => line.strip_prefix(['-', '*', '+', '>']),
            1..=9 => digits.strip_prefix(['.', ')']),
            _ => None,
        };
        let Some(rest) = rest else { return line };
        line = rest.trim_start_matches([' ', '\t']);
    }
}

/// Where a block begins or ends.
#[derive(Clone, Copy, Debug)]
pub(super) struct Toggle<'a> {
    pub(super) start: usize,
    /// The end of its marks.
    pub(super) end: usize,
    /// What is open after it.
    pub(super) open: Option<Fence<'a>>,
}

/// The backticks of a text.
#[derive(Debug, Default)]
pub(super) struct Ticks<'a> {
    pub(super) toggles: Vec<Toggle<'a>>,
    /// Code within a line that is short enough to stay together.
    pub(super) spans: Vec<Range<usize>>,
    /// Those of them that have marks of a block in them, which would be some else.
    pub(super) masks: Vec<Range<usize>>,
}

impl<'a> Ticks<'a> {
    /// Reads a text that begins within a block or without.
    pub(super) fn read(text: &'a str, open: Option<Fence<'a>>, size: Size) -> Self {
        let mut ticks = Self::default();
        let (mut start, mut open) = (0, open);
        for line in text.split_inclusive('\n') {
            if line.contains('`') {
                open = ticks.line(line, start, open, size);
            }
            start += line.len();
        }
        ticks
    }

    /// Reads a line, and returns what is open after it.
    fn line(
        &mut self,
        line: &'a str,
        start: usize,
        mut open: Option<Fence<'a>>,
        size: Size,
    ) -> Option<Fence<'a>> {
        let runs = runs(line);
        let closers = closers(&runs);
        let mut index = 0;
        while let Some(run) = runs.get(index) {
            index += 1;
            if run.len() >= MARKS.len() {
                for n in 0..run.len() / MARKS.len() {
                    let at = run.start + n * MARKS.len();
                    let end = at + MARKS.len();
                    open = match open {
                        None => Some(Fence::begun(line, run.start, end)),
                        Some(_) => None,
                    };
                    self.toggles.push(Toggle { start: start + at, end: start + end, open });
                }
            } else if open.is_none()
                && let Some(closer) = closers.get(&(index - 1)).copied()
                && let Some(end) = runs.get(closer)
            {
                let span = run.start..end.end;
                let has_marks = runs.get(index..closer).is_some_and(has_marks);
                if longest(line, end, has_marks, size).holds(line, &span) {
                    let span = start + span.start..start + span.end;
                    if has_marks {
                        self.masks.push(span.clone());
                    }
                    self.spans.push(span);
                    index = closer + 1;
                }
            }
        }
        open
    }
}

/// How long code within a line may be that is closed by a run. A run at the end of the
/// text may still grow, and then closes nothing. It counts where little comes of that,
/// and so does code with marks of a block in it, which count until it is closed.
fn longest(line: &str, closer: &Range<usize>, has_marks: bool, size: Size) -> Size {
    let is_certain = closer.end < line.len() && !has_marks;
    Size { limit: if is_certain { size.limit } else { size.limit / 2 }, ..size }
}

fn has_marks(runs: &[Range<usize>]) -> bool {
    runs.iter().any(|run| run.len() >= MARKS.len())
}

/// Finds the runs of backticks of a line.
fn runs(line: &str) -> Vec<Range<usize>> {
    let mut runs: Vec<Range<usize>> = Vec::new();
    for (at, _) in line.match_indices('`') {
        match runs.last_mut() {
            Some(run) if run.end == at => run.end += 1,
            Some(_) | None => runs.push(at..at + 1),
        }
    }
    runs
}

/// Returns the next run of the same length of each, by their places.
fn closers(runs: &[Range<usize>]) -> HashMap<usize, usize> {
    let mut next = HashMap::new();
    let closers = runs.iter().enumerate().rev();
    closers.filter_map(|(index, run)| Some((index, next.insert(run.len(), index)?))).collect()
}

impl<'a> Fence<'a> {
    /// Makes one of the line that begins it, and the ends of its marks there.
    fn begun(line: &'a str, start: usize, end: usize) -> Self {
        let before = line.get(..start).unwrap_or_default();
        let is_quoted = before.trim_start().starts_with('>');
        let behind = line.get(end..).and_then(|behind| behind.strip_suffix('\n'));
        let language = behind.map(str::trim).filter(|word| is_language(word));
        Self { language: language.unwrap_or_default(), is_quoted }
    }
}

fn is_language(word: &str) -> bool {
    word.len() <= LANGUAGE
        && word.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_+-.#".contains(&byte))
}

//! Where a piece ends. Every place within reach has a worth that depends on what
//! stands around it alone, and the best one is taken.

use super::{
    Measure,
    fence::{Fence, Line, begins_with_marks},
    joined::Before,
    unit::{Size, units},
    white_at,
};

/// What a piece is cut from.
#[derive(Clone, Copy, Debug)]
pub(super) struct Window<'a> {
    /// The whole text, without the white space at its end.
    pub(super) text: &'a str,
    /// Where the piece begins.
    pub(super) begin: usize,
    /// The fence that is open there.
    pub(super) open: Option<Fence<'a>>,
    /// How much room there is, if no fence has to be closed.
    pub(super) room: usize,
    pub(super) limit: usize,
    pub(super) measure: Measure,
}

/// What comes next.
#[derive(Clone, Copy, Debug)]
pub(super) enum Next<'a> {
    /// All the rest fits.
    Rest { open: Option<Fence<'a>> },
    /// The piece ends here. White space follows, or the next piece.
    Cut { at: usize, open: Option<Fence<'a>> },
}

/// How much harm a cut does; the most first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Harm {
    /// It makes or breaks a fence.
    Fence,
    /// It goes through a sign.
    Sign,
    /// It goes through a unit in a line that looks like a fence.
    UnitOfFenceLine,
    /// It goes through a line that looks like a fence, or leaves a fence empty.
    FenceLine,
    /// It goes through something that should stay together.
    Unit,
    None,
}

/// What is between the two sides of a cut; the best last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Between {
    Nothing,
    Blank,
    Sentences,
    Lines,
    /// Lines that do not belong to one item of a list, or to code.
    OuterLines,
    Paragraphs,
}

/// What a cut is worth: little harm, then not too early, then what is there, then
/// as late as possible.
type Worth = (Harm, bool, Between, usize);

impl<'a> Window<'a> {
    /// Finds the end of the piece.
    pub(super) fn next(&self) -> Next<'a> {
        let Self { text, begin, open, room, limit, measure } = *self;
        let rest = text.get(begin..).unwrap_or_default();
        // A unit that begins within reach and fits ends within twice the limit.
        let near =
            rest.char_indices().nth(limit.saturating_mul(2)).map_or(rest.len(), |(at, _)| at);
        let units = units(rest.get(..near).unwrap_or_default(), open, Size { limit, measure });
        let mut units = units.iter().peekable();
        let mut best: Option<(Worth, Next<'a>)> = None;
        let (mut fence, mut line, mut line_start) = (open, Line::default(), 0);
        let mut before = Before::default();
        let mut seen = begin;
        let mut count = 0;
        for (at, c) in measure.start(rest, room).char_indices() {
            let at = at + c.len_utf8();
            count += measure.of_char(c);
            let so_far = rest.get(line_start..at).unwrap_or_default();
            line.add(c);
            before.add(c);
            seen = begin + at;
            if c == '\n' {
                fence = line.after(fence, so_far);
                (line, line_start) = (Line::default(), at);
            }
            let open = line.after(fence, so_far);
            let closing = open.map_or(0, |open| open.closing_length(limit));
            if c.is_whitespace() || count + closing > room {
                continue;
            }
            let after = rest.get(at..).unwrap_or_default();
            if after.is_empty() {
                return Next::Rest { open };
            }
            while units.next_if(|unit| unit.end <= at).is_some() {}
            let is_unit = units.peek().is_some_and(|unit| unit.start < at);
            let place = Place { so_far, line, fence, open, before, is_unit, after };
            let (harm, between) = place.judged();
            let worth = match count >= room / 2 {
                true => (harm, true, between, count),
                false => (harm, false, between.min(Between::Blank), count),
            };
            if best.as_ref().is_none_or(|(most, _)| *most < worth) {
                best = Some((worth, Next::Cut { at: begin + at, open }));
            }
        }
        best.map_or(Next::Cut { at: seen, open }, |(_, next)| next)
    }
}

/// A place where a piece could end, behind a character that is not white.
#[derive(Clone, Copy, Debug)]
struct Place<'a> {
    /// Its line up to there.
    so_far: &'a str,
    line: Line,
    /// The fence that is open before its line, and the one that is open there.
    fence: Option<Fence<'a>>,
    open: Option<Fence<'a>>,
    before: Before,
    is_unit: bool,
    /// All that follows.
    after: &'a str,
}

impl Place<'_> {
    fn judged(&self) -> (Harm, Between) {
        let white = white_at(self.after, 0);
        match white.rfind('\n') {
            Some(newline) => self.at_line_end(white, self.after.get(newline + 1..).unwrap_or("")),
            None => (self.harm_within_line(white), within_line(self.so_far, white)),
        }
    }

    fn at_line_end(&self, white: &str, next_line: &str) -> (Harm, Between) {
        let unit = if self.is_unit { Harm::Unit } else { Harm::None };
        let Some(open) = self.open else {
            return (unit, between_lines(self.so_far, white, next_line));
        };
        let is_empty = self.fence.is_none() || open.may_be_closed_by(next_line);
        (if is_empty { Harm::FenceLine } else { unit }, Between::Lines)
    }

    fn harm_within_line(&self, white: &str) -> Harm {
        let follows = self.after.get(white.len()..).unwrap_or_default();
        let is_within = |mark| self.so_far.ends_with(mark) && self.after.starts_with(mark);
        let is_joined = |next| white.is_empty() && self.before.is_joined_by(next);
        if begins_with_marks(follows) || is_within('`') || is_within('~') {
            return Harm::Fence;
        }
        if self.after.chars().next().is_some_and(is_joined) {
            return Harm::Sign;
        }
        match (self.line.is_like_fence(), self.is_unit) {
            (true, true) => Harm::UnitOfFenceLine,
            (true, false) => Harm::FenceLine,
            (false, true) => Harm::Unit,
            (false, false) => Harm::None,
        }
    }
}

/// Tells what is between two lines outside of code.
fn between_lines(line: &str, white: &str, next: &str) -> Between {
    let is_apart = white.find('\n') != white.rfind('\n');
    let is_continued = next.starts_with("  ") || next.starts_with('\t');
    match (is_apart, is_continued) {
        // Before code is better than within it, whatever stands there.
        (false, _) if begins_with_marks(next.trim_start()) => Between::OuterLines,
        // A heading stays with what it is the heading of.
        _ if is_heading(line) && !begins_with_marks(next.trim_start()) => Between::Blank,
        _ if is_heading(next) => Between::Paragraphs,
        (true, false) => Between::Paragraphs,
        (true, true) | (false, false) => Between::OuterLines,
        (false, true) => Between::Lines,
    }
}

fn is_heading(line: &str) -> bool {
    let text = line.trim_start_matches('#');
    (1..=6).contains(&(line.len() - text.len())) && text.starts_with([' ', '\t'])
}

fn within_line(line: &str, white: &str) -> Between {
    if white.is_empty() {
        return if line.ends_with(['。', '！', '？']) {
            Between::Sentences
        } else {
            Between::Nothing
        };
    }
    let sentence = line.trim_end_matches(['"', '\'', ')', ']', '*', '_', '»', '”', '’']);
    let is_end = sentence.ends_with(['.', '!', '?', '…', '。', '！', '？', '؟', '।', ':', ';']);
    if is_end { Between::Sentences } else { Between::Blank }
}

//! Where a piece ends. Every place within reach has a worth that depends on what
//! stands around it alone, and the best one is taken.

use unicode_segmentation::UnicodeSegmentation as _;

use super::{
    Measure,
    fence::{Fence, Ticks, begins_with_marks},
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
    /// It makes or breaks the marks of a block.
    Marks,
    /// It goes through a sign.
    Sign,
    /// It goes through a unit in the line that begins a block.
    UnitOfFirstLine,
    /// It goes through the line that begins a block, or leaves a block empty.
    FirstLine,
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
        let Self { text, begin, mut open, room, limit, measure } = *self;
        let rest = text.get(begin..).unwrap_or_default();
        // A unit that begins within reach and fits ends within twice the limit.
        let near =
            rest.char_indices().nth(limit.saturating_mul(2)).map_or(rest.len(), |(at, _)| at);
        let near = rest.get(..near).unwrap_or_default();
        let size = Size { limit, measure };
        let ticks = Ticks::read(near, open, size);
        let units = units(near, open, &ticks, size);
        let mut units = units.iter().peekable();
        let mut toggles = ticks.toggles.iter().peekable();
        let mut masks = ticks.masks.iter().peekable();
        let signs = near.grapheme_indices(true).map(|(at, _)| at);
        let mut signs = signs.chain([near.len()]).peekable();
        let mut best: Option<(Worth, Next<'a>)> = None;
        let (mut line_start, mut is_first_line) = (0, false);
        let mut cut = Next::Cut { at: begin, open };
        let (mut count, mut needed) = (0, 0);
        for (at, c) in measure.start(rest, room).char_indices() {
            let at = at + c.len_utf8();
            count += measure.of_char(c);
            while let Some(toggle) = toggles.next_if(|toggle| toggle.end <= at) {
                (open, is_first_line) = (toggle.open, toggle.open.is_some());
            }
            if c == '\n' {
                (line_start, is_first_line) = (at, false);
            }
            cut = Next::Cut { at: begin + at, open };
            let closing = open.map_or(0, |open| open.closing_length(limit));
            if c.is_whitespace() {
                continue;
            }
            // Marks that end a block are shorter than what would close it. Room that is
            // missing before them stays so, or they would move earlier cuts.
            needed = needed.max(count + closing);
            if needed > room {
                break;
            }
            let after = rest.get(at..).unwrap_or_default();
            if after.is_empty() {
                return Next::Rest { open };
            }
            while units.next_if(|unit| unit.end <= at).is_some() {}
            while masks.next_if(|mask| mask.end <= at).is_some() {}
            while signs.next_if(|sign| *sign < at).is_some() {}
            let place = Place {
                so_far: rest.get(line_start..at).unwrap_or_default(),
                is_code: open.is_some(),
                is_first_line,
                is_masked: masks.peek().is_some_and(|mask| mask.start < at),
                is_sign: signs.peek().is_some_and(|sign| *sign > at),
                is_unit: units.peek().is_some_and(|unit| unit.start < at),
                after,
            };
            let (harm, between) = place.judged();
            let worth = match count >= room / 2 {
                true => (harm, true, between, count),
                false => (harm, false, between.min(Between::Blank), count),
            };
            if best.as_ref().is_none_or(|(most, _)| *most < worth) {
                best = Some((worth, cut));
            }
        }
        best.map_or(cut, |(_, next)| next)
    }
}

/// A place where a piece could end, behind a character that is not white.
#[derive(Clone, Copy, Debug)]
struct Place<'a> {
    /// Its line up to there.
    so_far: &'a str,
    is_code: bool,
    /// Whether a block begins in its line.
    is_first_line: bool,
    /// Whether it is within code of a line that hides marks of a block.
    is_masked: bool,
    is_sign: bool,
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
        if !self.is_code {
            return (unit, between_lines(self.so_far, white, next_line));
        }
        let is_empty = self.is_first_line || begins_with_marks(next_line);
        (if is_empty { Harm::FirstLine } else { unit }, Between::Lines)
    }

    fn harm_within_line(&self, white: &str) -> Harm {
        let follows = self.after.get(white.len()..).unwrap_or_default();
        if self.is_masked || (self.so_far.ends_with('`') && self.after.starts_with('`')) {
            return Harm::Marks;
        }
        if self.is_sign {
            return Harm::Sign;
        }
        let is_empty = self.is_code && (self.is_first_line || begins_with_marks(follows));
        match (is_empty, self.is_unit) {
            (true, true) => Harm::UnitOfFirstLine,
            (true, false) => Harm::FirstLine,
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
        (false, _) if begins_with_marks(next) => Between::OuterLines,
        // A heading stays with what it is the heading of.
        _ if is_heading(line) && !begins_with_marks(next) => Between::Blank,
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

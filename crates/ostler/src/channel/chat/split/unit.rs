//! What should stay together: addresses, links, code within a line, and blocks of
//! code that fit. All but addresses count only once their end is seen: more text
//! then takes places to cut away and never gives any back, which is what keeps
//! earlier cuts where they are.

use std::{collections::HashMap, ops::Range};

use super::{
    Measure,
    fence::{Fence, Line},
};

/// How long something may be.
#[derive(Clone, Copy, Debug)]
pub(super) struct Size {
    pub(super) limit: usize,
    pub(super) measure: Measure,
}

impl Size {
    fn holds(self, text: &str, unit: &Range<usize>) -> bool {
        text.get(unit.clone()).is_some_and(|unit| self.measure.fits(unit, self.limit))
    }
}

/// Returns what should stay together in a text, in order and without overlaps.
/// Something that is longer than the limit cannot, and is left out. An address
/// counts however long it is, as its end may not be there yet.
pub(super) fn units(text: &str, open: Option<Fence<'_>>, size: Size) -> Vec<Range<usize>> {
    let mut units = Vec::new();
    let (mut start, mut fence) = (0, open);
    // Where a fence was opened, and how many units there were.
    let mut opened = None;
    for line in text.split_inclusive('\n') {
        let before = fence;
        let read = Line::read(line);
        fence = read.after(before, line);
        let count = units.len();
        let mut found = addresses(line);
        // Whether a line that begins like a fence is one shows only at its end, so
        // that nothing of it can depend on that.
        if before.is_none() && !read.is_like_fence() {
            found.extend(spans(line, size));
            found.extend(links(line, size));
        }
        match (before, fence) {
            (None, Some(_)) => opened = Some((start, count)),
            (None, None) | (Some(_), Some(_)) => {}
            (Some(closed), None) => {
                if let Some((from, count)) = opened.take() {
                    let block = from..start + line.trim_end().len();
                    let closing = closed.closing_length(size.limit);
                    let room = Size { limit: size.limit.saturating_sub(closing), ..size };
                    if room.holds(text, &block) {
                        units.truncate(count);
                        units.push(block);
                    }
                }
            }
        }
        units.extend(found.into_iter().map(|unit| unit.start + start..unit.end + start));
        start += line.len();
    }
    merged(units)
}

fn merged(mut units: Vec<Range<usize>>) -> Vec<Range<usize>> {
    units.sort_by_key(|unit| unit.start);
    units.dedup_by(|next, last| {
        let is_within = next.start < last.end;
        if is_within {
            last.end = last.end.max(next.end);
        }
        is_within
    });
    units
}

/// Finds code: what stands between two equally long runs of backticks.
fn spans(line: &str, size: Size) -> Vec<Range<usize>> {
    let mut runs: Vec<Range<usize>> = Vec::new();
    for (at, _) in line.match_indices('`') {
        match runs.last_mut() {
            Some(run) if run.end == at => run.end += 1,
            Some(_) | None => runs.push(at..at + 1),
        }
    }
    // The next run of each length, from the back.
    let mut next = HashMap::new();
    let closers = runs.iter().enumerate().rev();
    let closers = closers.map(|(index, run)| (index, next.insert(run.len(), index)));
    let closers: HashMap<usize, Option<usize>> = closers.collect();
    // A run at the end of the text may still grow, and then closes nothing. It
    // counts where little comes of that.
    let longest = |run: &Range<usize>, end: &Range<usize>| {
        let limit = match end.end < line.len() {
            true => size.limit,
            false if run.len() < 3 => size.limit / 2,
            false => 0,
        };
        Size { limit, ..size }
    };
    let (mut found, mut index) = (Vec::new(), 0);
    while let Some(run) = runs.get(index) {
        let closer = closers.get(&index).copied().flatten();
        let closer = closer.and_then(|closer| Some((closer, runs.get(closer)?)));
        index += 1;
        if let Some((closer, end)) = closer
            && longest(run, end).holds(line, &(run.start..end.end))
        {
            found.push(run.start..end.end);
            index = closer + 1;
        }
    }
    found
}

/// Finds links: `[text](address)`.
fn links(line: &str, size: Size) -> Vec<Range<usize>> {
    let (mut found, mut brackets) = (Vec::new(), Vec::new());
    // Where the link begins whose address is being read, and its open parentheses.
    let mut link: Option<(usize, u32)> = None;
    let mut last = ' ';
    for (at, c) in line.char_indices() {
        match (&mut link, c) {
            (Some((_, depth)), '(') => *depth += 1,
            (Some((start, 1)), ')') => {
                let unit = *start..at + 1;
                link = None;
                if size.holds(line, &unit) {
                    found.push(unit);
                }
            }
            (Some((_, depth)), ')') => *depth -= 1,
            (None, '[') => brackets.push(if last == '!' { at - 1 } else { at }),
            (None, ']') => {
                let start = brackets.pop();
                let is_link = line.get(at + 1..).is_some_and(|rest| rest.starts_with('('));
                link = start.filter(|_| is_link).map(|start| (start, 0));
            }
            (Some(_) | None, _) => {}
        }
        last = c;
    }
    found
}

/// Finds addresses of the web.
fn addresses(line: &str) -> Vec<Range<usize>> {
    let mut found: Vec<Range<usize>> = Vec::new();
    for (at, _) in line.match_indices("http") {
        let rest = line.get(at..).unwrap_or_default();
        let is_address = rest.starts_with("http://") || rest.starts_with("https://");
        if is_address && found.last().is_none_or(|last| last.end <= at) {
            let length = rest.find(ends_address).unwrap_or(rest.len());
            found.push(at..at + length);
        }
    }
    found
}

fn ends_address(c: char) -> bool {
    let is_wide = matches!(c, '\u{3000}'..='\u{303f}' | '\u{ff00}'..='\u{ff60}');
    c.is_whitespace() || c.is_control() || matches!(c, '<' | '>' | '"' | '`') || is_wide
}

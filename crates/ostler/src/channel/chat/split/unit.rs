//! What should stay together: addresses, links, code within a line, and blocks of
//! code that fit. All but addresses count only once their end is seen: more text
//! then takes places to cut away and never gives any back, which is what keeps
//! earlier cuts where they are.

use std::ops::Range;

use super::{
    Measure,
    fence::{Fence, Ticks},
};

/// How long something may be.
#[derive(Clone, Copy, Debug)]
pub(super) struct Size {
    pub(super) limit: usize,
    pub(super) measure: Measure,
}

impl Size {
    pub(super) fn holds(self, text: &str, unit: &Range<usize>) -> bool {
        text.get(unit.clone()).is_some_and(|unit| self.measure.fits(unit, self.limit))
    }
}

/// Returns what should stay together in a text, in order and without overlaps.
/// Something that is longer than the limit cannot, and is left out. An address
/// counts however long it is, as its end may not be there yet.
pub(super) fn units(
    text: &str,
    open: Option<Fence<'_>>,
    ticks: &Ticks<'_>,
    size: Size,
) -> Vec<Range<usize>> {
    let mut units = ticks.spans.clone();
    // Where what is no code goes on, and where the block began that is open.
    let mut plain = open.is_none().then_some(0);
    let mut begun = None;
    for toggle in &ticks.toggles {
        match toggle.open {
            Some(fence) => {
                begun = Some((toggle.start, fence));
                let plain = plain.take().map(|from| from..toggle.start);
                units.extend(plain.into_iter().flat_map(|plain| all_links(text, plain, size)));
            }
            None => {
                plain = Some(toggle.end);
                let block = begun.take().map(|(from, fence)| (from..toggle.end, fence));
                units.extend(block.and_then(|(block, fence)| {
                    let limit = size.limit.saturating_sub(fence.closing_length(size.limit));
                    Size { limit, ..size }.holds(text, &block).then_some(block)
                }));
            }
        }
    }
    let plain = plain.map(|from| from..text.len());
    units.extend(plain.into_iter().flat_map(|plain| all_links(text, plain, size)));
    units.extend(addresses(text));
    merged(units)
}

/// Finds the links of a part of a text.
fn all_links(text: &str, part: Range<usize>, size: Size) -> Vec<Range<usize>> {
    let (mut found, mut start) = (Vec::new(), part.start);
    for line in text.get(part).unwrap_or_default().split_inclusive('\n') {
        let links = links(line, size).into_iter();
        found.extend(links.map(|link| start + link.start..start + link.end));
        start += line.len();
    }
    found
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

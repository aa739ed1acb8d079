//! `MEDIA:` tokens: how an agent says in its answer which files go with it. Pure.
//!
//! ```text
//! Here it is: MEDIA:./chart.png, MEDIA:"my notes.pdf" (MEDIA:https://example.org/a.jpg)
//! ```
//!
//! What a token names is only read here. Whether it may be sent is decided in
//! `outgoing`.

use reqwest::Url;

/// What a token begins with.
pub(crate) const MARK: &str = "MEDIA:";
/// The longest place that is taken for one, in bytes.
const LONGEST: usize = 4096;
/// How much behind a mark is looked at: the longest place, and what stands around it.
const ROOM: usize = LONGEST + 16;
/// The longest ending of a name that makes it look like a file.
const EXTENSION: usize = 10;
/// The longest number of a point of a list.
const DIGITS: usize = 9;
/// The most marks of emphasis around something.
const EMPHASIS: usize = 3;
/// What may stand around a token or around its place.
const PAIRS: [(char, char); 13] = [
    ('"', '"'),
    ('\'', '\''),
    ('`', '`'),
    ('“', '”'),
    ('‘', '’'),
    ('«', '»'),
    ('<', '>'),
    ('(', ')'),
    ('[', ']'),
    ('{', '}'),
    ('「', '」'),
    ('『', '』'),
    ('（', '）'),
];
/// Those of them that are quotes.
const QUOTES: &str = "\"'`“‘«「『";
/// What ends a word in languages that have no blanks between words.
const STOPS: &str = "。、，；：！？";
/// Between two tokens one of them is enough.
const BETWEEN: [char; 3] = [',', ';', '|'];

/// An answer without its tokens.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Taken {
    pub(crate) text: String,
    /// What they name, in their order.
    pub(crate) tokens: Vec<String>,
}

/// Takes the tokens out of an answer. What is in a fenced block of code stays as
/// it is, and so does everything that only looks like a token.
pub(crate) fn take(text: &str) -> Taken {
    if !text.contains(MARK) {
        return Taken { text: text.to_owned(), tokens: Vec::new() };
    }
    let mut taken = Taken::default();
    let mut open: Option<Fence> = None;
    for line in text.split_inclusive('\n') {
        let content = line.strip_suffix('\n').unwrap_or(line);
        let content = content.strip_suffix('\r').unwrap_or(content);
        let end = line.get(content.len()..).unwrap_or_default();
        if let Some(fence) = fence(content) {
            open = match open {
                None => Some(fence),
                Some(open) if fence.closes(open) => None,
                within => within,
            };
            taken.text.push_str(line);
            continue;
        }
        if open.is_some() {
            taken.text.push_str(line);
            continue;
        }
        let Some((left, mut tokens)) = take_from_line(content) else {
            taken.text.push_str(line);
            continue;
        };
        taken.tokens.append(&mut tokens);
        if !is_empty(&left) {
            taken.text.push_str(&left);
            taken.text.push_str(end);
        }
    }
    taken
}

/// A line that begins or ends a block of code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Fence {
    mark: char,
    length: usize,
    /// Whether something is behind it, or it begins a point of a list: then it can
    /// only begin one.
    is_beginning: bool,
}

impl Fence {
    fn closes(self, open: Self) -> bool {
        self.mark == open.mark && self.length >= open.length && !self.is_beginning
    }
}

fn fence(line: &str) -> Option<Fence> {
    let (line, is_point) = within(line);
    let mark = line.chars().next().filter(|mark| ['`', '~'].contains(mark))?;
    let behind = line.trim_start_matches(mark);
    let length = line.len() - behind.len();
    let is_code_in_line = mark == '`' && behind.contains('`');
    let is_beginning = is_point || !behind.trim().is_empty();
    (length >= 3 && !is_code_in_line).then_some(Fence { mark, length, is_beginning })
}

/// Returns what stands in the lists and quotations that a line is in, and whether it
/// begins a point of one of those lists.
fn within(line: &str) -> (&str, bool) {
    let (mut line, mut is_point) = (line, false);
    loop {
        line = line.trim_start_matches([' ', '\t', '>']);
        let number = line.trim_start_matches(|c: char| c.is_ascii_digit());
        let behind = match line.len() - number.len() {
            0 => line.strip_prefix(['-', '*', '+']),
            1..=DIGITS => number.strip_prefix(['.', ')']),
            _ => None,
        };
        match behind.filter(|behind| behind.starts_with([' ', '\t'])) {
            Some(behind) => (line, is_point) = (behind, true),
            None => return (line, is_point),
        }
    }
}

/// Whether nothing is left of a line that anybody would miss.
fn is_empty(line: &str) -> bool {
    // Emphasis of nothing, and rows of tables with nothing in them.
    let line = line.trim_matches(|c: char| c.is_whitespace() || "*_|".contains(c));
    let digits = line.strip_suffix(['.', ')']).unwrap_or("none");
    let is_number = digits.len() <= DIGITS && digits.bytes().all(|byte| byte.is_ascii_digit());
    line.is_empty() || ["-", "+", "•"].contains(&line) || (!digits.is_empty() && is_number)
}

/// Returns a line without its tokens, and what they name; nothing if there are none.
/// A line in which that would make others stays as it is.
fn take_from_line(line: &str) -> Option<(String, Vec<String>)> {
    take_once(line).filter(|(left, _)| take_once(left).is_none())
}

fn take_once(line: &str) -> Option<(String, Vec<String>)> {
    let (mut left, mut tokens) = (String::new(), Vec::new());
    let mut is_blank = true;
    // Up to here it is in `left`, or was taken; from here on marks are looked for.
    let (mut copied, mut from) = (0, 0);
    while let Some(at) = line.get(from..)?.find(MARK).map(|at| from + at) {
        if !may_precede(line.get(..at)?) {
            from = at + MARK.len();
            continue;
        }
        let found = read(line, at);
        from = found.end;
        if found.places.is_empty() {
            continue;
        }
        let before = line.get(copied..found.start)?;
        is_blank &= before.trim().is_empty();
        left.push_str(before);
        tokens.extend(found.places);
        copied = found.end;
        // One of the blanks around it goes with it.
        if is_blank {
            let rest = line.get(copied..)?;
            copied += rest.len() - rest.trim_start_matches([' ', '\t']).len();
            from = copied;
        } else {
            left.truncate(left.trim_end_matches([' ', '\t']).len());
        }
    }
    left.push_str(line.get(copied..)?);
    // What would hide the lines after it stays as it is.
    (!tokens.is_empty() && fence(&left).is_none()).then_some((left, tokens))
}

/// Whether a mark may follow a text: not within a word, an option or an address, such
/// as `SOCIALMEDIA:` or `EXT-X-MEDIA:`.
fn may_precede(text: &str) -> bool {
    let Some(last) = text.chars().next_back() else { return true };
    match last {
        '_' | '-' | '+' | '#' | '~' => {
            text.trim_end_matches(last).chars().next_back().is_none_or(char::is_whitespace)
        }
        '/' | '\\' | '=' | '&' | '$' | '%' | '@' => false,
        _ => !last.is_alphanumeric(),
    }
}

/// Something behind a mark, from one place in the line to another.
struct Found {
    start: usize,
    end: usize,
    /// What it names; nothing if it is none.
    places: Vec<String>,
}

/// Reads what stands behind the mark at a place. However long the line is, only so
/// much of it is looked at that all marks together cost no more than the line.
fn read(line: &str, at: usize) -> Found {
    let before = line.get(..at).unwrap_or_default();
    let behind = line.get(at + MARK.len()..).unwrap_or_default();
    let rest = behind.trim_start_matches([' ', '\t']);
    let begins = line.len() - rest.len();
    let rest = rest.get(..rest.floor_char_boundary(ROOM)).unwrap_or_default();
    let own = rest.chars().next().and_then(|first| Some((first, closer(first)?)));
    let around = before.chars().next_back().and_then(|before| Some((before, closer(before)?)));
    let quoted = around.filter(|(open, _)| QUOTES.contains(*open));
    // Which bytes of the rest are the place, where what stands around it ends, and
    // whether that begins before the mark.
    let (places, length, is_around) =
        if let Some((inner, length)) = own.and_then(|(open, close)| enclosed(rest, open, close)) {
            (place(inner).into_iter().collect(), length, false)
        } else if let Some((inner, length)) = quoted.and_then(|(_, close)| between(rest, close)) {
            (places(inner), length, true)
        } else {
            let (inner, length) = emphasised(first_word(rest));
            (place(inner).into_iter().collect(), length, false)
        };
    let mut found = Found { start: at, end: begins + length, places };
    let mut tail = line.get(found.end..).unwrap_or_default();
    if !may_end(line, found.end) {
        found.places.clear();
    }
    if found.places.is_empty() {
        return found;
    }
    let close = around.map(|(open, close)| (open.len_utf8(), close));
    match close {
        Some((open, _)) if is_around => found.start -= open,
        Some((open, close)) if tail.starts_with(close) => {
            found.start -= open;
            found.end += close.len_utf8();
            tail = line.get(found.end..).unwrap_or_default();
        }
        Some(_) | None => {}
    }
    let marks = emphasis(line.get(..found.start).unwrap_or_default().chars().rev());
    if let Some(behind) = marks.and_then(|marks| tail.strip_prefix(marks)) {
        found.start -= tail.len() - behind.len();
        found.end += tail.len() - behind.len();
        tail = behind;
    }
    let stop = tail.chars().next().filter(|c| [',', ';', '.', '，', '、', '；', '。'].contains(c));
    found.end += stop.map_or(0, char::len_utf8);
    found
}

/// Whether a token may end at a place.
fn may_end(line: &str, at: usize) -> bool {
    let rest = line.get(at..).unwrap_or_default().trim_start_matches(is_behind);
    let over = line.get(..line.len() - rest.len()).unwrap_or_default();
    // Those that are as wide as a sign need no blank behind them.
    let is_wide = |c: char| STOPS.contains(c) || ['」', '』', '）'].contains(&c);
    rest.chars().next().is_none_or(|next| next.is_whitespace() || next == '<')
        || over.ends_with(is_wide)
        || (over.ends_with(BETWEEN) && rest.starts_with(MARK))
}

/// Returns what a text begins with, up to where a place would have to end that nothing
/// stands around.
fn first_word(text: &str) -> &str {
    let is_end = |(at, c): &(usize, char)| {
        let is_before_another = || text.get(at + 1..).is_some_and(|rest| rest.starts_with(MARK));
        c.is_whitespace()
            || *c == '<'
            || STOPS.contains(*c)
            || (BETWEEN.contains(c) && is_before_another())
    };
    let end = text.char_indices().find(is_end).map_or(text.len(), |(at, _)| at);
    text.get(..end).unwrap_or_default()
}

/// Returns a word without what belongs to the sentence around it and without marks of
/// emphasis around itself, and where it ends.
fn emphasised(word: &str) -> (&str, usize) {
    let inner = bare(word);
    let tail = word.get(inner.len()..).unwrap_or_default();
    let marks = emphasis(inner.chars()).filter(|marks| tail.starts_with(marks));
    match marks.and_then(|marks| Some((inner.strip_prefix(marks)?, marks))) {
        Some((within, marks)) => (within, inner.len() + marks.len()),
        None => (inner, inner.len()),
    }
}

/// Returns the marks of emphasis that come first, if that is what they are.
fn emphasis(mut chars: impl Iterator<Item = char>) -> Option<&'static str> {
    let first = chars.next()?;
    let all = match first {
        '*' => "***",
        '_' => "___",
        _ => return None,
    };
    let n_more = chars.take(EMPHASIS).take_while(|c| *c == first).count();
    all.get(..n_more + 1)
}

/// Returns what stands between the bracket or quote that a text begins with and its
/// counterpart, and where that ends. Brackets may have others of their sort within,
/// but no token.
fn enclosed(text: &str, open: char, close: char) -> Option<(&str, usize)> {
    let text = text.split(MARK).next()?;
    let mut depth = 0_usize;
    for (at, c) in text.char_indices() {
        match c {
            _ if c == open && (open != close || at == 0) => depth += 1,
            _ if c == close => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return Some((text.get(open.len_utf8()..at)?, at + close.len_utf8()));
        }
    }
    None
}

/// Returns what is closed by a character, and where it ends with that character.
fn between(text: &str, close: char) -> Option<(&str, usize)> {
    let inner = text.split_once(close)?.0;
    Some((inner, inner.len() + close.len_utf8()))
}

/// Returns the places of a quotation that begins behind a mark: one that may have
/// blanks in it, or several tokens and nothing else.
fn places(inner: &str) -> Vec<String> {
    if !inner.contains(MARK) {
        return place(inner).into_iter().collect();
    }
    let (mut places, mut rest) = (Vec::new(), inner);
    loop {
        let word = first_word(rest);
        let Some(place) = place(bare(word)) else { return Vec::new() };
        places.push(place);
        rest = rest.get(word.len()..).unwrap_or_default();
        rest = rest.trim_start_matches(|c: char| {
            c.is_whitespace() || BETWEEN.contains(&c) || STOPS.contains(c)
        });
        match rest.strip_prefix(MARK) {
            Some(behind) => rest = behind,
            None if rest.is_empty() => return places,
            None => return Vec::new(),
        }
    }
}

/// Returns a word without what belongs to the sentence around it.
fn bare(word: &str) -> &str {
    if !word.ends_with(is_behind) {
        return word;
    }
    let mut bare = word;
    let count = |c: char| word.matches(c).count();
    let mut pairs = PAIRS.map(|(open, close)| (open, close, count(open), count(close)));
    while let Some(last) = bare.chars().next_back().filter(|last| is_behind(*last)) {
        let pair = pairs.iter_mut().find(|(open, close, ..)| *close == last && open != close);
        if let Some((_, _, n_opened, n_closed)) = pair {
            if n_opened >= n_closed {
                break;
            }
            *n_closed -= 1;
        }
        bare = bare.strip_suffix(last).unwrap_or_default();
    }
    bare
}

/// Returns what a token names, if it may: a URL, or something that looks like a path.
fn place(inner: &str) -> Option<String> {
    let mut inner = inner.trim();
    while let Some((open, close)) = PAIRS.iter().find(|(open, _)| inner.starts_with(*open)) {
        inner = inner.strip_prefix(*open)?.strip_suffix(*close)?.trim();
    }
    if inner.len() > LONGEST || inner.contains(char::is_control) || inner.contains(MARK) {
        return None;
    }
    // Emphasis that does not end with it, or a pattern.
    if inner.starts_with('*') {
        return None;
    }
    let is_place = match scheme(inner) {
        Some(_) => is_url(inner) && !inner.contains(char::is_whitespace),
        None => inner.contains(char::is_alphanumeric) && is_path(inner),
    };
    is_place.then(|| inner.to_owned())
}

/// Whether a place is a link, and no path.
pub(crate) fn is_url(place: &str) -> bool {
    let is_of_web = |url: Url| matches!(url.scheme(), "http" | "https") && url.has_host();
    Url::parse(place).is_ok_and(is_of_web)
}

/// Returns the scheme that a text begins with, such as that of a URL.
fn scheme(text: &str) -> Option<&str> {
    let (scheme, _) = text.split_once(':')?;
    let is_scheme = scheme.starts_with(|c: char| c.is_ascii_alphabetic())
        && scheme.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+.-".contains(&byte));
    is_scheme.then_some(scheme)
}

/// Whether a text looks like a path, and not like any word.
fn is_path(text: &str) -> bool {
    text.contains('/')
        || text.rsplit_once('.').is_some_and(|(name, extension)| {
            !name.is_empty()
                && (1..=EXTENSION).contains(&extension.len())
                && extension.bytes().all(|byte| byte.is_ascii_alphanumeric())
        })
}

/// Whether a character may follow a token without being a part of it.
fn is_behind(c: char) -> bool {
    [',', '.', ';', ':', '!', '?', '*', '_', '|'].contains(&c)
        || STOPS.contains(c)
        || PAIRS.iter().any(|(_, close)| *close == c)
}

/// Returns what closes what a character opens.
fn closer(open: char) -> Option<char> {
    PAIRS.iter().find(|(other, _)| *other == open).map(|(_, close)| *close)
}

#[cfg(test)]
mod tests;

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
/// The longest ending of a name that makes it look like a file.
const EXTENSION: usize = 10;
/// What may stand around a token or around its place.
const PAIRS: [(char, char); 10] = [
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
];
/// Those of them that are quotes.
const QUOTES: &str = "\"'`“‘«";

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
    /// Whether something is behind it, so that it can only begin one.
    is_named: bool,
}

impl Fence {
    fn closes(self, open: Self) -> bool {
        self.mark == open.mark && self.length >= open.length && !self.is_named
    }
}

fn fence(line: &str) -> Option<Fence> {
    // In lists and quotations they are further to the right.
    let line = line.trim_start_matches([' ', '\t', '>']);
    let mark = line.chars().next().filter(|mark| ['`', '~'].contains(mark))?;
    let behind = line.trim_start_matches(mark);
    let length = line.len() - behind.len();
    let is_code_in_line = mark == '`' && behind.contains('`');
    let is_named = !behind.trim().is_empty();
    (length >= 3 && !is_code_in_line).then_some(Fence { mark, length, is_named })
}

/// Whether nothing is left of a line that anybody would miss.
fn is_empty(line: &str) -> bool {
    let line = line.trim();
    let digits = line.strip_suffix(['.', ')']).unwrap_or("none");
    let is_number = digits.len() <= 9 && digits.bytes().all(|byte| byte.is_ascii_digit());
    line.is_empty() || ["-", "*", "+", "•"].contains(&line) || (!digits.is_empty() && is_number)
}

/// Returns a line without its tokens, and what they name; nothing if there are none.
/// A line in which that would make others stays as it is.
fn take_from_line(line: &str) -> Option<(String, Vec<String>)> {
    take_once(line).filter(|(left, _)| take_once(left).is_none())
}

fn take_once(line: &str) -> Option<(String, Vec<String>)> {
    let (mut left, mut tokens) = (String::new(), Vec::new());
    // Up to here it is in `left`, or was taken; from here on marks are looked for.
    let (mut copied, mut from) = (0, 0);
    while let Some(at) = line.get(from..)?.find(MARK).map(|at| from + at) {
        let before = line.get(..at)?.chars().next_back();
        if before.is_some_and(|before| !before.is_whitespace() && closer(before).is_none()) {
            from = at + MARK.len();
            continue;
        }
        let found = read(line, at, before);
        from = found.end;
        if found.places.is_empty() {
            continue;
        }
        left.push_str(line.get(copied..found.start)?);
        tokens.extend(found.places);
        copied = found.end;
        // One of the blanks around it goes with it.
        if left.trim().is_empty() {
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

/// Something behind a mark, from one place in the line to another.
struct Found {
    start: usize,
    end: usize,
    /// What it names; nothing if it is none.
    places: Vec<String>,
}

/// Reads what stands behind the mark at a place.
fn read(line: &str, at: usize, before: Option<char>) -> Found {
    let behind = line.get(at + MARK.len()..).unwrap_or_default();
    let rest = behind.trim_start_matches([' ', '\t']);
    let begins = line.len() - rest.len();
    let own = rest.chars().next().and_then(|first| Some((first, closer(first)?)));
    let around = before.and_then(|before| Some((before, closer(before)?)));
    let quoted = around.filter(|(open, _)| QUOTES.contains(*open));
    // Which bytes of the rest are the place, where what stands around it ends, and
    // whether that begins before the mark.
    let (places, length, is_around) =
        if let Some((inner, length)) = own.and_then(|(open, close)| enclosed(rest, open, close)) {
            (place(inner).into_iter().collect(), length, false)
        } else if let Some((inner, length)) = quoted.and_then(|(_, close)| between(rest, close)) {
            (places(inner), length, true)
        } else {
            let word = rest.split(char::is_whitespace).next().unwrap_or_default();
            let inner = bare(word);
            (place(inner).into_iter().collect(), inner.len(), false)
        };
    let mut found = Found { start: at, end: begins + length, places };
    let mut tail = line.get(found.end..).unwrap_or_default();
    let is_over = tail.trim_start_matches(is_behind).chars().next();
    if !is_over.is_none_or(char::is_whitespace) {
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
    if tail.starts_with([',', '.']) {
        found.end += 1;
    }
    found
}

/// Returns what stands between the bracket or quote that a text begins with and its
/// counterpart, and where that ends. Brackets may have others of their sort within.
fn enclosed(text: &str, open: char, close: char) -> Option<(&str, usize)> {
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
    let words = inner.split_whitespace().enumerate().map(|(n, word)| match n {
        0 => place(bare(word)),
        _ => place(bare(word.strip_prefix(MARK)?)),
    });
    words.collect::<Option<_>>().unwrap_or_default()
}

/// Returns a word without what belongs to the sentence around it.
fn bare(word: &str) -> &str {
    let mut bare = word;
    while let Some(last) = bare.chars().next_back().filter(|last| is_behind(*last)) {
        let open = PAIRS.iter().find(|(open, close)| *close == last && open != close);
        let is_its_own = open.is_some_and(|(open, close)| {
            bare.matches(*open).count() >= bare.matches(*close).count()
        });
        if is_its_own {
            break;
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
    [',', '.', ';', ':', '!', '?'].contains(&c) || PAIRS.iter().any(|(_, close)| *close == c)
}

/// Returns what closes what a character opens.
fn closer(open: char) -> Option<char> {
    PAIRS.iter().find(|(other, _)| *other == open).map(|(_, close)| *close)
}

#[cfg(test)]
mod tests;

//! Reads a `.env` file.
//!
//! A line is `NAME=value`, with `export ` before it or not. Blank lines and lines
//! that begin with `#` are nothing. A value without quotes ends with the line or
//! before ` #`, and has no spaces around it. In single quotes everything is as it
//! stands; in double quotes `\n`, `\r`, `\t`, `\"`, `\\` and `\$` are what they are
//! in a shell. A value in quotes can go over several lines. Nothing is replaced
//! in a value, and no command is run. Of a name that is there twice the last counts.

/// A variable, and the line that it begins on.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Line {
    pub(super) number: usize,
    pub(super) name: String,
    pub(super) value: String,
}

/// Reads the text; beside the variables come the numbers of the lines that are none.
pub(super) fn parse(text: &str) -> (Vec<Line>, Vec<usize>) {
    let (mut lines, mut unread) = (Vec::new(), Vec::new());
    let mut rest = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut number = 1;
    while !rest.is_empty() {
        let whole = rest;
        let (line, after) = rest.split_once('\n').unwrap_or((rest, ""));
        rest = after;
        let trimmed = line.trim();
        if !trimmed.is_empty() && !trimmed.starts_with('#') {
            match variable(whole) {
                Some((name, value, after)) => {
                    lines.push(Line { number, name, value });
                    rest = after;
                }
                None => unread.push(number),
            }
        }
        let consumed = whole.len() - rest.len();
        number += whole.get(..consumed).map_or(1, |part| part.matches('\n').count());
    }
    (lines, unread)
}

/// Reads a variable from the start of a text, and returns what comes after its line.
fn variable(text: &str) -> Option<(String, String, &str)> {
    let text = text.trim_start();
    let text = text.strip_prefix("export ").map_or(text, str::trim_start);
    let (name, text) = text.split_once('=')?;
    let name = name.trim_end_matches([' ', '\t']);
    let is_name = !name.is_empty()
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '.')
        && !name.starts_with(|c: char| c.is_ascii_digit());
    if !is_name {
        return None;
    }
    let text = text.trim_start_matches([' ', '\t']);
    let (value, after) = match text.chars().next() {
        Some('\'') => {
            let (value, after) = text.get(1..)?.split_once('\'')?;
            (value.to_owned(), rest_of_line(after)?)
        }
        Some('"') => {
            let (value, after) = double_quoted(text.get(1..)?)?;
            (value, rest_of_line(after)?)
        }
        Some(_) | None => {
            let (line, after) = text.split_once('\n').unwrap_or((text, ""));
            (bare(line).to_owned(), after)
        }
    };
    Some((name.to_owned(), value, after))
}

/// Returns what comes after a line of which only a comment may be left.
fn rest_of_line(text: &str) -> Option<&str> {
    let (line, after) = text.split_once('\n').unwrap_or((text, ""));
    let line = line.trim();
    (line.is_empty() || line.starts_with('#')).then_some(after)
}

fn bare(line: &str) -> &str {
    if line.starts_with('#') {
        return "";
    }
    let comment = line.find(" #").into_iter().chain(line.find("\t#")).min();
    comment.and_then(|at| line.get(..at)).unwrap_or(line).trim()
}

fn double_quoted(text: &str) -> Option<(String, &str)> {
    let mut value = String::new();
    let mut chars = text.char_indices();
    while let Some((at, c)) = chars.next() {
        match c {
            '"' => return Some((value, text.get(at + 1..)?)),
            '\\' => match chars.next()?.1 {
                'n' => value.push('\n'),
                'r' => value.push('\r'),
                't' => value.push('\t'),
                c @ ('"' | '\\' | '$') => value.push(c),
                other => value.extend(['\\', other]),
            },
            c => value.push(c),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_read_as_the_documentation_says() {
        let text = "\u{feff}# comment\n\nA=1\n export B = two words  # not this\nC='a # b'\n\
            D=\"x\\n\\\"y\\\" \\$HOME \\z\" # c\nE=\nF=\"one\ntwo\"\nG=a#b\nH=$A\r\nI='x\ny'\nA=last\nJ=#";
        let (lines, unread) = parse(text);
        let read: Vec<_> =
            lines.iter().map(|l| (l.number, l.name.as_str(), l.value.as_str())).collect();
        assert_eq!(
            read,
            [
                (3, "A", "1"),
                (4, "B", "two words"),
                (5, "C", "a # b"),
                (6, "D", "x\n\"y\" $HOME \\z"),
                (7, "E", ""),
                (8, "F", "one\ntwo"),
                (10, "G", "a#b"),
                (11, "H", "$A"),
                (12, "I", "x\ny"),
                (14, "A", "last"),
                (15, "J", ""),
            ]
        );
        assert!(unread.is_empty(), "{unread:?}");
    }

    #[test]
    fn a_line_that_is_none_is_told_by_its_number_and_the_next_is_read() {
        let (lines, unread) = parse("A B\n=x\n1A=x\nC='open\nD=1\nE=\"x\" y\nF=2");
        let names: Vec<_> = lines.iter().map(|line| line.name.as_str()).collect();
        assert_eq!(names, ["D", "F"]);
        assert_eq!(unread, [1, 2, 3, 4, 6]);
    }
}

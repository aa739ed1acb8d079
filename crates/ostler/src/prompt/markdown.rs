//! What counts of a Markdown file: its text without comments, without its own
//! title, and what its front matter says. Pure; nothing here can fail.

/// The longest name and description that are taken from a front matter, in characters.
const NAME: usize = 100;
const DESCRIPTION: usize = 500;

/// What stands at the head of a skill, between two lines of dashes.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct FrontMatter {
    pub(crate) name: Option<String>,
    pub(crate) description: Option<String>,
}

/// Returns the text without what is only for the one who edits the file:
/// comments that begin a line, and blank space around it.
pub(crate) fn clean(text: &str) -> String {
    without_comments(text.strip_prefix('\u{feff}').unwrap_or(text)).trim().to_owned()
}

/// Returns a text that was cleaned without a heading that only says its title.
pub(crate) fn without_title<'a>(text: &'a str, title: &str) -> &'a str {
    let (line, rest) = text.split_once('\n').unwrap_or((text, ""));
    let is_title =
        line.strip_prefix("# ").is_some_and(|own| own.trim().eq_ignore_ascii_case(title));
    if is_title { rest.trim_start() } else { text }
}

/// Leaves comments out that begin a line, outside of fenced code. One that does
/// not end is text: a slip must not make a whole file vanish.
fn without_comments(text: &str) -> String {
    let mut kept = String::with_capacity(text.len());
    let mut fence: Option<&str> = None;
    let mut rest = text;
    while !rest.is_empty() {
        let (line, behind) = rest.split_at(rest.find('\n').map_or(rest.len(), |end| end + 1));
        let content = line.trim();
        if let Some(mark) = fence {
            // It ends with at least as many of the same sign, and nothing else.
            let is_end = content.starts_with(mark) && mark_of(content) == Some(content);
            fence = if is_end { None } else { fence };
        } else if let Some(mark) = mark_of(content) {
            fence = Some(mark);
        } else if content.starts_with("<!--") {
            let comment = rest.trim_start();
            let Some((_, after)) = comment.split_once("-->") else {
                kept.push_str(rest);
                break;
            };
            let (line, next) = after.split_once('\n').unwrap_or((after, ""));
            rest = if line.trim().is_empty() { next } else { after };
            continue;
        }
        kept.push_str(line);
        rest = behind;
    }
    kept
}

/// Returns the signs that begin fenced code, if a line does.
fn mark_of(line: &str) -> Option<&str> {
    let sign = line.chars().next().filter(|sign| ['`', '~'].contains(sign))?;
    let end = line.find(|c| c != sign).unwrap_or(line.len());
    line.get(..end).filter(|mark| mark.len() >= 3)
}

/// Takes a front matter and what follows it apart. A text without one has an
/// empty one.
pub(crate) fn front_matter(text: &str) -> (FrontMatter, &str) {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut matter = FrontMatter::default();
    let Some((first, mut rest)) = text.split_once('\n') else { return (matter, text) };
    if first.trim_end() != "---" {
        return (matter, text);
    }
    let mut lines = Vec::new();
    while let Some((line, behind)) =
        rest.split_once('\n').or((!rest.is_empty()).then_some((rest, "")))
    {
        rest = behind;
        if line.trim_end() == "---" {
            matter.name = value_of(&lines, "name").map(|name| one_line(&name, NAME));
            matter.description =
                value_of(&lines, "description").map(|text| one_line(&text, DESCRIPTION));
            return (matter, rest);
        }
        lines.push(line);
    }
    // It never ended, so it was none.
    (matter, text)
}

/// Returns the value of a key: what stands behind it, and the indented lines below.
fn value_of(lines: &[&str], key: &str) -> Option<String> {
    let is_it = |line: &&str| line.strip_prefix(key).is_some_and(|rest| rest.starts_with(':'));
    let at = lines.iter().position(is_it)?;
    let first = lines.get(at)?.get(key.len() + 1..)?.trim();
    // The signs of a text that is folded or kept as it is.
    let first = if first.starts_with(['>', '|']) && first.len() <= 3 { "" } else { first };
    let below = lines.iter().skip(at + 1).take_while(|line| line.starts_with([' ', '\t']));
    let all: Vec<&str> = [first].into_iter().chain(below.map(|line| line.trim())).collect();
    let text = all.join(" ");
    let text = text.trim();
    let unquoted = ['"', '\'']
        .iter()
        .find_map(|quote| text.strip_prefix(*quote).and_then(|text| text.strip_suffix(*quote)));
    Some(unquoted.unwrap_or(text).trim().to_owned()).filter(|text| !text.is_empty())
}

/// Returns a text as one line of at most so many characters.
pub(crate) fn one_line(text: &str, longest: usize) -> String {
    let is_gap = |c: char| c.is_whitespace() || c.is_control();
    let words: Vec<&str> = text.split(is_gap).filter(|word| !word.is_empty()).collect();
    let line = words.join(" ");
    match line.char_indices().nth(longest) {
        None => line,
        Some((end, _)) => format!("{}…", line.get(..end).unwrap_or_default().trim_end()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_that_begin_a_line_are_left_out_and_others_stay() {
        for (text, left) in [
            ("", ""),
            (" \n\t\n", ""),
            ("\u{feff}<!-- a\n\nb -->\n", ""),
            ("<!-- a --><!-- b -->\n  <!-- c -->", ""),
            ("<!-- a -->\nHello.\n<!-- b -->\nBye.", "Hello.\nBye."),
            ("<!-- a --> Hello.", "Hello."),
            ("Hello <!-- there -->.", "Hello <!-- there -->."),
            ("```html\n<!-- a -->\n```", "```html\n<!-- a -->\n```"),
            (
                "~~~~\n<!-- a -->\n~~~\n<!-- b -->\n~~~~\n<!-- c -->",
                "~~~~\n<!-- a -->\n~~~\n<!-- b -->\n~~~~",
            ),
            ("Hello.\n<!-- never ended\nBye.", "Hello.\n<!-- never ended\nBye."),
        ] {
            assert_eq!(clean(text), left, "{text:?}");
        }
    }

    #[test]
    fn a_heading_that_only_repeats_the_title_is_left_out() {
        for (text, left) in [
            ("# Soul\n\nBe kind.", "Be kind."),
            ("# soul ", ""),
            ("# Soul of a poet\nBe kind.", "# Soul of a poet\nBe kind."),
            ("## Soul\nBe kind.", "## Soul\nBe kind."),
            ("Soul", "Soul"),
        ] {
            assert_eq!(without_title(text, "Soul"), left, "{text:?}");
        }
    }

    #[test]
    fn a_front_matter_gives_name_and_description() {
        let read = |text: &'static str| {
            let (FrontMatter { name, description }, body) = front_matter(text);
            (name.unwrap_or_default(), description.unwrap_or_default(), body)
        };
        let as_they_stand = "---\nname: tea\ndescription: Makes tea.\n---\nBoil.";
        assert_eq!(read(as_they_stand), ("tea".into(), "Makes tea.".into(), "Boil."));
        let folded = "---\r\ndescription: >-\r\n  Makes\r\n  tea.\r\nname: \"tea\"\r\n---\r\nBoil.";
        assert_eq!(read(folded), ("tea".into(), "Makes tea.".into(), "Boil."));
        assert_eq!(read("---\nname:\nlicense: x\n---\n"), (String::new(), String::new(), ""));
        assert_eq!(
            read("---\nname: never ended"),
            (String::new(), String::new(), "---\nname: never ended")
        );
        assert_eq!(read("No head."), (String::new(), String::new(), "No head."));
    }

    #[test]
    fn a_line_is_one_line_and_not_longer_than_it_may_be() {
        assert_eq!(one_line(" a\n\u{1b}b\tc ", 10), "a b c");
        assert_eq!(one_line("äöü", 2), "äö…");
        assert_eq!(one_line("äöü", 3), "äöü");
    }
}

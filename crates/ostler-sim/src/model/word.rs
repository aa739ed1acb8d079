//! The `sim:<name>[=<argument>]` words by which a prompt chooses a behaviour.

/// A behaviour word as it stands in a prompt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Word<'a> {
    pub(crate) name: &'a str,
    /// What follows `=`, up to the end of the line.
    pub(crate) line: Option<&'a str>,
}

impl<'a> Word<'a> {
    /// Finds the first word of a prompt.
    ///
    /// `sim:` inside a longer word (`prelim:x`) does not count.
    pub(crate) fn find(prompt: &'a str) -> Option<Self> {
        prompt.match_indices(MARK).find_map(|(at, _)| {
            let before = prompt.get(..at)?.chars().next_back();
            if before.is_some_and(char::is_alphanumeric) {
                return None;
            }
            Self::parse(prompt.get(at + MARK.len()..)?)
        })
    }

    /// Reads `<name>[=<argument>]` at the start of a text.
    pub(crate) fn parse(text: &'a str) -> Option<Self> {
        let end = text.find(|c: char| !c.is_ascii_alphanumeric() && c != '-').unwrap_or(text.len());
        let (name, rest) = text.split_at_checked(end)?;
        let name = name.trim_end_matches('-');
        if name.is_empty() {
            return None;
        }
        let line = rest.strip_prefix('=').and_then(|rest| rest.lines().next());
        Some(Self { name, line })
    }

    /// Returns the argument as a number, leniently: `2000.` is 2000.
    pub(crate) fn number(&self) -> Option<u64> {
        let digits = self.line?;
        let end = digits.find(|c: char| !c.is_ascii_digit()).unwrap_or(digits.len());
        digits.get(..end)?.parse().ok()
    }

    /// Returns the argument up to the first white space.
    pub(crate) fn argument(&self) -> Option<&'a str> {
        self.line?.split_whitespace().next()
    }
}

const MARK: &str = "sim:";

#[cfg(test)]
mod tests {
    use super::*;

    fn found(prompt: &str) -> Option<(&str, Option<&str>)> {
        Word::find(prompt).map(|word| (word.name, word.line))
    }

    #[test]
    fn a_word_is_found_anywhere_in_a_prompt() {
        assert_eq!(found("sim:text"), Some(("text", None)));
        assert_eq!(found("please, (sim:one-tool) now"), Some(("one-tool", None)));
        assert_eq!(found("🎉sim:echo\nmore"), Some(("echo", None)));
        assert_eq!(found("a sim:run=ls -l | wc\nb"), Some(("run", Some("ls -l | wc"))));
    }

    #[test]
    fn other_text_is_not_a_word() {
        for prompt in ["", "hello", "sim: text", "prelim:text", "sim:", "sim:-"] {
            assert_eq!(found(prompt), None, "{prompt:?}");
        }
    }

    #[test]
    fn arguments_end_where_the_reader_expects() {
        let word = Word::find("sim:slow=2000, thanks").expect("a word");
        assert_eq!(word.number(), Some(2000));
        let word = Word::find("sim:write=a/b.txt please").expect("a word");
        assert_eq!(word.argument(), Some("a/b.txt"));
        assert_eq!(Word::find("sim:slow=x").expect("a word").number(), None);
    }
}

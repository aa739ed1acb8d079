//! Patterns that texts of others are held against. Each takes time in proportion to the
//! text, whatever it says, and so much memory at most.

use regex::{Regex, RegexBuilder};
use serde::{Deserialize, Serialize};

/// The longest pattern, in characters, and the most memory that one may take.
const LONGEST: usize = 200;
const MEMORY: usize = 1024 * 1024;

/// A pattern; capitals are as small letters.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub(crate) struct Pattern(Regex);

impl Pattern {
    /// Reads one, or says what is wrong with it.
    pub(crate) fn new(text: &str) -> Result<Self, String> {
        if text.trim().is_empty() {
            return Err("it is empty, and would be found in everything".to_owned());
        }
        // JSON5 makes a backspace of what was to be the edge of a word.
        if text.contains(char::is_control) {
            return Err(format!("{text:?} has a control character; write each backslash twice"));
        }
        if text.chars().count() > LONGEST {
            return Err(format!("it is longer than {LONGEST} characters"));
        }
        let mut builder = RegexBuilder::new(text);
        let built = builder.case_insensitive(true).size_limit(MEMORY).build();
        built.map(Self).map_err(|error| {
            let regex::Error::Syntax(said) = error else {
                return format!("{text:?} would take too much memory");
            };
            // What it says before is a drawing of several lines.
            let why = said.lines().last().unwrap_or_default();
            format!("{text:?} is no pattern: {}", why.trim_start_matches("error: "))
        })
    }

    pub(crate) fn is_in(&self, text: &str) -> bool {
        self.0.is_match(text)
    }
}

impl TryFrom<String> for Pattern {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        Self::new(&text)
    }
}

impl From<Pattern> for String {
    fn from(Pattern(regex): Pattern) -> Self {
        regex.as_str().to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_is_found_in_capitals_or_not_and_where_it_says() {
        let pattern = Pattern::new(r"^bot\b|straße\?$").unwrap();
        for text in ["bot, come", "BOT", "which STRASSE or Straße?"] {
            assert!(pattern.is_in(text), "{text}");
        }
        for text in ["a bot", "bottle", "straße"] {
            assert!(!pattern.is_in(text), "{text}");
        }
    }

    #[test]
    fn what_is_wrong_with_a_pattern_is_told_on_one_line() {
        for (text, why) in [
            ("", "empty"),
            (" ", "empty"),
            ("^bot\u{8}", "each backslash twice"),
            ("(hay", "unclosed group"),
            ("hay(?=oats)", "look-around"),
            (r"(\w{500}){500}", "too much memory"),
            (&"a".repeat(201), "longer than 200"),
        ] {
            let said = Pattern::new(text).unwrap_err();
            assert!(said.contains(why) && said.lines().count() == 1, "{said}");
        }
    }
}

//! How long a text is, as a chat counts. Pure.

/// What counts as one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Measure {
    /// A character.
    Characters,
    /// Sixteen bits: most smileys count twice.
    Utf16,
}

impl Measure {
    /// Returns how long the longest character is.
    pub(crate) fn widest(self) -> usize {
        self.of_char(char::MAX)
    }

    pub(crate) fn of_char(self, c: char) -> usize {
        match self {
            Self::Characters => 1,
            Self::Utf16 => c.len_utf16(),
        }
    }

    pub(crate) fn of(self, text: &str) -> usize {
        text.chars().map(|c| self.of_char(c)).sum()
    }

    /// Whether a text is at most so long. No more of it is read than that takes.
    pub(crate) fn fits(self, text: &str, most: usize) -> bool {
        self.start(text, most).len() == text.len()
    }

    /// Returns the start of a text that is at most so long.
    pub(crate) fn start(self, text: &str, most: usize) -> &str {
        let mut left = most;
        let first_over =
            text.char_indices().find(|(_, c)| match left.checked_sub(self.of_char(*c)) {
                Some(less) => {
                    left = less;
                    false
                }
                None => true,
            });
        first_over.and_then(|(at, _)| text.get(..at)).unwrap_or(text)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_smiley_counts_once_or_twice() {
        assert_eq!((Measure::Characters.of("ä🐎"), Measure::Utf16.of("ä🐎")), (2, 3));
        assert_eq!((Measure::Characters.widest(), Measure::Utf16.widest()), (1, 2));
    }

    proptest! {
        #[test]
        fn a_start_is_as_long_as_it_can_be(text in "[aä🐎]{0,20}", most in 0usize..30) {
            for measure in [Measure::Characters, Measure::Utf16] {
                let start = measure.start(&text, most);
                prop_assert!(measure.of(start) <= most);
                match text.strip_prefix(start).unwrap().chars().next() {
                    Some(next) => prop_assert!(measure.of(start) + measure.of_char(next) > most),
                    None => prop_assert!(measure.fits(&text, most)),
                }
                prop_assert_eq!(measure.fits(&text, most), measure.of(&text) <= most);
            }
        }
    }
}

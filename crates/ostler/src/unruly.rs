//! Characters that let a text be read as something else than it is. Pure.

/// Says whether a character controls something, ends a line, turns the direction of
/// writing, or is not seen at all. What joins others into one sign is none of them:
/// many languages, and smileys, need it.
pub(crate) fn is_unruly(c: char) -> bool {
    c.is_control()
        || matches!(
            c,
            '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}'
                | '\u{180e}' | '\u{200b}' | '\u{200e}' | '\u{200f}'
                | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{3164}'
                | '\u{feff}' | '\u{ffa0}'
                | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}'
                | '\u{e0100}'..='\u{e01ef}'
        )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_and_smileys_of_any_language_are_left_alone() {
        for text in [
            "Grüße, 世界!",
            "سلام\u{200c}ها",
            "👩\u{200d}👩\u{200d}👧",
            "e\u{301}",
            "❤\u{fe0f}",
            "⠤\u{2800}⠤",
        ] {
            assert!(!text.contains(is_unruly), "{text}");
        }
    }

    #[test]
    fn what_turns_hides_or_ends_a_line_is_not() {
        for c in ['\n', '\r', '\u{1b}', '\u{202e}', '\u{2066}', '\u{200b}', '\u{2028}', '\u{e0041}']
        {
            assert!(is_unruly(c), "{c:?}");
        }
    }

    #[test]
    fn a_letter_that_nobody_sees_is_not() {
        for c in ['\u{115f}', '\u{1160}', '\u{3164}', '\u{ffa0}', '\u{17b4}', '\u{17b5}'] {
            assert!(is_unruly(c), "{c:?}");
        }
        for c in ['\u{34f}', '\u{e0100}', '\u{e01ef}'] {
            assert!(is_unruly(c), "{c:?}");
        }
    }
}

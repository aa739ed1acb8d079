//! What a request for permission says where a template has buttons for it. Pure.

/// The longest text of a message that has buttons.
const LONGEST: usize = 1024;
/// What a block begins and ends with.
const FENCE: &str = "```";
/// What stands where a line ended.
const BETWEEN: &str = " · ";
/// So many spaces are not taken.
const SPACES: &str = "     ";

/// Returns a text as a template takes it, on one line; nothing if something that
/// matters would be lost by that: where the lines of a command end, or its spaces.
pub(super) fn variable(text: &str) -> Option<String> {
    let mut parts = Vec::new();
    let mut lines = text.split('\n');
    while let Some(line) = lines.next() {
        if line == FENCE {
            let only = lines.next().filter(|only| !only.is_empty())?;
            if lines.next()? != FENCE {
                return None;
            }
            parts.push(format!("{FENCE}{only}{FENCE}"));
        } else if !line.trim().is_empty() {
            parts.push(line.to_owned());
        }
    }
    let whole = parts.join(BETWEEN);
    let is_taken = !whole.contains(SPACES)
        && !whole.contains(char::is_control)
        && whole.encode_utf16().count() <= LONGEST;
    (is_taken && !whole.is_empty()).then_some(whole)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_is_asked_stands_on_one_line() {
        assert_eq!(
            variable("*Permission to run a command* · Bash\necho hi\n\n*1* Allow\n*2* Deny")
                .unwrap(),
            "*Permission to run a command* · Bash · echo hi · *1* Allow · *2* Deny"
        );
        assert_eq!(variable("a\n```\nrm *_old_*\n```\nb").unwrap(), "a · ```rm *_old_*``` · b");
        assert_eq!(variable("a    b").unwrap(), "a    b");
    }

    #[test]
    fn a_command_is_not_changed_for_it() {
        for text in [
            "a\n```\ncd /\nrm -r x\n```\nb",
            "a\n```\n\n```",
            "a\n```\nx",
            "a\tb",
            "a     b",
            "a\rb",
            "",
            &"x".repeat(1025),
        ] {
            assert_eq!(variable(text), None, "{text:?}");
        }
    }

    proptest! {
        #[test]
        fn whatever_is_taken_twilio_takes(text in "[ab \\t\\n`·]{0,60}") {
            if let Some(taken) = variable(&text) {
                prop_assert!(!taken.contains(['\n', '\t', '\r']) && !taken.contains("     "));
            }
        }
    }
}

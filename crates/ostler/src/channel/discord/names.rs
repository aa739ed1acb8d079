//! Names that come from elsewhere, made harmless: for showing, and for files. Pure.

use crate::unruly::is_unruly;

/// Returns the start of a name without what is unruly in it. It may be empty.
pub(super) fn shown(name: &str, most: usize) -> String {
    let clean: String = name.chars().filter(|c| !is_unruly(*c)).collect();
    clean.trim().chars().take(most).collect::<String>().trim_end().to_owned()
}

/// The longest name of a file, and the longest ending that is kept, in characters.
const LONGEST: usize = 100;
const ENDING: usize = 16;

/// Returns the name that a file has in the chat. It is never empty, and leads
/// nowhere.
pub(super) fn of_file(name: &str) -> String {
    let last = name.rsplit(['/', '\\']).next().unwrap_or("");
    // A quote would end the name in the head of the part that carries the file.
    let clean: String = last.chars().filter(|c| !is_unruly(*c) && *c != '"').collect();
    let clean = clean.trim();
    if clean.trim_matches('.').is_empty() {
        return "file".to_owned();
    }
    if clean.chars().count() <= LONGEST {
        return clean.to_owned();
    }
    match clean.rsplit_once('.') {
        Some((stem, ending)) if ending.chars().count() <= ENDING => {
            let room = LONGEST.saturating_sub(ending.chars().count() + 1);
            let stem: String = stem.chars().take(room).collect();
            format!("{stem}.{ending}")
        }
        Some(_) | None => clean.chars().take(LONGEST).collect(),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_name_is_shown_without_what_turns_or_breaks_lines() {
        for (name, expected) in [
            ("Ada", "Ada"),
            ("  Ada\n Lovelace\t", "Ada Lovelace"),
            ("\u{202e}adA\u{202c}", "adA"),
            ("\u{2066}\u{200f}", ""),
            ("日本語", "日本語"),
        ] {
            assert_eq!(shown(name, 80), expected, "{name:?}");
        }
        assert_eq!(shown(&"ä".repeat(100), 80).chars().count(), 80);
    }

    #[test]
    fn a_file_keeps_its_last_name_and_its_ending() {
        let long = format!("{}.tar", "x".repeat(200));
        let cut = format!("{}.tar", "x".repeat(96));
        for (name, expected) in [
            ("plan.md", "plan.md"),
            ("/etc/passwd", "passwd"),
            ("..\\..\\boot.ini", "boot.ini"),
            ("..", "file"),
            ("", "file"),
            ("a/", "file"),
            ("re\"port\".txt\r\nX: y", "report.txtX: y"),
            ("gpj.\u{202e}exe", "gpj.exe"),
            ("отчёт.pdf", "отчёт.pdf"),
            (&long, &cut),
        ] {
            assert_eq!(of_file(name), expected, "{name:?}");
        }
    }

    proptest! {
        #[test]
        fn no_name_is_too_long_empty_or_unruly(name in any::<String>()) {
            let file = of_file(&name);
            prop_assert!(!file.is_empty() && file.chars().count() <= LONGEST);
            prop_assert!(!file.contains(|c| is_unruly(c) || matches!(c, '/' | '\\' | '"')));
            prop_assert!(!shown(&name, 80).contains(is_unruly));
        }
    }
}

//! How words of others are shown among ours: on one line, and without characters
//! that change how the rest is read.

use crate::unruly::is_unruly;

/// Replaces characters that control how a text is shown, but for line breaks and
/// tabs.
pub(super) fn harmless(text: &str) -> String {
    let replaced = |c: char| match c {
        '\n' | '\t' => c,
        c if is_unruly(c) => char::REPLACEMENT_CHARACTER,
        c => c,
    };
    text.replace("\r\n", "\n").chars().map(replaced).collect()
}

/// Returns a text as one line of at most so many characters.
pub(super) fn line(text: &str, most: usize) -> String {
    // Only so much can be shown, however long it is.
    let text: String = text.chars().take(most.saturating_mul(4).saturating_add(64)).collect();
    shortened(&harmless(&text).split_whitespace().collect::<Vec<_>>().join(" "), most)
}

/// Cuts a text to so many characters, and marks that.
pub(super) fn shortened(text: &str, most: usize) -> String {
    if text.chars().nth(most).is_none() {
        return text.to_owned();
    }
    let kept: String = text.chars().take(most.saturating_sub(1)).collect();
    if most == 0 { String::new() } else { format!("{}…", kept.trim_end()) }
}

/// Leaves out the middle of a text if it is too long, and says how much that is.
pub(super) fn without_middle(text: &str, most: usize) -> String {
    let count = text.chars().count();
    if count <= most {
        return text.to_owned();
    }
    let mark = |left_out: usize| format!("\n… {left_out} characters are left out here …\n");
    let kept = most.saturating_sub(mark(count).chars().count());
    let (head, tail) = (kept - kept / 2, kept / 2);
    let start: String = text.chars().take(head).collect();
    let end: String = text.chars().skip(count - tail).collect();
    format!("{start}{}{end}", mark(count - kept))
}

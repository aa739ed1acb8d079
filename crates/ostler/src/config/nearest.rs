//! Which known word somebody may have meant.

/// Returns the known word that is nearest, if one is near enough to be meant.
pub(crate) fn nearest<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let plain = plain(word);
    let limit = (plain.chars().count() / 3).clamp(1, 3);
    known
        .into_iter()
        .map(|candidate| (distance(&plain, &self::plain(candidate)), candidate))
        .filter(|(distance, _)| *distance <= limit)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

/// Leaves out what differs between the ways to write a name of several words.
fn plain(word: &str) -> String {
    // What is longer than any key is none, and would only cost time.
    let letters = word.chars().filter(|c| !matches!(c, '_' | '-')).take(64);
    letters.flat_map(char::to_lowercase).collect()
}

/// Counts the letters to insert, drop, exchange or swap with their neighbour.
fn distance(from: &str, to: &str) -> usize {
    let to: Vec<char> = to.chars().collect();
    let mut before: Vec<usize> = Vec::new();
    let mut row: Vec<usize> = (0..=to.len()).collect();
    let mut last = None;
    let at = |row: &[usize], index: usize| row.get(index).copied().unwrap_or(usize::MAX / 2);
    for (n, letter) in from.chars().enumerate() {
        let mut next = vec![n + 1];
        for (m, other) in to.iter().enumerate() {
            let exchanged = at(&row, m) + usize::from(letter != *other);
            let mut least = exchanged.min(at(&row, m + 1) + 1).min(at(&next, m) + 1);
            let neighbour = m.checked_sub(1).and_then(|m| to.get(m));
            if last == Some(*other) && neighbour == Some(&letter) {
                least = least.min(at(&before, m.saturating_sub(1)) + 1);
            }
            next.push(least);
        }
        last = Some(letter);
        before = std::mem::replace(&mut row, next);
    }
    row.last().copied().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_is_near_and_another_word_is_not() {
        let known = ["max_turns", "model", "path", "command"];
        for (word, meant) in [
            ("maxTurns", Some("max_turns")),
            ("max-turn", Some("max_turns")),
            ("modle", Some("model")),
            ("comand", Some("command")),
            ("paht", Some("path")),
            ("colour", None),
            ("", None),
        ] {
            assert_eq!(nearest(word, known), meant, "{word}");
        }
        assert_eq!(distance("abcd", "abcd"), 0);
        assert_eq!(distance("abcd", "abdc"), 1);
        assert_eq!(distance("", "abc"), 3);
    }
}

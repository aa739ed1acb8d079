use proptest::{collection::vec, prelude::*, sample::select};

use super::*;

/// The parts that hostile texts are made of.
const PARTS: [&str; 52] = [
    "word",
    " ",
    "  ",
    "\n",
    "\n\n",
    "\r\n",
    "\t",
    "```",
    "```rust\n",
    "\n```\n",
    "~~~~\n",
    "~~~~~\n",
    "\n~~~~\n",
    "- ```sh\n",
    "1. ```\n",
    "> ```\n",
    "\n> ```\n",
    "x ```\n",
    "`` ``` ``",
    "2. item\n",
    "`",
    "``",
    "````` x\n",
    "   ```",
    "    ```",
    "``` a`b\n",
    "~~~ ~~~ x",
    "[text](",
    ")",
    "[",
    "](",
    "`code span`",
    "[a link](https://example.org/a_(b))",
    "https://example.org/some/where?x=1",
    "http",
    "# ",
    "\n## Head\n",
    "- item\n  more\n",
    "👩‍👩‍👧‍👦",
    "👍🏽",
    "🇩🇪",
    "1️⃣",
    "e\u{301}\u{323}",
    "❤️",
    "שלום ",
    "\u{202e}",
    "\0",
    "Sentence. ",
    "長い文。",
    "\u{a0}",
    "looooooooooooooooooooooooooooooooooooooooooong",
    "é",
];

/// The signs among them that are never cut.
const SIGNS: [&str; 6] = ["👩‍👩‍👧‍👦", "👍🏽", "🇩🇪", "1️⃣", "e\u{301}\u{323}", "❤️"];

fn hostile() -> impl Strategy<Value = String> {
    vec(select(&PARTS[..]), 0..120).prop_map(|parts| parts.concat())
}

/// Marks of fences of a bearable length, as many of them cannot be repeated.
fn without_long_marks(text: &str) -> String {
    let mut kept = String::new();
    for c in text.chars() {
        if c == '`' && kept.ends_with(&"`".repeat(8)) {
            kept.push(' ');
        }
        kept.push(c);
    }
    kept
}

/// Whether a block is open at the end of a text, as a chat reads it: one character
/// after the other. Knows nothing of how texts are cut, but that code within a line
/// that has marks of a block in it counts up to some length.
fn is_open(text: &str, most: usize, measure: Measure) -> bool {
    let mut is_open = false;
    for line in text.lines() {
        let mut rest = line;
        while let Some(at) = rest.find('`') {
            let marks = &rest[at..];
            let behind = marks.trim_start_matches('`');
            let n = marks.len() - behind.len();
            rest = behind;
            if n >= 3 {
                is_open ^= n / 3 % 2 == 1;
            } else if !is_open {
                let after = behind_code(behind, n).unwrap_or(behind);
                let code = &marks[..marks.len() - after.len()];
                let is_code = !code.trim_matches('`').contains("```") || measure.fits(code, most);
                rest = if is_code { after } else { behind };
            }
        }
    }
    is_open
}

/// Returns what follows code within a line that so many backticks began.
fn behind_code(mut rest: &str, n: usize) -> Option<&str> {
    loop {
        let marks = &rest[rest.find('`')?..];
        let behind = marks.trim_start_matches('`');
        if marks.len() - behind.len() == n {
            return Some(behind);
        }
        rest = behind;
    }
}

/// Texts of a sort that agents write: every backtick in them but those of blocks has
/// a partner on its line, and no block is left open.
fn sound() -> impl Strategy<Value = String> {
    let parts = [
        "some words and more of them. ",
        "\n",
        "\n\n",
        "- item\n  goes on\n",
        "\n1. first\n2. second\n",
        "[a link](https://example.org/a_(b))",
        "[text](u) ",
        "`let x` ",
        "\n## Head\n",
        "\n> quoted\n",
        "👩\u{200d}👧 ",
        "\n    ~~~~~\n",
    ];
    let code = ["", "sh", "rust", "c++"].map(|name| format!("```{name}\n"));
    let lines = vec(select(&["let a = 1;\n", "  b();\n", "\n", "a `b` \"c\"\n"][..]), 1..12);
    let block = (select(&["\n", "\n- ", "\n1. ", "Run: "][..]), select(code.to_vec()), lines)
        .prop_map(|(before, begin, lines)| format!("{before}{begin}{}```\n", lines.concat()));
    let part = prop_oneof![6 => select(parts.to_vec()).prop_map(str::to_owned), 1 => block];
    vec(part, 0..60).prop_map(|parts| parts.concat())
}

fn texts(text: &str, limit: usize) -> Vec<String> {
    split(text, limit, Measure::Characters).into_iter().map(|piece| piece.text).collect()
}

fn measure() -> impl Strategy<Value = Measure> {
    select(&[Measure::Characters, Measure::Utf16][..])
}

fn squeezed(text: &str) -> String {
    text.chars().filter(|c| !c.is_whitespace()).collect()
}

proptest! {
    #[test]
    fn a_piece_is_never_empty_and_never_over_the_limit(
        text in hostile(), limit in 2usize..300, measure in measure(),
    ) {
        for piece in split(&text, limit, measure) {
            prop_assert!(!piece.text.trim().is_empty());
            prop_assert!(measure.of(&piece.text) <= limit, "{piece:?}");
        }
    }

    #[test]
    fn where_there_is_room_for_nothing_a_piece_is_a_character(text in "[a🐎]{0,9}") {
        for piece in split(&text, 0, Measure::Utf16) {
            prop_assert!(Measure::Utf16.of(&piece.text) <= 2);
        }
    }

    #[test]
    fn any_text_at_all_is_cut_without_a_panic(text in "(?s).{0,200}", limit in 1usize..50) {
        for piece in split(&text, limit, Measure::Characters) {
            prop_assert!(!piece.text.trim().is_empty() && piece.text.chars().count() <= limit);
        }
    }

    #[test]
    fn the_sources_are_the_whole_text(text in hostile(), limit in 1usize..300, measure in measure()) {
        let pieces = split(&text, limit, measure);
        let mut end = 0;
        for piece in &pieces {
            prop_assert_eq!(piece.source.start, end);
            end = piece.source.end;
            let source = &text[piece.source.clone()];
            let shown = squeezed(source);
            prop_assert!(squeezed(&piece.text).contains(&shown), "{source:?} {piece:?}");
        }
        prop_assert_eq!(end, if text.trim().is_empty() { 0 } else { text.len() });
    }

    #[test]
    fn a_piece_differs_from_its_source_by_fences_and_white_space_alone(
        text in "([a-z. #-]{0,9}\n{0,2}){0,60}", limit in 1usize..80,
    ) {
        for piece in split(&text, limit, Measure::Characters) {
            prop_assert_eq!(text[piece.source.clone()].trim(), piece.text.trim());
        }
    }

    #[test]
    fn every_piece_has_whole_blocks(text in hostile(), limit in 40usize..300, measure in measure()) {
        let text = without_long_marks(&text);
        for piece in split_growing(&text, limit, measure) {
            prop_assert!(!is_open(&piece.text, limit / 2, measure), "{piece:?}");
        }
    }

    #[test]
    fn the_marks_of_each_piece_are_even(text in sound(), limit in 80usize..300, measure in measure()) {
        for piece in split(&text, limit, measure) {
            prop_assert_eq!(piece.text.matches("```").count() % 2, 0, "{:?}", piece);
        }
    }

    #[test]
    fn a_text_that_fits_is_one_piece_and_the_same(text in hostile(), measure in measure()) {
        let pieces = split(&text, measure.of(&text), measure);
        let shown = text.trim();
        prop_assert_eq!(pieces.len(), usize::from(!shown.is_empty()));
        for piece in pieces {
            prop_assert_eq!(piece.text.trim(), shown);
            prop_assert!(text.contains(&piece.text));
        }
    }

    #[test]
    fn what_is_added_is_what_closes_and_opens_code(text in sound(), limit in 80usize..300) {
        let pieces = split(&text, limit, Measure::Characters);
        let mut is_open = false;
        let mut language = String::new();
        for piece in &pieces {
            let mut shown = piece.text.clone();
            if is_open {
                let opening = format!("```{language}\n");
                prop_assert!(shown.starts_with(&opening), "{piece:?} {opening:?}");
                shown.drain(..opening.len());
            }
            let source = &text[piece.source.clone()];
            is_open ^= source.matches("```").count() % 2 == 1;
            if let Some(marks) = source.rfind("```").filter(|_| is_open) {
                language = source[marks + 3..].lines().next().unwrap_or_default().to_owned();
            }
            if is_open {
                prop_assert!(shown.ends_with("\n```"), "{piece:?}");
                shown.truncate(shown.len() - 4);
            }
            prop_assert_eq!(shown.trim(), source.trim());
        }
        prop_assert!(!is_open);
    }

    #[test]
    fn a_sign_is_never_cut(text in hostile(), limit in 40usize..200, measure in measure()) {
        let pieces = split(&text, limit, measure);
        for sign in SIGNS {
            for (at, _) in text.match_indices(sign) {
                let is_cut = |end| end > at && end < at + sign.len();
                prop_assert!(!pieces.iter().any(|piece| is_cut(piece.source.end)), "{sign} at {at}");
            }
        }
    }

    #[test]
    fn an_address_that_fits_is_never_cut(
        words in vec("[a-z]{1,12}[.,]?|https://[a-z]{1,8}\\.org/[a-z/?=&%()]{0,20}", 0..60),
        blanks in select(&[" ", "\n", "\n\n", " (", "\n- "][..]), limit in 80usize..200,
    ) {
        let text = words.join(blanks);
        let pieces = split(&text, limit, Measure::Characters);
        let mut at = 0;
        for word in &words {
            if word.starts_with("http") {
                let is_cut = |end| end > at && end < at + word.len();
                prop_assert!(!pieces.iter().any(|piece| is_cut(piece.source.end)), "{word} {pieces:?}");
            }
            at += word.len() + blanks.len();
        }
    }

    #[test]
    fn all_pieces_but_the_last_two_stay_when_the_text_grows(
        text in hostile(), more in hostile(), limit in 1usize..200, measure in measure(),
    ) {
        let before = split(&text, limit, measure);
        let after = split(&(text + &more), limit, measure);
        let kept = before.len().saturating_sub(2);
        prop_assert_eq!(&before[..kept], &after[..kept]);
    }

    #[test]
    fn pieces_also_stay_when_a_text_grows_by_one_character(text in hostile(), limit in 16usize..120, measure in measure()) {
        let ends: Vec<usize> = text.char_indices().map(|(at, _)| at).collect();
        let mut before: Vec<Piece> = Vec::new();
        for end in ends.into_iter().rev().take(40).collect::<Vec<_>>().into_iter().rev() {
            let after = split(&text[..end], limit, measure);
            let kept = before.len().saturating_sub(2);
            prop_assert_eq!(&before[..kept], &after[..kept]);
            before = after;
        }
    }
}

#[test]
fn a_text_that_fits_is_one_piece_as_it_is() {
    assert_eq!(texts("ab\n\ncd", 6), ["ab\n\ncd"]);
    assert_eq!(texts(&"x".repeat(2000), 2000).len(), 1);
    assert!(
        split("", 10, Measure::Characters).is_empty()
            && split(" \n\t\u{a0}", 10, Measure::Characters).is_empty()
    );
}

#[test]
fn paragraphs_come_before_lines_and_lines_before_sentences_and_words() {
    assert_eq!(texts("one two three.\n\nfour\nfive six", 24), ["one two three.", "four\nfive six"]);
    assert_eq!(
        texts("one two. three\nfour five six seven", 20),
        ["one two. three", "four five six seven"]
    );
    assert_eq!(texts("one two three. four five", 20), ["one two three.", "four five"]);
    assert_eq!(texts("one two three four five", 20), ["one two three four", "five"]);
    assert_eq!(texts("abcdefghij", 4), ["abcd", "efgh", "ij"]);
}

#[test]
fn a_heading_goes_with_what_follows_it() {
    let text = "some text that is long\n# Head\nmore text that is long too";
    assert_eq!(texts(text, 40), ["some text that is long", "# Head\nmore text that is long too"]);
}

#[test]
fn an_item_of_a_list_stays_together() {
    let text = "- one is a long item\n- two\n  goes on here\n  and here";
    assert_eq!(texts(text, 40), ["- one is a long item", "- two\n  goes on here\n  and here"]);
}

#[test]
fn a_fence_that_fits_is_not_cut() {
    let text = "Look at this:\n\n```rust\nfn main() {}\nfn other() {}\n```\nThat was it.";
    let expected = ["Look at this:", "```rust\nfn main() {}\nfn other() {}\n```", "That was it."];
    assert_eq!(texts(text, 48), expected);
}

#[test]
fn a_long_fence_is_closed_and_opened_again_with_its_language() {
    let text = format!("```rust\n{}```\nend", "let x = 1;\n".repeat(6));
    let first = "```rust\nlet x = 1;\nlet x = 1;\nlet x = 1;\n```";
    assert_eq!(texts(&text, 48), [first, &format!("{first}\nend")]);
    let crlf = text.replace('\n', "\r\n");
    let pieces = texts(&crlf, 48);
    assert!(pieces.iter().all(|text| !is_open(text, 24, Measure::Characters)), "{pieces:?}");
    assert!(pieces[1].starts_with("```rust\nlet x = 1;\r\n"), "{pieces:?}");
}

/// Checks that a text with one thing in it that looks like code stays as it is where it
/// fits, and in the middle of other text.
#[track_caller]
fn check_as_it_is(text: &str) {
    assert_eq!(texts(text, 2000), [text]);
    let long = format!("{}\n\n{text}\n\n{}", "before ".repeat(40), "after ".repeat(40));
    let pieces = texts(&long, 300);
    assert!(pieces.iter().any(|piece| piece.contains(text)), "{pieces:?}");
    let added = pieces.concat().matches("```").count() - text.matches("```").count();
    assert_eq!(added, 0, "{pieces:?}");
}

#[test]
fn code_is_read_as_such_wherever_it_begins() {
    for text in [
        "1. ```bash\n   npm i\n   ```\n2. Then open it.",
        "- ```sh\n  npm i\n  ```\n- Then open it.",
        "> ```rust\n> fn main() {}\n> ```\nThat is all.",
        "Run: ```sh\nnpm i\n``` and open it.",
        "error here\n    ~~~~~\nand there",
        "It is written `` ``` `` there.",
        "One ```let x = 1;``` and another.",
    ] {
        check_as_it_is(text);
    }
}

#[test]
fn text_after_code_in_a_list_is_no_code() {
    let text = format!("1. ```bash\n   npm i\n   ```\n2. Then {}", "go on. ".repeat(60));
    let pieces = texts(&text, 200);
    assert_eq!(pieces.concat().matches("```").count(), 2, "{pieces:?}");
}

#[test]
fn code_in_a_quotation_is_closed_and_opened_again_in_it() {
    let text = format!("> ```sh\n{}> ```", "> npm i\n".repeat(20));
    let pieces = texts(&text, 80);
    for piece in &pieces {
        assert!(piece.starts_with("> ```sh\n") && piece.ends_with("\n> ```"), "{pieces:?}");
    }
}

#[test]
fn code_that_nobody_closed_is_closed_while_it_grows_alone() {
    let text = "```rust\nlet x = 1;";
    assert_eq!(texts(text, 48), [text]);
    let growing = split_growing(text, 48, Measure::Characters);
    assert_eq!(growing[0].text, format!("{text}\n```"));
}

#[test]
fn a_language_that_is_too_long_is_left_out() {
    let long = format!("```a-very-long-name\n{}```", "text of it\n".repeat(6));
    assert!(texts(&long, 48)[1].starts_with("```\ntext"));
    let words = format!("``` some words\n{}```", "text of it\n".repeat(6));
    assert!(texts(&words, 48)[1].starts_with("```\ntext"));
}

#[test]
fn links_and_code_within_a_line_stay_together() {
    assert_eq!(
        texts("see also [the docs](a/b c) there", 25),
        ["see also", "[the docs](a/b c) there"]
    );
    assert_eq!(texts("one two `a b c d e f` six", 16), ["one two", "`a b c d e f`", "six"]);
}

#[test]
fn the_indent_of_the_next_line_is_kept() {
    assert_eq!(
        texts("some words here\n\n    code it is", 16),
        ["some words here", "    code it is"]
    );
}

#[test]
fn large_texts_take_little_time() {
    let hostile =
        ["[", "`` ` ", "http://", "](", " ", "\n", "x", "```\n", "e\u{301}", "~", "a b. "];
    for part in hostile {
        let text = part.repeat((1 << 20) / part.len());
        assert!(split(&text, 2000, Measure::Characters).len() <= 2100, "{part:?}");
    }
}

#[test]
fn code_within_a_list_is_closed_and_opened_again_too() {
    for indent in ["    ", "\t", "        "] {
        let code: String = (0..20).map(|n| format!("{indent}let a{n} = {n};\n")).collect();
        let text = format!("1. First\n{indent}```rust\n{code}{indent}```\n2. Then");
        let pieces = split(&text, 150, Measure::Characters);
        assert!(pieces.len() > 2);
        for piece in &pieces {
            assert_eq!(piece.text.matches("```").count() % 2, 0, "{piece:?}");
        }
    }
}

#[test]
fn an_indent_that_leaves_no_room_for_a_wide_character_is_left_out() {
    for text in [" 👩\u{200d}👧", " 🐎", "  🐎\n 🐎"] {
        for piece in split(text, 2, Measure::Utf16) {
            assert!(!piece.text.trim().is_empty(), "{text:?}: {piece:?}");
        }
    }
}

//! What is a token, and what is left of the text.

use proptest::{collection::vec, option, prelude::*, sample::select};

use super::*;

#[track_caller]
fn check(text: &str, left: &str, tokens: &[&str]) {
    let taken = take(text);
    assert_eq!((taken.text.as_str(), taken.tokens), (left, strings(tokens)), "{text:?}");
}

fn strings(texts: &[&str]) -> Vec<String> {
    texts.iter().map(|text| (*text).to_owned()).collect()
}

#[test]
fn a_token_is_found_anywhere_in_a_line_and_leaves_no_gap() {
    for (text, left, token) in [
        ("MEDIA:a.png", "", "a.png"),
        ("MEDIA: ./a.png", "", "./a.png"),
        ("MEDIA:\t../up/a", "", "../up/a"),
        ("  MEDIA:/tmp/a", "", "/tmp/a"),
        ("See MEDIA:a.png now", "See now", "a.png"),
        ("See MEDIA:a.png.", "See", "a.png"),
        ("See MEDIA:a.png!", "See!", "a.png"),
        ("MEDIA:x/y here", "here", "x/y"),
        ("one\nMEDIA:a.png\ntwo", "one\ntwo", "a.png"),
        ("one\r\nMEDIA:a.png\r\ntwo\r\n", "one\r\ntwo\r\n", "a.png"),
        ("one \n\n two MEDIA:a.png \n", "one \n\n two \n", "a.png"),
        ("- MEDIA:a.png\n2. MEDIA:\n", "2. MEDIA:\n", "a.png"),
        ("1) MEDIA:a.png\nx", "x", "a.png"),
        ("MEDIA:HTTPS.png", "", "HTTPS.png"),
        ("MEDIA:https://a.b/c?d=e,f#g", "", "https://a.b/c?d=e,f#g"),
        ("MEDIA:HTTPS://A.B/c", "", "HTTPS://A.B/c"),
        ("MEDIA:http://a.b/(c)", "", "http://a.b/(c)"),
        ("MEDIA:./bild(1).png", "", "./bild(1).png"),
        ("MEDIA:./bild(1)", "", "./bild(1)"),
        ("MEDIA:schöne/größe.jpg", "", "schöne/größe.jpg"),
        ("MEDIA:.hidden/x", "", ".hidden/x"),
        ("MEDIA:a:b/c.png", "MEDIA:a:b/c.png", ""),
        ("MEDIA:./a:b.png", "", "./a:b.png"),
    ] {
        let tokens = [token];
        check(text, left, if token.is_empty() { &[] } else { &tokens });
    }
}

#[test]
fn what_stands_around_a_token_goes_with_it() {
    for (text, left) in [
        ("MEDIA:\"my file.png\"", ""),
        ("MEDIA: 'my file.png'", ""),
        ("MEDIA:`my file.png`,", ""),
        ("MEDIA:<my file.png>", ""),
        ("MEDIA:[my file.png].", ""),
        ("MEDIA:“my file.png”", ""),
        ("MEDIA:(<my file.png>)", ""),
        ("`MEDIA:my file.png`", ""),
        ("\"MEDIA: my file.png\"", ""),
        ("(MEDIA:\"my file.png\")", ""),
        ("so (MEDIA:\"my file.png\"), yes", "so yes"),
        ("so (see MEDIA:\"my file.png\") yes", "so (see) yes"),
        ("\"«MEDIA:my file.png»\"", "\"\""),
    ] {
        check(text, left, &["my file.png"]);
    }
    for text in
        ["(MEDIA:a.png)", "[MEDIA:a.png],", "<MEDIA: a.png>", "{MEDIA:a.png}.", "'MEDIA:a.png'"]
    {
        check(text, "", &["a.png"]);
    }
    check(
        "MEDIA:(./bild(1).png), MEDIA:[http://[::1]/a]",
        "",
        &["./bild(1).png", "http://[::1]/a"],
    );
    check("MEDIA:(a.png", "MEDIA:(a.png", &[]);
    check("\"see MEDIA:a.png\", he said", "\"see\", he said", &["a.png"]);
    check("(MEDIA:a.png", "(", &["a.png"]);
}

#[test]
fn a_mark_may_follow_whatever_is_no_part_of_a_word_or_an_address() {
    for (text, left, token) in [
        ("Chart:MEDIA:./x.png", "Chart:", "./x.png"),
        ("Done.MEDIA:./x.png", "Done.", "./x.png"),
        ("see—MEDIA:./x.png", "see—", "./x.png"),
        ("图：MEDIA:./x.png", "图：", "./x.png"),
        (">MEDIA:a.png", ">", "a.png"),
        ("-MEDIA:a.png", "", "a.png"),
        ("|MEDIA:a.png|", "", "a.png"),
        ("| MEDIA:a.png | a chart |", "| | a chart |", "a.png"),
        ("<td>MEDIA:./a.png</td>", "<td></td>", "./a.png"),
        ("MEDIA:./a.png<br>", "<br>", "./a.png"),
    ] {
        check(text, left, &[token]);
    }
    for text in [
        "SOCIALMEDIA:./a.png",
        "SOCIAL_MEDIA:./a.png",
        "图MEDIA:./a.png",
        "#EXT-X-MEDIA:TYPE=AUDIO,URI=\"a/b.m3u8\"",
        "https://a.b/MEDIA:./a.png",
        "https://a.b/?c=MEDIA:./a.png",
        "PATH=$MEDIA:/usr/bin",
        "MEDIA:*.png",
    ] {
        check(text, text, &[]);
    }
}

#[test]
fn emphasis_goes_with_a_token_and_belongs_to_no_name() {
    for text in [
        "**MEDIA:./a.png**",
        "*MEDIA:./a.png*",
        "_MEDIA:./a.png_",
        "__MEDIA:./a.png__",
        "***MEDIA:./a.png***.",
        "- **MEDIA:./a.png**",
        "MEDIA: **./a.png**",
        "MEDIA:_./a.png_,",
        "MEDIA:./a.png**",
        "**MEDIA:./a.png.**",
        "**\"MEDIA:./a.png\"**",
        "`**MEDIA:./a.png**`",
    ] {
        let left = if text.starts_with('`') { "``" } else { "" };
        check(text, left, &["./a.png"]);
    }
    check("so **MEDIA:a.png**, yes", "so yes", &["a.png"]);
    check("**Chart: MEDIA:a.png**", "**Chart:**", &["a.png"]);
    check("MEDIA:_a_b.png", "", &["_a_b.png"]);
}

#[test]
fn signs_of_languages_without_blanks_are_understood() {
    for (text, left, token) in [
        ("「MEDIA:./a.png」", "", "./a.png"),
        ("『MEDIA:my a.png』", "", "my a.png"),
        ("（MEDIA:./a.png）", "", "./a.png"),
        ("MEDIA:「my a.png」。", "", "my a.png"),
        ("MEDIA:./图.png。", "", "./图.png"),
        ("见「MEDIA:./图.png」这个", "见这个", "./图.png"),
        ("图：MEDIA:./图.png，谢谢！", "图：谢谢！", "./图.png"),
        ("MEDIA:./图（1）.png？", "？", "./图（1）.png"),
    ] {
        check(text, left, &[token]);
    }
}

#[test]
fn no_text_takes_for_ever() {
    let n = 1 << 20;
    for piece in [
        ")",
        "MEDIA:( ",
        "MEDIA:(() ",
        "MEDIA:\" ",
        "“MEDIA:x ",
        "MEDIA:x,",
        "MEDIA:a.b ",
        "*MEDIA:a.b*|",
    ] {
        let many = piece.repeat(n / piece.len());
        take(&format!("MEDIA:./x{many}"));
    }
    let blanks = " ".repeat(n);
    take(&format!("{blanks}{}", "MEDIA:a.b ".repeat(n / 10)));
    take(&format!("x{}", format!("MEDIA:{}", " ".repeat(100)).repeat(n / 100)));
}

#[test]
fn a_line_may_have_several() {
    check("MEDIA:a.png MEDIA:b.png", "", &["a.png", "b.png"]);
    check("Files: MEDIA:a.png, MEDIA:b.png.", "Files:", &["a.png", "b.png"]);
    check("a MEDIA:1.png b (MEDIA:2.png) c", "a b c", &["1.png", "2.png"]);
    check("`MEDIA:a.png MEDIA:b.png`", "", &["a.png", "b.png"]);
    check("MEDIA:a.png MEDIA:a.png", "", &["a.png", "a.png"]);
    for text in [
        "MEDIA:./a.png,MEDIA:./b.png",
        "MEDIA:./a.png;MEDIA:./b.png;",
        "|MEDIA:./a.png|MEDIA:./b.png|",
        "MEDIA:./a.png，MEDIA:./b.png",
        "\"MEDIA:./a.png,MEDIA:./b.png\"",
        "MEDIA:\"./a.png\",MEDIA:\"./b.png\"",
        "「MEDIA:./a.png」「MEDIA:./b.png」",
    ] {
        check(text, "", &["./a.png", "./b.png"]);
    }
    check("MEDIA:http://a.b/?c=1,2;3|4", "", &["http://a.b/?c=1,2;3|4"]);
}

#[test]
fn what_only_looks_like_a_token_stays() {
    for text in [
        "no such thing",
        "media:a.png",
        "Media:a.png",
        "MULTIMEDIA:a.png",
        "xMEDIA:a.png",
        "MEDIA:",
        "MEDIA: ",
        "MEDIA: they came in crowds",
        "MEDIA:files",
        "MEDIA:..",
        "MEDIA:/",
        "MEDIA:./",
        "MEDIA:\"\"",
        "MEDIA:file:///etc/passwd",
        "MEDIA:data:image/png;base64,AAAA",
        "MEDIA:javascript:alert/1",
        "MEDIA:ftp://a.b/c",
        "MEDIA:C:/a.png",
        "MEDIA:http://",
        "MEDIA:\"http://a.b/c d\"",
        "MEDIA:\"a\u{7}.png\"",
        "MEDIA:a\u{1b}[31m.png",
        "MEDIA:\"a.png\"b",
        "MEDIA:MEDIA:a.png",
        "MEDIA: MEDIA:a.png",
        "MEDIA:a.png ```",
    ] {
        check(text, text, &[]);
    }
    let long = format!("MEDIA:/{}", "x".repeat(LONGEST));
    check(&long, &long, &[]);
}

#[test]
fn nothing_in_a_fenced_block_is_a_token() {
    for text in [
        "```\nMEDIA:a.png\n```\n",
        "```sh MEDIA:a.png\nMEDIA:a.png\n",
        "  ~~~~\n~~~\nMEDIA:a.png\n```\n~~~~\n",
        "> ```\n> MEDIA:a.png\n> ```",
        "````\n```\nMEDIA:a.png\n```\n````",
        "```\n``` x\nMEDIA:a.png\n```",
        "- ```sh\n  MEDIA:a.png\n  ```",
        "1. ```\n- ```\nMEDIA:a.png\n",
        "> * 2) ~~~\n>      MEDIA:a.png\n>      ~~~",
    ] {
        check(text, text, &[]);
    }
    check("```\nx\n```\nMEDIA:a.png", "```\nx\n```\n", &["a.png"]);
    check("- ```sh\n  ls\n  ```\nMEDIA:a.png", "- ```sh\n  ls\n  ```\n", &["a.png"]);
    check("-```\nMEDIA:a.png", "-```\n", &["a.png"]);
    check("```x``` MEDIA:a.png", "```x```", &["a.png"]);
    check("``\nMEDIA:a.png", "``\n", &["a.png"]);
}

/// Places of every sort that may be named.
const PLACES: [&str; 7] = [
    "a.png",
    "./b",
    "../up/c.pdf",
    "/tmp/d",
    "x/y",
    "https://a.b/c?d=e",
    "http://[::1]:8080/f.png",
];

/// What answers are made of here.
const PIECES: [&str; 46] = [
    "MEDIA:",
    "MEDIA: ",
    " ",
    "\n",
    "\r\n",
    "\t",
    "\"",
    "'",
    "`",
    "```",
    "~~~",
    "(",
    ")",
    "[",
    "]",
    "<",
    ">",
    "“",
    "”",
    ",",
    ".",
    "a.png",
    "./b",
    "/c",
    "x",
    "..",
    "http://a.b/c",
    "ftp://x",
    ":",
    "/",
    "- ",
    "\u{1b}",
    "é",
    "\u{a0}",
    "*",
    "**",
    "_",
    "|",
    ";",
    "「",
    "」",
    "。",
    "，",
    "）",
    "</",
    ",MEDIA:",
];

/// Texts in which there may be tokens of every sort.
fn any_answer() -> impl Strategy<Value = String> {
    let piece = prop_oneof![8 => select(&PIECES[..]).prop_map(str::to_owned), 1 => ".{0,5}"];
    vec(piece, 0..40).prop_map(|pieces| pieces.concat())
}

#[test]
fn what_would_make_another_token_by_being_taken_stays() {
    let text = "`MEDIA:a.png`MEDIA:a.pngMEDIA:";
    assert_eq!(take(text), Taken { text: text.to_owned(), tokens: Vec::new() });
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2048))]

    #[test]
    fn every_token_stood_in_the_text_and_taking_twice_takes_nothing_more(text in any_answer()) {
        let taken = take(&text);
        for token in &taken.tokens {
            prop_assert!(text.contains(token.as_str()), "{:?}", token);
            prop_assert!(!token.contains(char::is_control) && !token.is_empty());
        }
        prop_assert_eq!(taken.tokens.is_empty(), taken.text == text);
        let again = take(&taken.text);
        prop_assert_eq!(&again.tokens, &Vec::<String>::new(), "{:?}", taken.text);
        prop_assert_eq!(again.text, taken.text);
    }

    #[test]
    fn every_token_is_a_link_of_the_web_or_a_path(text in any_answer()) {
        for token in take(&text).tokens {
            prop_assert!(is_url(&token) || scheme(&token).is_none(), "{:?}", token);
            prop_assert!(token.len() <= LONGEST && !token.contains(MARK), "{:?}", token);
            let (first, last) = (token.chars().next().unwrap(), token.chars().next_back().unwrap());
            prop_assert!(!PAIRS.contains(&(first, last)), "{:?}", token);
        }
    }

    #[test]
    fn wherever_tokens_stand_in_a_line_and_whatever_is_around_them_all_are_taken(
        words in vec("[a-z]{1,8}", 1..5), place in select(&PLACES[..]),
        around in option::of(select(&PAIRS[..])), inside: bool,
    ) {
        let token = match around {
            Some((open, close)) if inside => format!("MEDIA:{open}{place}{close}"),
            Some((open, close)) => format!("{open}MEDIA:{place}{close}"),
            None => format!("MEDIA:{place}"),
        };
        let line = words.iter().map(|word| format!("{word} {token}")).collect::<Vec<_>>().join(" ");
        let taken = take(&line);
        prop_assert_eq!(taken.text, words.join(" "));
        prop_assert_eq!(taken.tokens, vec![place.to_owned(); words.len()]);
    }

    #[test]
    fn what_is_left_stood_in_the_text_in_the_same_order(text in any_answer()) {
        let mut all = text.chars();
        prop_assert!(take(&text).text.chars().all(|left| all.any(|c| c == left)));
    }

    #[test]
    fn a_text_without_the_mark_is_returned_exactly(text in "(?s).{0,200}") {
        let text = text.replace(MARK, "");
        prop_assume!(!text.contains(MARK));
        prop_assert_eq!(take(&text), Taken { text, tokens: Vec::new() });
    }

    #[test]
    fn a_path_with_a_blank_between_quotes_comes_back_as_it_was(
        name in "[a-z0-9 _()é-]{0,20}", before in "[a-z ]{0,10}",
    ) {
        let place = format!("./{}x.png", name.trim_start());
        let taken = take(&format!("{before} MEDIA:\"{place}\" after"));
        prop_assert_eq!(taken.tokens, [place]);
    }
}

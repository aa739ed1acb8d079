use std::time::Duration;

use proptest::{collection::vec, option, prelude::*, sample::select};
use serde_json::json;

use super::{
    super::{Attachment, Choices, Content, Look, markup::Markup, measure::Measure},
    *,
};

fn limits(text: usize) -> Limits {
    Limits {
        text,
        edits: None,
        typing: None,
        buttons: 5,
        label: 20,
        files: 2,
        file_bytes: 1 << 20,
        image_bytes: u64::MAX,
        together_bytes: u64::MAX,
        kinds: None,
        measure: Measure::Characters,
        has_captions: true,
        choices: Choices::Buttons,
        markup: Markup::Discord,
        known_again: Some(Duration::from_secs(60)),
    }
}

/// Plays events and returns the draft.
fn play(detail: Detail, events: &[(&str, Value)]) -> Draft {
    let mut draft = Draft::new(&limits(400), detail);
    events.iter().for_each(|(kind, body)| draft.event(kind, body));
    draft
}

fn shown(draft: &Draft) -> Vec<(Slot, String)> {
    draft.view().posts.into_iter().map(|(slot, post)| (slot, post.text)).collect()
}

/// Checks what stands in the only message.
#[track_caller]
fn check(detail: Detail, events: &[(&str, Value)], expected: &str) {
    assert_eq!(shown(&play(detail, events)), [(Slot::Text(0), expected.to_owned())]);
}

fn output(block: &str, text: &str) -> (&'static str, Value) {
    ("output", json!({"text": text, "block": block}))
}

fn tool(id: &str, title: &str) -> (&'static str, Value) {
    ("tool_use", json!({"id": id, "tool": "Bash", "title": title, "input": {}}))
}

fn result(id: &str, is_error: bool) -> (&'static str, Value) {
    ("tool_result", json!({"id": id, "tool": "Bash", "output": "", "is_error": is_error}))
}

fn asked(id: &str, request: &str) -> (&'static str, Value) {
    let options = ["allow", "allow_always", "deny"];
    let body = json!({"id": id, "request": request, "kind": "command", "tool": "Bash",
        "title": "rm -r x", "input": {"command": "rm -r x"}, "options": options,
        "expires_at": "1970-01-01T00:01:00Z"});
    ("permission", body)
}

fn resolved(request: &str) -> (&'static str, Value) {
    let code = "permission_resolved";
    ("status", json!({"code": code, "request": request, "decision": "allow", "by": "user"}))
}

fn complete() -> (&'static str, Value) {
    ("complete", json!({}))
}

#[test]
fn blocks_of_text_stand_apart() {
    check(
        Detail::Normal,
        &[output("0", "Hel"), output("0", "lo"), output("1", "there")],
        "Hello\n\nthere",
    );
}

#[test]
fn a_block_that_is_retracted_is_gone() {
    let retracted = ("status", json!({"code": "retracted", "block": "0"}));
    check(Detail::Normal, &[output("0", "a"), output("1", "b"), retracted], "b");
}

#[test]
fn a_further_attempt_begins_with_nothing() {
    let events = [output("0", "a"), tool("1", "x"), ("started", json!({})), output("0", "b")];
    check(Detail::Normal, &events, "b");
}

#[test]
fn there_is_no_message_before_there_is_something_to_show() {
    let retry = ("status", json!({"code": "retry", "attempt": 1}));
    let thinking = ("thinking", json!({"text": "hm"}));
    let events = [("started", json!({})), retry, thinking, ("unheard_of", json!(3))];
    assert_eq!(shown(&play(Detail::Verbose, &events)), []);
}

#[test]
fn tools_stand_below_the_text_as_the_detail_says() {
    let events = [
        output("0", "Hi"),
        tool("1", "a"),
        result("1", false),
        tool("2", "b"),
        result("2", true),
        tool("3", "c"),
    ];
    check(Detail::Quiet, &events, "Hi");
    check(Detail::Normal, &events, "Hi\n-# 🔧 Bash: b · failed\n-# 🔧 Bash: c");
    let all = "Hi\n-# 🔧 Bash: a · ok\n-# 🔧 Bash: b · failed\n-# 🔧 Bash: c";
    check(Detail::Verbose, &events, all);
    let over = [&events[..], &[complete()]].concat();
    check(Detail::Verbose, &over, "Hi");
    assert!(play(Detail::Verbose, &over).view().is_final);
}

#[test]
fn a_title_cannot_break_out_of_its_line() {
    let events = [tool("1", "echo `x`\n# **b**\u{202e}\u{7}")];
    check(Detail::Normal, &events, "-# 🔧 Bash: echo \\`x\\` \\# \\*\\*b\\*\\*\u{fffd}\u{fffd}");
    let long = play(Detail::Normal, &[tool("1", &"x".repeat(5000))]);
    assert_eq!(shown(&long)[0].1.chars().count(), "-# 🔧 Bash: ".chars().count() + 100);
}

#[test]
fn a_sub_agent_shows_its_tools_alone_and_only_when_asked_for() {
    let nested = ("tool_use", json!({"id": "1", "tool": "Read", "title": "f", "parent": "t"}));
    let events = [("output", json!({"text": "no", "parent": "t"})), nested];
    assert_eq!(shown(&play(Detail::Normal, &events)), []);
    check(Detail::Verbose, &events, "-# 🔧 Read: f");
}

#[test]
fn a_retry_is_told_until_the_next_output() {
    let retry = ("status", json!({"code": "retry", "attempt": 2, "max": 5, "delay_ms": 1500}));
    let events = [output("0", "a"), retry];
    check(Detail::Normal, &events, "a\n-# ⏳ Retry 2 of 5 in 2 s");
    check(Detail::Normal, &[&events[..], &[output("0", "b")]].concat(), "ab");
}

#[test]
fn a_thought_is_the_last_line() {
    let thinking = ("thinking", json!({"text": format!("{}\nend", "x".repeat(200)), "block": "0"}));
    let expected = format!("a\n-# 💭 …{} end", "x".repeat(96));
    check(Detail::Verbose, &[output("0", "a"), thinking], &expected);
}

#[test]
fn a_request_has_its_own_message_and_later_text_stands_below() {
    let mut events = vec![output("0", "a"), tool("1", "rm -r x"), asked("prm_1", "r")];
    let request = "**Permission to run a command** · Bash\nrm -r x";
    let slot = Slot::Asked("prm_1".to_owned());
    let view = play(Detail::Normal, &events).view();
    assert_eq!(view.posts.len(), 2);
    assert_eq!(view.posts[1].0, slot);
    assert_eq!(view.posts[1].1.text, format!("{request}\n-# Expires <t:60:R>"));
    let buttons = view.posts[1].1.buttons.iter();
    let buttons: Vec<_> =
        buttons.map(|one| (one.id.as_str(), one.label.as_str(), one.look)).collect();
    let expected = [
        ("prm_1:allow", "Allow", Look::Good),
        ("prm_1:allow_always", "Allow for this sess…", Look::Plain),
        ("prm_1:deny", "Deny", Look::Bad),
    ];
    assert_eq!(buttons, expected);
    events.extend([resolved("r"), output("0", "b")]);
    let view = play(Detail::Quiet, &events).view();
    assert_eq!(view.posts[1].1.text, format!("{request}\n-# ✅ Allowed by a person"));
    assert!(view.posts[1].1.buttons.is_empty());
    assert_eq!(view.posts[2], (Slot::Text(16), Post { text: "b".to_owned(), ..Post::default() }));
}

#[test]
fn a_decision_is_about_the_last_open_request_of_that_name() {
    let events =
        [asked("prm_1", "r"), resolved("r"), asked("prm_2", "r"), complete(), resolved("r")];
    let texts = shown(&play(Detail::Normal, &events[..4]));
    assert!(texts[0].1.contains("Allowed") && texts[1].1.ends_with("-# No longer open"));
    let texts = shown(&play(Detail::Normal, &events));
    assert!(texts[1].1.contains("Allowed"));
}

#[test]
fn a_request_without_an_id_is_not_shown() {
    assert_eq!(shown(&play(Detail::Normal, &[("permission", json!({"request": "r"}))])), []);
}

/// Returns the messages of a request to run a command, or of another kind.
fn asked_for(kind: &str, command: &str, limits: &Limits) -> Vec<(Slot, Post)> {
    let input = json!({"command": command, "timeout": 5});
    let body = json!({"id": "p", "kind": kind, "tool": "Bash", "title": "x", "input": input});
    let mut draft = Draft::new(limits, Detail::Normal);
    draft.event("permission", &body);
    draft.view().posts
}

/// What a chat takes that has numbers for choices, and pictures for files.
fn by_numbers(text: usize) -> Limits {
    let (choices, markup) = (Choices::Numbers, Markup::WhatsApp);
    let kinds: Option<&[&str]> = Some(&["image/png"]);
    Limits { measure: Measure::Utf16, choices, markup, kinds, ..limits(text) }
}

#[test]
fn a_long_command_is_shown_with_its_start_and_its_end_and_is_whole_in_a_file() {
    let command = format!("start ```` {} end\u{202e}", "x".repeat(1000));
    let posts = asked_for("command", &command, &limits(400));
    let [(Slot::Asked(_), Post { text, buttons, files })] = posts.as_slice() else {
        panic!("{posts:?}")
    };
    assert!(text.contains("\n```\nstart ˋˋˋ`") && text.contains("characters are left out here"));
    assert!(text.ends_with("}\n```\n-# All of it is in the file. Read it before you allow it."));
    assert_eq!(buttons.len(), 2);
    let whole = format!("{}\n\n{{\n  \"timeout\": 5\n}}", command.replace('\u{202e}', "\u{fffd}"));
    let file = Attachment {
        name: "request.txt".to_owned(),
        content: Content::Bytes(whole.as_bytes().into()),
    };
    assert_eq!(*files, [file]);
}

#[test]
fn a_command_that_its_title_shows_is_not_said_again_and_the_rest_stands_on_a_line() {
    let asked = |input: Value| {
        let body = json!({"id": "p", "kind": "command", "tool": "Bash", "title": "rm -r x", "input": input});
        let mut draft = Draft::new(&by_numbers(1600), Detail::Normal);
        draft.event("permission", &body);
        draft.view().posts[0].1.text.clone()
    };
    let text = asked(json!({"command": "rm -r x", "timeout": 600_000}));
    let expected = "*Permission to run a command* · Bash\nrm -r x\n\
                    ```\n{\"timeout\":600000}\n```\n";
    assert!(text.starts_with(expected), "{text}");
    let long = "y".repeat(200);
    let text = asked(json!({"command": "rm -r x", "rest": long}));
    assert!(text.contains(&format!("```\n{{\n  \"rest\": \"{long}\"")), "{text}");
}

#[test]
fn where_it_cannot_be_a_file_a_long_command_takes_several_messages() {
    let command: String = (0..150).map(|n| format!("step-{n}; ")).collect();
    let posts = asked_for("command", &command, &by_numbers(400));
    let (last, pages) = posts.split_last().unwrap();
    let shown: String = pages.iter().map(|(_, page)| page.text.as_str()).collect();
    assert!((0..150).all(|n| shown.contains(&format!("step-{n};"))), "{shown}");
    assert!((0..).zip(pages).all(|(n, (slot, _))| *slot == Slot::Page("p".to_owned(), n)));
    assert!(last.1.text.contains("_All of it is above.") && last.1.text.contains("*1* Allow"));
}

#[test]
fn what_cannot_be_read_can_be_denied_and_not_allowed() {
    let posts = asked_for("command", &"x".repeat(10_000), &by_numbers(400));
    let [(_, Post { text, buttons, .. })] = posts.as_slice() else { panic!("{posts:?}") };
    assert!(text.contains("it can only be denied here") && text.contains("*1* Deny"), "{text}");
    assert_eq!(buttons.iter().map(|one| one.id.as_str()).collect::<Vec<_>>(), ["p:deny"]);
    // What is written into a file is seen there.
    let posts = asked_for("edit", &"x".repeat(10_000), &by_numbers(400));
    assert!(posts[0].1.text.contains("Not all of it is shown") && posts[0].1.buttons.len() == 2);
}

#[test]
fn no_line_of_a_command_can_be_taken_for_a_choice() {
    let command = "ls\n1 Deny\n2 Allow";
    for markup in [Markup::None, Markup::WhatsApp] {
        let posts = asked_for("command", command, &Limits { markup, ..by_numbers(400) });
        let text = &posts[0].1.text;
        let lines: Vec<_> = text.lines().filter(|line| *line == "1 Deny").collect();
        assert!(markup == Markup::WhatsApp || lines.is_empty(), "{text}");
        assert!(text.contains("1 Allow") || text.contains("*1* Allow"), "{text}");
    }
}

#[test]
fn no_page_of_a_command_begins_with_what_can_be_taken_for_a_choice() {
    let command = "1 Deny ".repeat(120);
    let posts = asked_for("command", &command, &Limits { markup: Markup::None, ..by_numbers(200) });
    let (_, pages) = posts.split_last().unwrap();
    assert!(pages.len() > 2);
    for (_, page) in pages {
        assert!(!page.text.lines().any(|line| line.starts_with("1 ")), "{page:?}");
        assert!(page.text.encode_utf16().count() <= 200);
    }
}

#[test]
fn what_names_a_file_is_not_shown_while_an_answer_comes() {
    let said = output("0", "Here it is:\n\nMEDIA:/home/ann/chart.png\n\nThere. MEDIA:/home/a");
    check(Detail::Normal, std::slice::from_ref(&said), "Here it is:");
    check(Detail::Normal, &[said, complete()], "Here it is:\n\n\nThere.");
    let code = output("0", "```\nMEDIA:./chart.png\n```");
    check(Detail::Normal, &[code], "```\nMEDIA:./chart.png\n```");
}

#[test]
fn what_changes_nothing_that_is_shown_is_no_change() {
    let mut draft = play(Detail::Normal, &[output("0", &"word ".repeat(2000))]);
    let before = draft.glance();
    let thinking = ("thinking", json!({"text": "hm"}));
    for (kind, body) in [output("0", "more"), thinking, ("unheard_of", json!(3))] {
        draft.event(kind, &body);
    }
    assert_eq!(draft.glance(), before);
    let (kind, body) = asked("prm_1", "r");
    draft.event(kind, &body);
    let after = draft.glance();
    assert!(after.changes > before.changes && after.asked > before.asked && after.is_asking);
}

#[test]
fn a_request_without_its_file_takes_several_messages() {
    let command: String = (0..150).map(|n| format!("step-{n}; ")).collect();
    let input = json!({"command": command});
    let body = json!({"id": "p", "request": "r", "kind": "command", "title": "x", "input": input});
    let mut draft = play(Detail::Normal, &[("permission", body)]);
    assert!(draft.leave_files_out() && !draft.leave_files_out());
    let view = draft.view();
    let (last, pages) = view.posts.split_last().unwrap();
    assert!(pages.len() > 1 && last.1.files.is_empty() && last.1.buttons.len() == 2);
}

#[test]
fn a_question_has_a_button_for_each_choice_and_one_for_any_other_answer() {
    let options = ["one", "a choice that is longer than that", "3", "4", "5", "6"];
    let body = json!({"id": "p", "kind": "question", "title": "Which?", "options": options});
    let view = play(Detail::Normal, &[("permission", body)]).view();
    let buttons = view.posts[0].1.buttons.iter();
    let buttons: Vec<_> = buttons.map(|one| (one.id.as_str(), one.label.as_str())).collect();
    assert_eq!(buttons[..2], [("p:option:0", "one"), ("p:option:1", "a choice that is lo…")]);
    assert_eq!((buttons.len(), buttons[4]), (5, ("p:text", "Answer…")));
    assert!(view.posts[0].1.text.contains("2. a choice that is longer than that"));
}

fn any_event() -> impl Strategy<Value = (&'static str, Value)> {
    let kinds = [
        "output",
        "output",
        "output",
        "thinking",
        "tool_use",
        "tool_result",
        "permission",
        "status",
        "started",
    ];
    let codes = ["retry", "retracted", "permission_resolved", "warning"];
    let part = select(
        &[
            "```rust\n",
            "words and words. ",
            "\n\n",
            "`",
            "🐎",
            "~~~\n",
            "\u{202e}",
            "👩‍👧",
            "x",
            "# A\n",
        ][..],
    );
    let text =
        (vec(part, 0..8), 1usize..60).prop_map(|(parts, times)| parts.concat().repeat(times));
    let fields = (
        text,
        "[ab]",
        option::weighted(0.1, "p"),
        select(codes.to_vec()),
        "prm_[ab]",
        any::<bool>(),
    );
    (select(kinds.to_vec()), fields).prop_map(
        |(kind, (text, name, parent, code, id, is_question))| {
            let asked = if is_question { "question" } else { "command" };
            let id = if kind == "permission" { id } else { name.clone() };
            let body = json!({"text": text, "block": name, "id": id, "tool": text, "title": text,
            "request": name, "code": code, "parent": parent, "kind": asked, "decision": "deny",
            "by": text, "options": [text, "allow", "deny"], "input": {"command": text, "a": 1},
            "attempt": 1, "expires_at": "2026-01-01T00:00:00Z"});
            (kind, body)
        },
    )
}

proptest! {
    #[test]
    fn no_message_is_ever_over_its_limits_or_empty(
        events in vec(any_event(), 0..30), size in prop_oneof![1usize..60, 200usize..500],
        detail in select(&[Detail::Quiet, Detail::Normal, Detail::Verbose][..]), is_over: bool,
        measure in select(&[Measure::Characters, Measure::Utf16][..]),
        markup in select(&[Markup::Discord, Markup::WhatsApp, Markup::None][..]),
    ) {
        let limits = Limits { measure, markup, ..limits(size.max(measure.widest())) };
        let mut draft = Draft::new(&limits, detail);
        for (kind, body) in events.iter().chain(is_over.then_some(&complete())) {
            draft.event(kind, body);
            let view = draft.view();
            for (at, (slot, post)) in view.posts.iter().enumerate() {
                prop_assert!(measure.of(&post.text) <= limits.text, "{slot:?} {post:?}");
                prop_assert!(!post.text.trim().is_empty());
                prop_assert!(post.buttons.len() <= limits.buttons);
                prop_assert!(post.buttons.iter().all(|one| one.label.chars().count() <= limits.label));
                prop_assert!(view.posts[..at].iter().all(|(other, _)| other != slot));
                prop_assert!(!view.is_final || post.buttons.is_empty());
            }
        }
        prop_assert_eq!(draft.view().is_final, is_over);
    }

    #[test]
    fn pages_of_a_draft_are_those_of_its_text(
        parts in vec("([a-z]{1,9}[ .\n]){0,40}", 0..30),
    ) {
        let mut draft = Draft::new(&limits(200), Detail::Quiet);
        parts.iter().for_each(|part| draft.event("output", &json!({"text": part, "block": "0"})));
        let pages = split(&parts.concat(), 200, Measure::Characters);
        let view = draft.view();
        prop_assert_eq!(view.posts.len(), pages.len().min(PAGES));
        let kept = if pages.len() > PAGES { PAGES - 1 } else { pages.len() };
        for ((_, post), page) in view.posts.iter().zip(&pages).take(kept) {
            prop_assert_eq!(&post.text, &page.text);
        }
        prop_assert!(pages.len() <= PAGES || view.posts[PAGES - 1].1.text.ends_with(MORE));
    }

    #[test]
    fn an_answer_is_never_over_the_limits_and_keeps_all_its_files(
        text in "(?s)([a-z `]{1,30}\n?){0,80}", count in 0usize..7, over in option::of(0usize..5),
        size in 20usize..200,
    ) {
        let file = |n: usize| Attachment { name: n.to_string(), content: Content::Text(String::new()) };
        let files: Vec<_> = (0..count).map(file).collect();
        let long = over.map_or(Long::Split, |over| Long::File { over });
        let limits = limits(size);
        let posts = reply(&text, files.clone(), long, &limits);
        let mut kept: Vec<_> = posts.iter().flat_map(|post| post.files.clone()).collect();
        for post in &posts {
            prop_assert!(post.text.chars().count() <= size && post.files.len() <= limits.files);
            prop_assert!(!post.text.is_empty() || !post.files.is_empty());
        }
        if kept.first().is_some_and(|file| file.name == "answer.md") {
            prop_assert_eq!(kept.remove(0).content, Content::Text(text));
        }
        prop_assert_eq!(kept, files);
    }
}

proptest! {
    #[test]
    fn where_wide_characters_count_twice_no_message_is_too_long_and_nothing_is_lost(
        text in vec(select(&["a", "ä", "🐎", "e\u{301}", "👩‍👩‍👧", "🇩🇪", "👍🏽"][..]), 1..400),
        size in 60usize..300,
    ) {
        let text = text.concat();
        let limits = Limits { measure: Measure::Utf16, ..limits(size) };
        let posts = reply(&text, vec![], Long::Split, &limits);
        for post in &posts {
            prop_assert!(post.text.encode_utf16().count() <= size, "{post:?}");
        }
        let all: String = posts.into_iter().map(|post| post.text).collect();
        prop_assert_eq!(all, text);
    }

    #[test]
    fn one_smiley_costs_no_more_than_its_own_place(at in 0usize..1598) {
        let mut text = "a".repeat(1598);
        text.insert(at, '🐎');
        let limits = Limits { measure: Measure::Utf16, ..limits(1600) };
        prop_assert_eq!(reply(&text, vec![], Long::Split, &limits), [Post::of(text)]);
    }

    #[test]
    fn what_there_is_of_an_answer_that_failed_is_not_too_long_either(
        text in "[a🐎 ]{0,900}", size in 60usize..300,
    ) {
        let limits = Limits { measure: Measure::Utf16, ..limits(size) };
        let mut draft = Draft::new(&limits, Detail::Quiet);
        draft.event("output", &json!({ "block": "b", "text": text }));
        draft.event("complete", &json!({}));
        for (_, post) in draft.view().posts {
            prop_assert!(post.text.encode_utf16().count() <= size, "{post:?}");
        }
    }

    #[test]
    fn what_is_asked_by_numbers_is_never_too_long(
        title in any::<String>(), command in "[a🐎\\n`*]{0,900}", size in 300usize..1600,
    ) {
        let limits = by_numbers(size);
        let mut draft = Draft::new(&limits, Detail::Quiet);
        let asked = json!({
            "id": "perm_1", "request": "r", "kind": "command", "title": title,
            "input": { "command": command }, "options": ["allow", "allow_always", "deny"],
            "expires_at": "2026-01-01T00:00:00Z",
        });
        draft.event("permission", &asked);
        let view = draft.view();
        for (_, post) in &view.posts {
            prop_assert!(post.text.encode_utf16().count() <= size, "{post:?}");
        }
        let text = &view.posts.last().unwrap().1.text;
        prop_assert!(text.contains("*3* Deny"), "{text}");
    }
}

#[test]
fn a_chat_that_takes_no_texts_as_files_gets_so_many_pages_and_a_word_about_the_rest() {
    let text = "word ".repeat(1000);
    let pictures = Limits { kinds: Some(&["image/png"]), ..limits(50) };
    let posts = reply(&text, vec![], Long::Split, &pictures);
    assert_eq!(posts.len(), 51);
    assert!(posts[50].text.contains("The rest of the answer"), "{posts:?}");
    assert!(posts.iter().all(|post| post.files.is_empty()));
}

#[test]
fn an_answer_without_text_says_so_unless_there_are_files() {
    assert_eq!(reply(" \n", vec![], Long::Split, &limits(400))[0].text, "-# no text");
    let file = Attachment { name: "a".to_owned(), content: Content::Text("b".to_owned()) };
    let posts = reply("", vec![file.clone(), file.clone(), file], Long::Split, &limits(400));
    assert_eq!(posts.iter().map(|post| post.files.len()).collect::<Vec<_>>(), [2, 1]);
}

#[test]
fn a_long_answer_becomes_a_file_with_its_start_shown() {
    let text = "word ".repeat(1000);
    assert_eq!(reply(&text, vec![], Long::Split, &limits(400)).len(), 13);
    let posts = reply(&text, vec![], Long::File { over: 3 }, &limits(400));
    assert_eq!((posts.len(), posts[0].files[0].name.as_str()), (1, "answer.md"));
    assert!(posts[0].text.ends_with("word\n-# The whole answer is attached."));
    assert_eq!(reply(&text, vec![], Long::Split, &limits(50)).len(), 1);
    let small = Limits { file_bytes: 3000, ..limits(50) };
    let names: Vec<_> =
        reply(&text, vec![], Long::Split, &small)[0].files.iter().map(|f| f.name.clone()).collect();
    assert_eq!(names, ["answer-1.md", "answer-2.md"]);
}

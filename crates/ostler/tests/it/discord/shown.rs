//! What is shown of a turn: how often it changes, which tools, and whom it calls.

use std::time::Duration;

use serde_json::json;

use super::rig::Rig;
use crate::discord_double::ChangeKind;

#[test]
fn an_answer_that_mentions_everybody_calls_nobody() {
    let rig = Rig::start();
    rig.ask("sim:echo=@everyone");
    let answer = rig.wait_for_text("You said @everyone");
    let allowed = answer.allowed_mentions.unwrap();
    assert_eq!(allowed["parse"], json!([]), "{allowed}");
}

#[test]
fn nothing_that_is_shown_calls_anybody_whoever_is_mentioned() {
    let rig = Rig::start();
    let role = rig.discord.give_role(rig.guild, rig.bob);
    let names = [
        "@everyone".to_owned(),
        "@here".to_owned(),
        format!("<@&{role}>"),
        format!("<@{}>", rig.bob),
    ];
    let echo: String = names.iter().map(|name| format!(" sim:echo={name}x")).collect();
    // A draft first, and changes of it.
    rig.ask(&format!("sim:slow=500 tell me{echo}"));
    let answer = rig.wait_for_answer(rig.channel);
    let changes = rig.discord.changes(rig.channel);
    let n_edits = changes.iter().filter(|it| it.kind == ChangeKind::Edited).count();
    assert!(n_edits > 1, "{changes:#?}");
    for name in &names {
        assert!(answer.content.contains(name.as_str()), "{name}: {}", answer.content);
    }
    // For all to read, before there is an answer.
    let asked = rig.slash(rig.channel, rig.ann, "ask", json!({ "prompt": format!("once{echo}") }));
    assert!(rig.told(asked).contains("@everyone"));
    rig.wait_for("another answer", rig.channel, |said| {
        said.iter().filter(|it| it.content.ends_with("characters.")).count() == 2
    });
    // A note.
    rig.ask(&format!("/agent {}", names[0]));
    rig.wait_for("what is said of the agent", rig.channel, |said| said.len() == 4);
    // By itself.
    let to = format!("discord:{}", rig.channel);
    let text = format!("news for {}", names.concat());
    let outcome = rig.place.run(&["send", "--from-agent", "--to", &to, &text]);
    assert_eq!(outcome.code, Some(0), "{}", outcome.stderr);
    rig.wait_for_text("news for");
    let pings = rig.discord.pings();
    assert!(pings.is_empty(), "{pings:#?}");
}

#[test]
fn changes_of_a_message_are_apart_as_far_as_discord_allows() {
    let rig = Rig::start();
    // It could be changed twenty times.
    rig.ask(&format!("sim:slow=400 tell me {}", "sim:echo=more ".repeat(20)));
    rig.wait_for_answer(rig.channel);
    let changes = rig.discord.changes(rig.channel);
    let edits: Vec<_> = changes.iter().filter(|it| it.kind == ChangeKind::Edited).collect();
    // What is said at the end does not wait. The others leave 1.2 seconds apart, of
    // which the way of the first and of the last may take something.
    let [first, .., last, _] = &edits[..] else { panic!("{changes:#?}") };
    let n_pauses = u32::try_from(edits.len() - 2).unwrap();
    let took = last.at - first.at;
    assert!(n_pauses >= 2 && took >= n_pauses * Duration::from_secs(1), "{took:?}: {changes:#?}");
}

#[test]
fn what_the_agent_says_in_the_end_stands_there_whatever_was_shown_before() {
    let rig = Rig::with(|rig, settings| {
        // It says otherwise in the end than while it spoke.
        let end = "/\"type\":\"\\(assistant\\|result\\)\"/s/playing claude/changing its mind/";
        let ostler = env!("CARGO_BIN_EXE_ostler").replace('\'', r"'\''");
        let script =
            format!("#!/bin/sh\n'{ostler}' scripted --as claude -- \"$@\" | sed -u '{end}'\n");
        settings["agent"]["path"] = json!(rig.place.program("fickle-claude", &script));
    });
    rig.ask("sim:slow=500 tell me all about it");
    let answer = rig.wait_for_text("changing its mind; no model was asked.");
    assert!(!answer.content.contains("playing claude"), "{}", answer.content);
    let changes = rig.discord.changes(rig.channel);
    let is_shown = |text: &str| changes.iter().any(|change| change.content.contains(text));
    assert!(is_shown("playing claude"), "{changes:#?}");
    assert_eq!(rig.n_sent(), 1);
}

#[test]
fn who_wants_to_see_more_or_less_of_a_turn_says_so() {
    let rig = Rig::with(|_, settings| settings["discord"]["detail"] = json!("quiet"));
    let mut n_before = 0;
    let mut is_shown = |prompt: &str| {
        rig.ask(prompt);
        rig.wait_for("an answer", rig.channel, |said| {
            said.last().is_some_and(|it| it.content.ends_with("characters."))
        });
        let changes = rig.discord.changes(rig.channel).split_off(n_before);
        n_before += changes.len();
        changes.iter().any(|change| change.content.contains("🔧 Bash: echo hi"))
    };
    let prompt = "sim:tool sim:slow=400 and tell me all about it";
    assert!(!is_shown(prompt));
    for (word, told, shows) in
        [("/verbose on", "Verbose is on.", true), ("/verbose off", "Verbose is off.", false)]
    {
        rig.ask(word);
        rig.wait_for_text(told);
        assert_eq!(is_shown(prompt), shows, "{word}");
    }
}

#[test]
fn tools_are_shown_while_they_matter_and_not_at_the_end() {
    let rig = Rig::start();
    rig.ask("sim:tool sim:slow=400 and tell me all about it");
    let answer = rig.wait_for_answer(rig.channel);
    let is_shown = |line: &str| {
        let changes = rig.discord.changes(rig.channel);
        changes.iter().any(|change| change.content.contains(line))
    };
    assert!(is_shown("🔧 Bash: echo hi"), "{:#?}", rig.discord.changes(rig.channel));
    assert!(!answer.content.contains("🔧"), "{}", answer.content);
}

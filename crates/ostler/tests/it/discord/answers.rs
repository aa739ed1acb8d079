//! What people see of an answer.

use serde_json::json;

use super::rig::Rig;
use crate::{
    discord_double::ChangeKind,
    support::{LIMIT, files_below},
};

#[test]
fn who_mentions_the_bot_sees_it_type_and_then_its_answer() {
    let rig = Rig::start();
    let asked = rig.ask("hello");
    let answer = rig.wait_for_text("Your prompt has");
    assert_eq!(answer.reply_to, Some(asked));
    let changes = rig.discord.changes(rig.channel);
    assert_eq!(changes[0].kind, ChangeKind::Typing, "{changes:?}");
    assert_eq!(rig.n_sent(), 1);
}

#[test]
fn an_answer_grows_by_changes_of_its_message() {
    let rig = Rig::start();
    rig.ask("sim:tool sim:slow=400 and tell me all about it");
    let answer = rig.wait_for_text("Your prompt has");
    let changes = rig.discord.changes(rig.channel);
    let texts: Vec<&str> = changes
        .iter()
        .filter(|change| change.message == answer.id)
        .map(|change| change.content.as_str())
        .collect();
    assert!(texts.len() > 2, "{changes:?}");
    assert_eq!(texts.last().unwrap(), &answer.content);
    assert_eq!(rig.n_sent(), 1);
}

#[test]
fn a_conversation_goes_on_and_other_channels_have_their_own() {
    let rig = Rig::start();
    rig.ask("sim:history one");
    rig.wait_for_text("so far: 1.");
    rig.ask("sim:history two");
    rig.wait_for_text("so far: 2.");
    let other = rig.discord.channel(rig.guild, "barn");
    rig.discord.say(other, rig.ann, &rig.mentioning("sim:history three"));
    let said = rig.wait_for("an answer in the barn", other, |said| !said.is_empty());
    rig.discord.wait_for("its end", LIMIT, |world| {
        world.messages(other).iter().any(|it| it.content.contains("so far: 1.")).then_some(())
    });
    assert_eq!(said.len(), 1);
}

#[test]
fn twenty_messages_during_a_turn_are_answered_in_their_order() {
    let rig = Rig::with(|rig, settings| {
        settings["discord"]["messages_per_minute"] = json!(1000);
        settings["agent"]["path"] = json!(rig.patient_agent());
    });
    // Discord would let it say five things in five seconds.
    rig.discord.relax();
    rig.ask("sim:echo=m0");
    rig.wait_for_agent();
    for number in 1..=20 {
        rig.ask(&format!("sim:echo=m{number}"));
    }
    // All of them have come.
    let status = rig.slash(rig.channel, rig.bob, "status", json!({}));
    let told = rig.told(status);
    assert!(told.contains("20"), "{told}");
    assert_eq!(rig.n_sent(), 0);
    rig.release_agent();
    let said = rig.wait_for("the last answer", rig.channel, |said| {
        said.iter().any(|message| message.content.contains("You said m20."))
    });
    let heard: Vec<String> = said
        .iter()
        .filter_map(|message| {
            let (_, rest) = message.content.split_once("You said ")?;
            Some(rest.split_once('.')?.0.to_owned())
        })
        .collect();
    let expected: Vec<String> = (0..=20).map(|number| format!("m{number}")).collect();
    assert_eq!(heard, expected);
}

#[test]
fn a_word_stops_what_runs_at_once() {
    let rig = Rig::start();
    rig.ask("sim:hang");
    rig.discord
        .wait_for("typing", LIMIT, |world| (!world.changes(rig.channel).is_empty()).then_some(()));
    rig.ask("stop");
    rig.wait_for_text("Stopped");
    rig.ask("sim:echo=after");
    rig.wait_for_text("You said after.");
}

#[test]
fn a_long_answer_is_a_file_if_that_is_wanted() {
    let rig = Rig::with(|_, settings| settings["discord"]["long_answers"] = json!("file"));
    rig.ask(&format!("sim:echo={}", "word-".repeat(1000)));
    let said = rig.wait_for("an answer with a file", rig.channel, |said| {
        said.iter().any(|message| !message.attachments.is_empty())
    });
    let [answer] = &said[..] else { panic!("{said:?}") };
    let [file] = &answer.attachments[..] else { panic!("{answer:?}") };
    let text = std::str::from_utf8(file.bytes()).unwrap();
    assert_eq!(text.matches("word").count(), 1000, "{text}");
    assert!(text.trim_end().ends_with("characters."), "{text}");
}

#[test]
fn who_waits_long_is_shown_again_and_again_that_somebody_is_at_work() {
    let rig = Rig::with(|_, settings| {
        let reply = json!({ "typingIntervalSeconds": 1, "agent": { "kind": "claude" } });
        settings["inbound"] = json!({ "reply": reply });
    });
    rig.ask("sim:hang");
    rig.discord.wait_for("signs of typing", LIMIT, |world| {
        let changes = world.changes(rig.channel).iter();
        (changes.filter(|change| change.kind == ChangeKind::Typing).count() >= 4).then_some(())
    });
}

#[test]
fn what_an_agent_says_by_itself_goes_to_the_channel_for_that() {
    let rig = Rig::with(|rig, settings| {
        settings["discord"]["output_channel"] = json!(rig.channel.to_string());
    });
    let outcome = rig.place.run(&["send", "--from-agent", "the build is done"]);
    assert_eq!(outcome.code, Some(0), "{}", outcome.stderr);
    rig.wait_for_text("the build is done");
    let to = format!("discord:{}", rig.channel);
    let outcome = rig.place.run(&["send", "--from-agent", "--to", &to, "and so are the tests"]);
    assert_eq!(outcome.code, Some(0), "{}", outcome.stderr);
    rig.wait_for_text("and so are the tests");
}

#[test]
fn a_long_answer_takes_several_messages_and_none_is_too_long() {
    let rig = Rig::start();
    rig.ask(&format!("sim:echo={}", "word-".repeat(1000)));
    let said = rig.wait_for("the end of a long answer", rig.channel, |said| {
        said.last().is_some_and(|message| message.content.contains("Your prompt has"))
    });
    assert!(said.len() >= 3, "{}", said.len());
    assert!(said.iter().all(|message| message.content.chars().count() <= 2000));
    let all: String = said.iter().map(|message| message.content.as_str()).collect();
    assert_eq!(all.matches("word").count(), 1000);
}

#[test]
fn files_go_both_ways_and_none_from_elsewhere() {
    let rig = Rig::start();
    std::fs::write(rig.place.work().join("plan.txt"), "hay").unwrap();
    rig.discord.say_with(
        rig.channel,
        rig.ann,
        &rig.mentioning("sim:echo=MEDIA:plan.txt"),
        &[("../../notes.txt", b"oats".as_slice())],
    );
    let said = rig.wait_for("an answer with a file", rig.channel, |said| {
        said.iter().any(|message| !message.attachments.is_empty())
    });
    let [file] = said[0].attachments.as_slice() else { panic!("{said:?}") };
    assert_eq!((file.name.as_str(), file.bytes()), ("plan.txt", b"hay".as_slice()));
    assert!(!said[0].content.contains("MEDIA:"), "{}", said[0].content);
    let fetched = files_below(&rig.place.path("data/media"));
    assert_eq!(fetched.len(), 1, "{fetched:?}");
    assert_eq!(std::fs::read(&fetched[0]).unwrap(), b"oats");
    // Whatever it is called, it lies in the folder of its job.
    let folder = fetched[0].parent().and_then(std::path::Path::parent).unwrap();
    assert_eq!(folder, rig.place.path("data/media"));
}

#[test]
fn slash_commands_are_told_once_also_by_the_next_gateway_and_after_a_reconnect() {
    let mut rig = Rig::start();
    let is_told = |rig: &Rig, n_asked: usize| {
        rig.discord.wait_for("what is there is looked up", LIMIT, |world| {
            let asked = world.requests().iter().filter(|(method, path, status)| {
                method == "GET" && path.ends_with("/commands") && *status == 200
            });
            (asked.count() >= n_asked && !world.commands().is_empty()).then_some(())
        });
        rig.ask("sim:echo=on");
        rig.wait_for("an answer", rig.channel, |said| said.len() == n_asked);
        assert_eq!(rig.discord.command_writes(), 1);
    };
    is_told(&rig, 1);
    rig.crash_and_start();
    rig.discord.wait_for("it is resumed", LIMIT, |world| (world.resumes() == 1).then_some(()));
    is_told(&rig, 2);
    let n_before = rig.discord.identifies();
    rig.discord.forget_sessions();
    rig.discord.cut();
    rig.discord
        .wait_for("another session", LIMIT, |world| (world.identifies() > n_before).then_some(()));
    rig.ask("sim:echo=on");
    rig.wait_for("an answer", rig.channel, |said| said.len() == 3);
    assert_eq!(rig.discord.command_writes(), 1);
}

#[test]
fn slash_commands_do_what_words_do() {
    let rig = Rig::start();
    let names = rig.discord.wait_for("the commands", LIMIT, |world| {
        let commands = world.commands();
        (!commands.is_empty()).then_some(commands)
    });
    assert!(names.len() >= 8, "{names:?}");
    let asked =
        rig.discord.slash(rig.channel, rig.ann, "ask", json!({ "prompt": "sim:echo=slash" }));
    rig.wait_for_text("You said slash.");
    assert!(rig.discord.interaction(asked).answered);
    let status = rig.discord.slash(rig.channel, rig.ann, "status", json!({}));
    let said = rig.discord.wait_for("the status", LIMIT, |world| {
        let state = world.interaction(status);
        state.content.clone().filter(|text| !text.is_empty())
    });
    assert!(said.contains("claude"), "{said}");
}

//! Files and names that are not what they should be.

use serde_json::json;

use super::rig::Rig;
use crate::{
    discord_double::Attached,
    support::{LIMIT, files_below, until},
};

#[test]
fn a_file_of_200_megabytes_is_left_out_and_the_answer_comes_all_the_same() {
    let rig = Rig::with(|_, settings| settings["media"] = json!({ "max_mb": 1 }));
    let files = [
        // What Discord says of it, and more than it says.
        Attached::endless("film.mkv").claiming(200 * 1024 * 1024),
        Attached::endless("small.txt"),
        Attached::new("notes.txt", b"oats"),
    ];
    let text = rig.mentioning("sim:echo=on");
    rig.discord.say_attaching(rig.channel, rig.ann, &text, &files);
    rig.wait_for_text("You said on.");
    let kept = files_below(&rig.place.path("data/media"));
    let [notes] = kept.as_slice() else { panic!("{kept:?}") };
    assert_eq!(std::fs::read(notes).unwrap(), b"oats");
    until("the log tells of both", || {
        (rig.log().matches("it is larger than 1 MB").count() == 2).then_some(())
    });
}

#[test]
fn names_that_turn_lines_around_are_shown_without_that() {
    let rig = Rig::with(|_, settings| {
        settings["discord"]["threads"] = json!(true);
        settings["discord"]["pairing"] = json!(true);
    });
    let unruly = |c: char| {
        c.is_control()
            || matches!(c, '\u{200e}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
    };
    // A file.
    let text = rig.mentioning("sim:echo=\u{202e}gpj\u{202c} fix\u{7} the \u{2066}build");
    let name = "in\u{202e}voice\u{1b}[2Jfdp.exe";
    let thread = rig.discord.say_with(rig.channel, rig.ann, &text, &[(name, b"x".as_slice())]);
    rig.wait_for("an answer", thread, |said| {
        said.iter().any(|message| message.content.contains("Your prompt has"))
    });
    let kept = files_below(&rig.place.path("data/media"));
    assert_eq!(kept.len(), 1, "{kept:?}");
    assert!(!kept[0].to_str().unwrap().contains(unruly), "{kept:?}");
    // A thread, which is called after the message that began it.
    let name = rig.discord.name(thread);
    assert!(name.contains("fix the build") && !name.contains(unruly), "{name:?}");
    // A person.
    let eve = rig.discord.user("\u{202e}nna\u{7}\n\u{1b}[31m");
    let direct = rig.discord.direct(eve);
    rig.discord.say(direct, eve, "hello");
    rig.wait_for("a code", direct, |said| !said.is_empty());
    let listed = rig.place.run(&["pairing", "list"]).stdout;
    assert!(listed.contains("nna"), "{listed}");
    assert!(listed.lines().all(|line| !line.contains(unruly)), "{listed:?}");
    assert!(rig.log().lines().all(|line| !line.contains(unruly)), "{:?}", rig.log());
}

#[test]
fn bots_that_answer_each_other_come_to_an_end() {
    let rig = Rig::with(|rig, settings| {
        settings["discord"]["answer_all_in"] = json!([rig.channel.to_string()]);
    });
    rig.discord.say(rig.channel, rig.ann, "sim:echo=one");
    let answer = rig.wait_for_text("You said one.");
    // Another bot says what this one said, and this one hears its own words again.
    rig.discord.bot_says(rig.channel, &answer.content);
    rig.discord.bot_says(rig.channel, &rig.mentioning("sim:echo=bots"));
    rig.discord.deliver_again(answer.id);
    rig.discord.say(rig.channel, rig.ann, "sim:echo=two");
    rig.wait_for_text("You said two.");
    assert_eq!(rig.n_sent(), 2);
    rig.discord.wait_for("nothing more", LIMIT, |world| {
        (world.messages(rig.channel).len() == 6).then_some(())
    });
}

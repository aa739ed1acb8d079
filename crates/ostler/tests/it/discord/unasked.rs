//! What the bot says without being asked.

use serde_json::json;

use super::rig::Rig;

/// Runs a command that succeeds.
fn run(rig: &Rig, args: &[&str]) {
    let config = rig.place.path("ostler.json5");
    let config = config.to_str().unwrap();
    let outcome = rig.place.run(&[args, &["--config", config]].concat());
    assert_eq!(outcome.code, Some(0), "{args:?}: {}", outcome.stderr);
}

#[test]
fn a_heartbeat_speaks_where_somebody_spoke_last() {
    let rig = Rig::with(|_, settings| {
        settings["heartbeat"] = json!({ "prompt": "sim:echo=beat" });
    });
    rig.ask("sim:echo=one");
    rig.wait_for_text("You said one.");
    // It stands there before its turn is over, and there is no heartbeat while one runs.
    rig.daemon.as_ref().unwrap().wait_until_running(0);
    run(&rig, &["heartbeat"]);
    let beat = rig.wait_for_text("You said beat.");
    assert_eq!(beat.reply_to, None);
    assert_eq!(rig.n_sent(), 2);
}

#[test]
fn a_schedule_speaks_where_it_is_told_to() {
    let rig = Rig::start();
    let barn = rig.discord.channel(rig.guild, "barn");
    let [yard, barn_place] = [rig.channel, barn].map(|channel| format!("discord:{channel}"));
    let add = ["schedule", "add", "--cron", "0 0 1 1 *", "--tz", "UTC"];
    let told = ["--name", "told", "--to", &barn_place, "sim:echo=told"];
    run(&rig, &[&add[..], &told].concat());
    run(&rig, &["schedule", "run", "told"]);
    rig.wait_for("an answer in the barn", barn, |said| {
        said.iter().any(|message| message.content.contains("You said told."))
    });
    // In a conversation of the chat it goes on with what was said there.
    rig.ask("sim:history one");
    rig.wait_for_text("so far: 1.");
    let there = ["--name", "there", "--conversation", &yard, "sim:history two"];
    run(&rig, &[&add[..], &there].concat());
    run(&rig, &["schedule", "run", "there"]);
    rig.wait_for_text("so far: 2.");
}

#[test]
fn what_somebody_asks_at_the_terminal_can_be_answered_in_a_channel() {
    let rig = Rig::start();
    let there = format!("discord:{}", rig.channel);
    run(&rig, &["send", "--to", &there, "sim:echo=one"]);
    rig.wait_for_text("You said one.");
    // A name of one's own is none that Discord knows.
    for _ in 0..2 {
        run(&rig, &["send", "--to", &there, "--id", "build 7", "sim:echo=two"]);
    }
    let answer = rig.wait_for_text("You said two.");
    assert_eq!(answer.reply_to, None);
    run(&rig, &["send", "--to", &there, "sim:echo=three"]);
    rig.wait_for_text("You said three.");
    assert_eq!(rig.n_sent(), 3);
}

#[test]
fn what_nobody_would_see_comes_in_the_channel_for_that() {
    let rig = Rig::with(|rig, settings| {
        settings["discord"]["output_channel"] = json!(rig.channel.to_string());
        settings["heartbeat"] = json!({ "prompt": "sim:echo=beat" });
    });
    let add = ["schedule", "add", "--cron", "0 0 1 1 *", "--tz", "UTC"];
    run(&rig, &[&add[..], &["--name", "news", "sim:echo=news"]].concat());
    run(&rig, &["schedule", "run", "news"]);
    rig.wait_for_text("You said news.");
    run(&rig, &["send", "--conversation", "main", "--wait", "hello"]);
    run(&rig, &["heartbeat"]);
    rig.wait_for_text("You said beat.");
}

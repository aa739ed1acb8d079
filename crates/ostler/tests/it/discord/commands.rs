//! Commands by their slash, each with what it does.

use serde_json::{Value, json};

use super::rig::Rig;
use crate::{
    discord_double::Fault,
    gateway::daemon::configure,
    support::{LIMIT, until},
};

fn say(rig: &Rig, command: &str, options: Value) -> String {
    let slash = rig.slash(rig.channel, rig.ann, command, options);
    let told = rig.told(slash);
    assert!(rig.discord.interaction(slash).ephemeral || matches!(command, "ask" | "new"));
    told
}

#[test]
fn each_command_does_what_it_is_called() {
    let rig = Rig::start();
    assert!(say(&rig, "help", json!({})).contains("/status says how it stands."));
    let status = say(&rig, "status", json!({}));
    assert!(status.contains("claude answers") && status.contains("Nothing runs"), "{status}");
    assert_eq!(say(&rig, "stop", json!({})), "Nothing runs here.");
    assert_eq!(say(&rig, "agent", json!({ "name": "claude" })), "claude answers here already.");
    let model = say(&rig, "model", json!({ "name": "sonnet" }));
    assert_eq!(model, "The model is sonnet from the next message on.");
    let think = say(&rig, "think", json!({ "level": "high" }));
    assert_eq!(think, "Thinking is high from the next message on.");
    let status = say(&rig, "status", json!({}));
    assert!(status.contains("the model sonnet") && status.contains("Thinking is high"), "{status}");
}

/// Settings of an agent beside the usual one.
fn barn() -> Value {
    let ostler = env!("CARGO_BIN_EXE_ostler");
    let command = [ostler, "scripted", "--as", "gemini", "--", "--acp"];
    json!({ "barn": { "dialect": "acp", "command": command, "version": [ostler, "--version"] } })
}

#[test]
fn another_agent_answers_from_the_next_message_on_by_slash_and_by_word() {
    let rig = Rig::with(|_, settings| settings["agents"] = barn());
    let answers = |word: &str, agent: &str| {
        rig.ask(&format!("sim:echo={word}"));
        let answer = rig.wait_for_text(&format!("You said {word}.")).content;
        assert!(answer.contains(&format!("playing {agent};")), "{answer}");
    };
    answers("one", "claude");
    let told = say(&rig, "agent", json!({ "name": "barn" }));
    assert_eq!(told, "barn answers from now on, in a new session.");
    answers("two", "gemini");
    rig.ask("/agent claude");
    rig.wait_for_text("claude answers from now on, in a new session.");
    answers("three", "claude");
}

#[test]
fn an_agent_that_comes_while_the_gateway_runs_can_be_chosen() {
    let mut settings = Value::Null;
    let rig = Rig::with(|_, all| settings = all.clone());
    let is_offered = |agent: &str, commands: &[Value]| {
        let command = commands.iter().find(|command| command["name"] == "agent");
        let choices = command.and_then(|command| command["options"][0]["choices"].as_array());
        choices.is_some_and(|all| all.iter().any(|choice| choice["value"] == agent))
    };
    let wait_for = |what: &str, is_barn_offered: bool| {
        rig.discord.wait_for(what, LIMIT, |world| {
            let commands = world.commands();
            let is_it =
                is_offered("claude", &commands) && is_offered("barn", &commands) == is_barn_offered;
            is_it.then_some(())
        });
    };
    wait_for("the commands", false);
    settings["agents"] = barn();
    configure(&rig.place, &settings);
    wait_for("another agent", true);
    settings["agents"] = json!({});
    configure(&rig.place, &settings);
    wait_for("the agent is gone", false);
}

#[test]
fn stop_ends_what_runs_and_new_begins_afresh() {
    let rig = Rig::start();
    assert_eq!(say(&rig, "ask", json!({ "prompt": "sim:history one" })), "> sim:history one");
    rig.wait_for_text("so far: 1.");
    rig.ask("sim:history two");
    rig.wait_for_text("so far: 2.");
    assert_eq!(say(&rig, "new", json!({})), "A fresh start.");
    rig.ask("sim:history three");
    let is_first = |said: &[crate::discord_double::Message]| {
        said.iter().filter(|message| message.content.contains("so far: 1.")).count() == 2
    };
    rig.wait_for("a conversation that begins", rig.channel, is_first);
    assert_eq!(say(&rig, "new", json!({ "prompt": "sim:hang" })), "> sim:hang");
    until("the turn runs", || {
        say(&rig, "status", json!({})).contains("A turn has been running").then_some(())
    });
    assert_eq!(say(&rig, "stop", json!({})), "Stopped.");
    rig.wait_for_text("⏹ Stopped.");
}

#[test]
fn where_nothing_begins_afresh_new_says_so_and_does_nothing() {
    let rig = Rig::with(|_, settings| settings["sessions"] = json!({ "reset_words": [] }));
    for options in [json!({}), json!({ "prompt": "sim:echo=new" })] {
        let slash = rig.slash(rig.channel, rig.ann, "new", options);
        assert!(rig.told(slash).contains("switched off"));
        assert!(rig.discord.interaction(slash).ephemeral);
    }
    rig.ask("sim:echo=on");
    rig.wait_for_text("You said on.");
    let said = rig.discord.messages(rig.channel);
    assert!(said.iter().all(|it| !it.content.contains("You said new.")), "{said:?}");
}

#[test]
fn a_prompt_of_many_lines_is_quoted_as_far_as_it_fits() {
    let rig = Rig::start();
    let prompt = format!("sim:echo=lines {}", "a\n".repeat(1400));
    let quoted = say(&rig, "ask", json!({ "prompt": prompt }));
    assert!(quoted.chars().count() <= 2000 && quoted.ends_with('…'), "{quoted}");
    rig.wait_for_text("You said lines");
}

#[test]
fn discord_is_told_again_of_the_commands_if_it_did_not_take_them() {
    let rig = Rig::unready(|rig, _| rig.discord.plan(1, "PUT /applications/", Fault::Fail(500)));
    rig.discord
        .wait_for("the commands", LIMIT, |world| (!world.commands().is_empty()).then_some(()));
    assert_eq!(rig.discord.look(|world| world.faults_left()), 0);
}

#[test]
fn how_often_somebody_may_write_can_be_changed_while_the_gateway_runs() {
    let mut settings = Value::Null;
    let rig = Rig::with(|_, all| {
        all["discord"]["messages_per_minute"] = json!(1);
        settings = all.clone();
    });
    rig.ask("sim:echo=one");
    rig.wait_for_text("You said one.");
    rig.ask("sim:echo=two");
    rig.wait_for_text("too fast");
    settings["discord"]["messages_per_minute"] = json!(1000);
    configure(&rig.place, &settings);
    until("it counts", || {
        let slash = rig.slash(rig.channel, rig.ann, "ask", json!({ "prompt": "sim:echo=three" }));
        rig.told(slash).starts_with("> ").then_some(())
    });
    rig.ask("sim:echo=four");
    rig.wait_for_text("You said four.");
}

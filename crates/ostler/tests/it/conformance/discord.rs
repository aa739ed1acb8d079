//! Real CLIs behind Discord: a message there, the CLI kept running by a gateway, the
//! simulated model, and the answer in the channel.

use std::path::PathBuf;

use ostler_sim::model;
use serde_json::json;

use super::{CLAUDE, CODEX, Facts, GEMINI, cancel::unique_seconds, warm::leaders_in};
use crate::{
    discord::{
        pages,
        rig::{Rig as Channel, button},
    },
    discord_double::ChangeKind,
    support::{Model, Place, processes_with, until},
};

/// Writes the tests down for agents that are kept running.
macro_rules! for_agents {
    ($($test:ident)*) => {
        mod claude {
            $(#[test] fn $test() { super::$test(&super::CLAUDE); })*
        }
        mod codex {
            $(#[test] fn $test() { super::$test(&super::CODEX); })*
        }
        mod gemini {
            $(#[test] fn $test() { super::$test(&super::GEMINI); })*
        }
    };
}

for_agents! {
    an_answer_grows_in_its_message_and_the_next_is_of_the_same_process
    what_a_button_allows_happens_and_what_one_denies_does_not
    a_word_ends_a_tool_and_the_session_goes_on
}

#[test]
fn code_that_streams_in_is_whole_in_each_message_and_all_there() {
    let Some(rig) = Rig::new(&CLAUDE, "bypass") else { return };
    let text = pages::code();
    rig.channel.ask(&format!("sim:echo-text {text}"));
    // Pages of a draft are changed one after the other, so all are looked at.
    let said = rig.channel.wait_for("all pages", rig.channel.channel, |said| {
        let all = said.iter().flat_map(|message| pages::lines(&message.content));
        // Before it stands what else the model was told.
        let all: Vec<&str> = all.skip_while(|line| !line.ends_with("asked for:")).skip(1).collect();
        all == pages::lines(&text)[1..]
    });
    pages::assert_whole(&said);
}

/// A channel in which a real CLI answers.
struct Rig {
    /// Before the model: what talks to it ends first.
    channel: Channel,
    _model: Model,
}

impl Rig {
    /// Makes a rig; `None`, with a word about it, where the CLIs are not installed.
    fn new(facts: &'static Facts, permissions: &str) -> Option<Self> {
        let Some(clis) = std::env::var_os("OSTLER_TEST_CLIS") else {
            eprintln!("skipped: OSTLER_TEST_CLIS does not say where the real CLIs are");
            return None;
        };
        let model = Model::start();
        let settings = model::settings(facts.agent, &model.url()).unwrap();
        let asks_for = settings.model;
        let channel = Channel::with(|rig, all| {
            let program = wrapper(&rig.place, facts, &PathBuf::from(clis), settings);
            all["agent"] = json!({
                "default": facts.agent, "path": program, "permissions": permissions,
            });
            if let Some(name) = asks_for {
                all["agent"]["model"] = json!(name);
            }
        });
        Some(Self { channel, _model: model })
    }

    fn leaders(&self) -> Vec<u32> {
        leaders_in(&self.channel.place)
    }

    /// Asserts that no process was started since. One that only says its version may
    /// have ended.
    fn assert_kept(&self, before: &[u32]) {
        let now = self.leaders();
        let is_kept = !now.is_empty() && now.iter().all(|pid| before.contains(pid));
        assert!(is_kept, "the process was replaced: {before:?}, {now:?}");
    }

    /// Waits until the agent has said what it remembers.
    fn wait_until_remembered(&self, how_much: &str, what: &str) {
        self.channel.wait_for(what, self.channel.channel, |said| {
            let is_it =
                |text: &str| text.split_once(how_much).is_some_and(|(_, rest)| rest.contains(what));
            said.iter().any(|message| is_it(&message.content))
        });
    }
}

/// Writes a program that is the CLI, and knows where the model is.
pub(super) fn wrapper(
    place: &Place,
    facts: &Facts,
    clis: &std::path::Path,
    settings: model::Settings,
) -> PathBuf {
    settings.write_files(&place.path("home")).unwrap();
    let quoted = |text: &str| format!("'{}'", text.replace('\'', r"'\''"));
    let path = format!("{}:/usr/bin:/bin", clis.join("node_modules/.bin").display());
    let mut script = format!("#!/bin/sh\nexport IS_SANDBOX=1 PATH={}\n", quoted(&path));
    for (name, value) in &settings.environment {
        script.push_str(&format!("export {name}={}\n", quoted(value)));
    }
    let arguments: Vec<String> = settings.arguments.iter().map(|it| quoted(it)).collect();
    let program = clis.join(facts.program);
    let program = quoted(program.to_str().unwrap());
    script.push_str(&format!("exec {program} {} \"$@\"\n", arguments.join(" ")));
    place.program(facts.agent, &script)
}

fn an_answer_grows_in_its_message_and_the_next_is_of_the_same_process(facts: &'static Facts) {
    let Some(rig) = Rig::new(facts, "bypass") else { return };
    let asked = rig.channel.ask("sim:slow=6000");
    let said = rig.channel.wait_for("the start of an answer", rig.channel.channel, |said| {
        said.iter().any(|message| !message.content.is_empty())
    });
    let first = said[0].clone();
    assert_eq!(first.reply_to, Some(asked));
    let answer = rig.channel.wait_for_text("Now it is complete.");
    assert_eq!(answer.id, first.id);
    let changes = rig.channel.discord.changes(rig.channel.channel);
    assert_eq!(changes[0].kind, ChangeKind::Typing, "{changes:?}");
    let n_edits = changes.iter().filter(|change| change.kind == ChangeKind::Edited).count();
    assert!(n_edits >= 2, "{changes:?}");
    assert_eq!(rig.channel.n_sent(), 1);
    let before = rig.leaders();
    rig.channel.ask("sim:history");
    rig.wait_until_remembered("I remember 2 prompts", "sim:slow=6000");
    rig.assert_kept(&before);
    assert_eq!(rig.channel.n_sent(), 2);
}

fn what_a_button_allows_happens_and_what_one_denies_does_not(facts: &'static Facts) {
    let Some(rig) = Rig::new(facts, "ask") else { return };
    for (choice, happens) in [("deny", false), ("allow", true)] {
        let file = rig.channel.place.path("tmp").join(choice);
        rig.channel.ask(&format!("sim:ask=touch {}", file.display()));
        let message = rig.channel.asked();
        assert!(message.content.contains("touch"), "{}", message.content);
        assert!(!file.exists(), "it did not wait");
        let press = button(&message, choice);
        rig.channel.discord.press(rig.channel.channel, rig.channel.ann, message.id, &press);
        rig.channel.wait_for("the end of the turn", rig.channel.channel, |said| {
            let is_settled = said.iter().all(|message| message.custom_ids().is_empty());
            is_settled && said.last().is_some_and(|last| last.id > message.id)
        });
        assert_eq!(file.exists(), happens, "{choice}");
    }
}

fn a_word_ends_a_tool_and_the_session_goes_on(facts: &'static Facts) {
    let Some(rig) = Rig::new(facts, "bypass") else { return };
    rig.channel.ask("hello");
    rig.channel.wait_for_text(model::HELLO);
    let before = rig.leaders();
    let seconds = unique_seconds().to_string();
    rig.channel.ask(&format!("sim:sleep-tool={seconds}"));
    let sleep = format!("sleep\0{seconds}");
    until("the tool runs", || (!processes_with(&sleep).is_empty()).then_some(()));
    rig.channel.ask("/stop");
    rig.channel.wait_for_text("⏹ Stopped.");
    until("the tool is gone", || processes_with(&sleep).is_empty().then_some(()));
    rig.channel.ask("sim:history");
    rig.wait_until_remembered("I remember", "\n\nhello");
    rig.assert_kept(&before);
}

//! Real CLIs behind Discord: a message there, the CLI kept running by a gateway, the
//! simulated model, and the answer in the channel.

use ostler_sim::model;

use super::{
    CLAUDE, CODEX, Facts, GEMINI,
    cancel::unique_seconds,
    real::{RealAgent, assert_kept},
    warm::leaders_in,
};
use crate::{
    discord::{
        pages,
        rig::{Rig as Channel, button},
    },
    discord_double::ChangeKind,
    support::{processes_with, until},
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
    /// Before the agent: what talks to its model ends first.
    channel: Channel,
    _agent: RealAgent,
}

impl Rig {
    /// Makes a rig; `None`, with a word about it, where the CLIs are not installed.
    fn new(facts: &'static Facts, permissions: &str) -> Option<Self> {
        let agent = RealAgent::find(facts)?;
        let channel = Channel::with(|rig, all| agent.configure(&rig.place, permissions, all));
        Some(Self { channel, _agent: agent })
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
    let before = leaders_in(&rig.channel.place);
    rig.channel.ask("sim:history");
    rig.wait_until_remembered("I remember 2 prompts", "sim:slow=6000");
    assert_kept(&rig.channel.place, &before);
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
    let before = leaders_in(&rig.channel.place);
    let seconds = unique_seconds().to_string();
    rig.channel.ask(&format!("sim:sleep-tool={seconds}"));
    let sleep = format!("sleep\0{seconds}");
    until("the tool runs", || (!processes_with(&sleep).is_empty()).then_some(()));
    rig.channel.ask("/stop");
    rig.channel.wait_for_text("⏹ Stopped.");
    until("the tool is gone", || processes_with(&sleep).is_empty().then_some(()));
    rig.channel.ask("sim:history");
    rig.wait_until_remembered("I remember", "\n\nhello");
    assert_kept(&rig.channel.place, &before);
}

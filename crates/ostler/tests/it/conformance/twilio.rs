//! Real CLIs behind WhatsApp: a message there, the CLI kept running by a gateway, the
//! simulated model, and the answer.

use std::path::PathBuf;

use ostler_sim::model;
use serde_json::json;

use super::{CLAUDE, CODEX, Facts, cancel::unique_seconds, discord::wrapper, warm::leaders_in};
use crate::{
    support::{Model, processes_with, until},
    twilio::rig::Rig as Line,
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
    };
}

for_agents! {
    a_message_is_answered_and_the_next_by_the_same_process
    what_a_number_allows_happens_and_what_one_denies_does_not
    a_word_ends_a_tool_and_the_session_goes_on
}

/// A number at which a real CLI answers.
struct Rig {
    /// Before the model: what talks to it ends first.
    line: Line,
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
        let line = Line::with(|rig, all| {
            let program = wrapper(&rig.place, facts, &PathBuf::from(clis), settings);
            all["agent"] = json!({
                "default": facts.agent, "path": program, "permissions": permissions,
            });
            if let Some(name) = asks_for {
                all["agent"]["model"] = json!(name);
            }
        });
        Some(Self { line, _model: model })
    }

    fn leaders(&self) -> Vec<u32> {
        leaders_in(&self.line.place)
    }

    /// Asserts that no process was started since. One that only says its version may
    /// have ended.
    fn assert_kept(&self, before: &[u32]) {
        let now = self.leaders();
        let is_kept = !now.is_empty() && now.iter().all(|pid| before.contains(pid));
        assert!(is_kept, "the process was replaced: {before:?}, {now:?}");
    }

    /// Asks what the agent remembers, and waits until that is this.
    fn assert_remembered(&self, what: &str) {
        self.line.ask("sim:history");
        self.line.wait_for(what, &self.line.ann, |sent| {
            let is_it = |text: &str| {
                text.split_once("I remember").is_some_and(|(_, rest)| rest.contains(what))
            };
            sent.iter().any(|message| is_it(&message.body))
        });
    }
}

fn a_message_is_answered_and_the_next_by_the_same_process(facts: &'static Facts) {
    let Some(rig) = Rig::new(facts, "bypass") else { return };
    rig.line.ask("hello");
    rig.line.wait_for_text(&rig.line.ann, model::HELLO);
    let before = rig.leaders();
    rig.assert_remembered("hello");
    rig.assert_kept(&before);
    assert_eq!(rig.line.twilio.messages_to(&rig.line.ann).len(), 2);
}

fn what_a_number_allows_happens_and_what_one_denies_does_not(facts: &'static Facts) {
    let Some(rig) = Rig::new(facts, "ask") else { return };
    for (label, happens) in [("Deny", false), ("Allow", true)] {
        let file = rig.line.place.path("tmp").join(label);
        let n_before = rig.line.twilio.messages_to(&rig.line.ann).len();
        rig.line.ask(&format!("sim:ask=touch {}", file.display()));
        let sent = rig.line.wait_for("a request", &rig.line.ann, |sent| sent.len() > n_before);
        rig.line.wait_until_noted();
        let body = &sent[n_before].body;
        assert!(body.contains("touch") && body.contains(label), "{body}");
        assert!(!file.exists(), "it did not wait");
        let end = format!("* {label}");
        let line = body.lines().find(|line| line.ends_with(&end)).unwrap();
        let number: String = line.chars().filter(char::is_ascii_digit).collect();
        rig.line.ask(&number);
        rig.line.wait_for("the end of the turn", &rig.line.ann, |sent| sent.len() > n_before + 1);
        assert_eq!(file.exists(), happens, "{label}");
    }
}

fn a_word_ends_a_tool_and_the_session_goes_on(facts: &'static Facts) {
    let Some(rig) = Rig::new(facts, "bypass") else { return };
    rig.line.ask("hello");
    rig.line.wait_for_text(&rig.line.ann, model::HELLO);
    let before = rig.leaders();
    let seconds = unique_seconds().to_string();
    rig.line.ask(&format!("sim:sleep-tool={seconds}"));
    let sleep = format!("sleep\0{seconds}");
    until("the tool runs", || (!processes_with(&sleep).is_empty()).then_some(()));
    rig.line.ask("stop");
    rig.line.wait_for_text(&rig.line.ann, "⏹ Stopped.");
    until("the tool is gone", || processes_with(&sleep).is_empty().then_some(()));
    rig.assert_remembered("hello");
    rig.assert_kept(&before);
}

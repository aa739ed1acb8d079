//! Real CLIs behind WhatsApp: a message there, the CLI kept running by a gateway, the
//! simulated model, and the answer.

use std::fs;

use ostler_sim::model;
use serde_json::json;

use super::{
    CLAUDE, CODEX, Facts,
    cancel::unique_seconds,
    real::{RealAgent, assert_kept},
    warm::leaders_in,
};
use crate::{
    support::{processes_with, until},
    twilio::rig::Rig as Line,
    twilio_double::{Attached, Inbound},
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
    a_picture_that_comes_is_read_by_a_tool_where_the_agent_was_told_it_lies
    a_file_that_an_answer_names_is_sent
}

const PNG: &[u8] = b"\x89PNG\r\n\x1a\nhay-in-the-loft";

#[test]
fn a_command_is_allowed_by_the_button_of_a_template() {
    let Some(agent) = RealAgent::find(&CLAUDE) else { return };
    let line = Line::with(|rig, all| {
        agent.configure(&rig.place, "ask", all);
        all["twilio"]["approval_template"] = json!(rig.twilio.template("Ostler: {{1}}"));
    });
    let rig = Rig { line, _agent: agent };
    let file = rig.line.place.path("tmp").join("allowed");
    rig.line.ask(&format!("sim:ask=touch {}", file.display()));
    let asked = rig.line.wait_for_text(&rig.line.ann, "*1* Allow");
    rig.line.wait_until_noted();
    assert!(asked.content_sid.is_some(), "{}", asked.body);
    rig.line
        .hand_in(|_| Inbound::new(&rig.line.ann, &rig.line.own, "Allow").replying_to(&asked.sid));
    rig.line.wait_for("the end of the turn", &rig.line.ann, |sent| sent.len() > 1);
    assert!(file.exists());
}

/// A number at which a real CLI answers.
struct Rig {
    /// Before the agent: what talks to its model ends first.
    line: Line,
    _agent: RealAgent,
}

impl Rig {
    /// Makes a rig; `None`, with a word about it, where the CLIs are not installed.
    fn new(facts: &'static Facts, permissions: &str) -> Option<Self> {
        let agent = RealAgent::find(facts)?;
        let line = Line::with(|rig, all| agent.configure(&rig.place, permissions, all));
        Some(Self { line, _agent: agent })
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
    let before = leaders_in(&rig.line.place);
    rig.assert_remembered("hello");
    assert_kept(&rig.line.place, &before);
    assert_eq!(rig.line.twilio.messages_to(&rig.line.ann).len(), 2);
}

fn what_a_number_allows_happens_and_what_one_denies_does_not(facts: &'static Facts) {
    let Some(rig) = Rig::new(facts, "ask") else { return };
    for (label, happens) in [("Deny", false), ("Allow", true)] {
        let file = rig.line.place.path("tmp").join(label);
        let n_before = rig.line.twilio.messages_to(&rig.line.ann).len();
        rig.line.ask(&format!("sim:ask=touch {}", file.display()));
        let end = format!("* {label}");
        let choice = |body: &str| body.lines().find(|line| line.ends_with(&end)).map(str::to_owned);
        // A long one takes several messages, and the last has what can be chosen.
        let sent = rig.line.wait_for("a request", &rig.line.ann, |sent| {
            sent[n_before..].last().is_some_and(|last| choice(&last.body).is_some())
        });
        rig.line.wait_until_noted();
        let shown: String = sent[n_before..].iter().map(|it| it.body.as_str()).collect();
        assert!(shown.contains("touch"), "{shown}");
        assert!(!file.exists(), "it did not wait");
        let line = choice(&sent.last().unwrap().body).unwrap();
        let number: String = line.chars().filter(char::is_ascii_digit).collect();
        rig.line.ask(&number);
        rig.line.wait_for("the end of the turn", &rig.line.ann, |now| now.len() > sent.len());
        assert_eq!(file.exists(), happens, "{label}");
    }
}

fn a_word_ends_a_tool_and_the_session_goes_on(facts: &'static Facts) {
    let Some(rig) = Rig::new(facts, "bypass") else { return };
    rig.line.ask("hello");
    rig.line.wait_for_text(&rig.line.ann, model::HELLO);
    let before = leaders_in(&rig.line.place);
    let seconds = unique_seconds().to_string();
    rig.line.ask(&format!("sim:sleep-tool={seconds}"));
    let sleep = format!("sleep\0{seconds}");
    until("the tool runs", || (!processes_with(&sleep).is_empty()).then_some(()));
    rig.line.ask("stop");
    rig.line.wait_for_text(&rig.line.ann, "⏹ Stopped.");
    until("the tool is gone", || processes_with(&sleep).is_empty().then_some(()));
    rig.assert_remembered("hello");
    assert_kept(&rig.line.place, &before);
}

fn a_picture_that_comes_is_read_by_a_tool_where_the_agent_was_told_it_lies(facts: &'static Facts) {
    let Some(rig) = Rig::new(facts, "bypass") else { return };
    rig.line.hand_in(|_| {
        let message = Inbound::new(&rig.line.ann, &rig.line.own, "sim:echo-text");
        message.with(Attached::new("image/png", PNG))
    });
    let note = "[Attached: image/png, ";
    let sent = rig.line.wait_for("what the model was told", &rig.line.ann, |sent| {
        sent.iter().any(|message| message.body.contains(note))
    });
    let told = sent.iter().find_map(|message| message.body.split_once(note)).unwrap().1;
    let path = told.split_once(']').unwrap().0;
    assert!(path.ends_with(".png"), "{path}");
    assert_eq!(fs::read(path).unwrap(), PNG);
    rig.line.ask(&format!("sim:run=tail -c 15 {path}"));
    rig.line.wait_for_text(&rig.line.ann, "hay-in-the-loft");
}

fn a_file_that_an_answer_names_is_sent(facts: &'static Facts) {
    let Some(rig) = Rig::new(facts, "bypass") else { return };
    fs::write(rig.line.place.work().join("chart.png"), PNG).unwrap();
    rig.line.ask("sim:say=Here is the chart. MEDIA:chart.png");
    let sent = rig.line.wait_for("the file", &rig.line.ann, |sent| {
        sent.last().is_some_and(|last| last.media.len() == 1)
    });
    assert_eq!(sent[0].body.trim(), "Here is the chart.", "{sent:?}");
    let media = rig.line.twilio.media_of(&sent.last().unwrap().sid);
    assert_eq!((media[0].content_type.as_str(), media[0].bytes()), ("image/png", PNG));
    assert!(!rig.line.twilio.media_fetches().is_empty());
}

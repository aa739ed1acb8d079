//! What is said to the gateway instead of the agent.

use super::rig::{ANN, Rig};
use crate::{support::until, twilio_double::ChangeKind};

/// Lets the agent be at work on something that takes until it is stopped.
fn keep_busy(rig: &Rig) {
    let n_typed = |rig: &Rig| {
        rig.twilio.changes().iter().filter(|change| change.kind == ChangeKind::Typed).count()
    };
    let before = n_typed(rig);
    rig.ask("sim:hang");
    until("typing", || (n_typed(rig) > before).then_some(()));
}

#[test]
fn words_are_answered_by_the_gateway() {
    let rig = Rig::start();
    for (word, answer) in [
        ("/status", "claude"),
        ("/help", "/new"),
        ("/agent", "claude"),
        ("/think high", "high"),
        ("/think", "high"),
        ("/verbose on", "on"),
        ("/model", "model"),
        ("Stop.", "Nothing"),
    ] {
        let before = rig.twilio.messages_to(&rig.ann).len();
        rig.ask(word);
        let sent = rig.wait_for(word, &rig.ann, |sent| sent.len() > before);
        let said = &sent[before].body;
        assert!(said.to_lowercase().contains(&answer.to_lowercase()), "{word}: {said}");
        assert!(!said.contains("scripted agent"), "{word}: {said}");
    }
    assert_eq!(rig.twilio.messages_to(&rig.ann).len(), 8);
}

#[test]
fn verbose_tells_below_an_answer_which_tools_ran() {
    let rig = Rig::start();
    rig.ask("sim:tool");
    rig.wait_for("an answer", &rig.ann, |sent| !sent.is_empty());
    rig.ask("/verbose on");
    rig.wait_for_text(&rig.ann, "Verbose is on.");
    rig.ask("sim:tool");
    let sent = rig.wait_for("the tools", &rig.ann, |sent| sent.len() == 4);
    assert!(sent[3].body.contains("🔧 Bash"), "{sent:?}");
    assert!(sent.iter().take(3).all(|it| !it.body.contains("🔧")), "{sent:?}");
}

#[test]
fn new_begins_a_session_afresh() {
    let rig = Rig::start();
    rig.ask("sim:history one");
    rig.wait_for_text(&rig.ann, "so far: 1.");
    rig.ask("/new sim:history two");
    let sent = rig.wait_for("two answers", &rig.ann, |sent| sent.len() == 2);
    assert!(sent[1].body.contains("so far: 1."), "{sent:?}");
}

#[test]
fn each_stop_word_ends_what_runs() {
    let rig = Rig::start();
    for (number, word) in ["stop", "Esc", "abort!", "WAIT", "exit", "/stop"].into_iter().enumerate()
    {
        keep_busy(&rig);
        rig.ask(word);
        rig.wait_for(word, &rig.ann, |sent| {
            sent.iter().filter(|it| it.body == "⏹ Stopped.").count() == number + 1
        });
    }
    rig.ask("sim:echo=on");
    rig.wait_for_text(&rig.ann, "You said on.");
}

#[test]
fn a_stop_that_is_told_again_does_not_end_what_began_after_it() {
    let rig = Rig::start();
    keep_busy(&rig);
    let stop = rig.ask("/stop");
    rig.wait_for_text(&rig.ann, "⏹ Stopped.");
    rig.ask("sim:slow=700 sim:echo=later");
    rig.twilio.deliver_again(&stop);
    rig.wait_for_text(&rig.ann, "You said later.");
}

#[test]
fn stop_by_sms_ends_what_runs_though_twilio_lets_nothing_through_after_it() {
    let rig = Rig::start();
    rig.twilio.say(ANN, &rig.sms, "sim:hang");
    rig.wait_until_running(1);
    rig.twilio.say(ANN, &rig.sms, "stop");
    // The operator learns why nothing comes.
    until("the log says why", || rig.log().contains("has sent STOP").then_some(()));
    assert!(rig.twilio.messages_to(ANN).is_empty());
    rig.twilio.say(ANN, &rig.sms, "start");
    rig.wait_for_text(ANN, "Your prompt has 5 characters.");
    // The others do not mean anything to Twilio.
    rig.twilio.say(ANN, &rig.sms, "sim:hang");
    rig.wait_until_running(1);
    rig.twilio.say(ANN, &rig.sms, "wait");
    rig.wait_for_text(ANN, "⏹ Stopped.");
}

//! What the gateway says without being asked, by number.

use std::fs;

use serde_json::json;

use super::rig::{ANN, Rig};

/// Runs a command that succeeds.
fn run(rig: &Rig, args: &[&str]) {
    let config = rig.place.path("ostler.json5");
    let config = config.to_str().unwrap();
    let outcome = rig.place.run(&[args, &["--config", config]].concat());
    assert_eq!(outcome.code, Some(0), "{args:?}: {}", outcome.stderr);
}

/// Waits until somebody was sent exactly this, and makes sure that it was once.
fn assert_sent_once(rig: &Rig, whom: &str, text: &str) {
    let is_it = |it: &str| it == text;
    rig.wait_for(text, whom, |sent| sent.iter().any(|message| is_it(&message.body)));
    let texts = rig.texts(whom);
    assert_eq!(texts.iter().filter(|it| is_it(it)).count(), 1, "{texts:#?}");
}

#[test]
fn an_agent_reaches_people_by_number_and_a_group_by_its_name() {
    let rig = Rig::start();
    rig.twilio.open_window(&rig.bob);
    rig.ask("sim:echo=here");
    rig.wait_for_text(&rig.ann, "You said here.");
    let group = rig.group();
    let send = |to: &str, text: &str| {
        // It is one message, however often it is sent.
        for _ in 0..2 {
            let said = ["send", "--from-agent", "--to", to, "--id", text, text];
            assert_eq!(rig.place.run(&said).code, Some(0), "{to}");
        }
    };
    send(&format!("whatsapp:{ANN}"), "hay by WhatsApp");
    send(&format!("sms:{ANN}"), "hay by SMS");
    send(&format!("group:{group}"), "hay for all");
    assert_sent_once(&rig, &rig.ann, "hay by WhatsApp");
    assert_sent_once(&rig, ANN, "hay by SMS");
    rig.wait_for_said(&group, "hay for all");
    for to in ["whatsapp:1555", "sms:ann", "group:stable"] {
        let refused = rig.place.run(&["send", "--from-agent", "--to", to, "hay"]);
        assert_eq!(refused.code, Some(2), "{to}: {}", refused.stderr);
    }
    // What is sent to nobody in particular goes where somebody wrote last.
    assert_eq!(rig.place.run(&["send", "--from-agent", "news"]).code, Some(0));
    assert_sent_once(&rig, &rig.ann, "news");
    let counts =
        (rig.texts(&rig.ann).len(), rig.texts(ANN).len(), rig.twilio.said_in(&group).len());
    assert_eq!(counts, (3, 1, 1));
}

#[test]
fn a_file_in_the_folder_reaches_somebody_by_number() {
    let rig = Rig::with(|rig, settings| {
        settings["outbound"] = json!({ "dir": rig.place.path("outbox") });
    });
    rig.ask("sim:echo=here");
    rig.wait_for_text(&rig.ann, "You said here.");
    let group = rig.group();
    for (name, to, text) in [
        ("1.json", format!("whatsapp:{ANN}"), "Disk at 91 %."),
        ("2.json", format!("sms:{ANN}"), "Disk at 92 %."),
        ("3.json", format!("group:{group}"), "Disk at 93 %."),
    ] {
        let file = rig.place.path("outbox").join(name);
        fs::write(file.with_extension("tmp"), json!({ "text": text, "to": to }).to_string())
            .unwrap();
        fs::rename(file.with_extension("tmp"), file).unwrap();
    }
    assert_sent_once(&rig, &rig.ann, "Disk at 91 %.");
    assert_sent_once(&rig, ANN, "Disk at 92 %.");
    rig.wait_for_said(&group, "Disk at 93 %.");
}

#[test]
fn a_schedule_speaks_where_it_is_told_to() {
    let rig = Rig::start();
    rig.ask("sim:echo=here");
    rig.wait_for_text(&rig.ann, "You said here.");
    let group = rig.group();
    for (name, to) in [
        ("whatsapp", format!("whatsapp:{ANN}")),
        ("sms", format!("sms:{ANN}")),
        ("group", format!("group:{group}")),
    ] {
        let text = format!("sim:echo={name}-run");
        let add = ["schedule", "add", "--cron", "0 0 1 1 *", "--tz", "UTC"];
        run(&rig, &[&add[..], &["--name", name, "--to", &to, &text]].concat());
        run(&rig, &["schedule", "run", name]);
    }
    rig.wait_for_text(&rig.ann, "You said whatsapp-run.");
    rig.wait_for_text(ANN, "You said sms-run.");
    rig.wait_for_said(&group, "You said group-run.");
    let counts =
        (rig.texts(&rig.ann).len(), rig.texts(ANN).len(), rig.twilio.said_in(&group).len());
    assert_eq!(counts, (2, 1, 1));
}

#[test]
fn a_heartbeat_speaks_where_somebody_spoke_last() {
    let rig = Rig::with(|_, settings| {
        settings["heartbeat"] = json!({ "prompt": "sim:echo=beat" });
    });
    rig.twilio.say(ANN, &rig.sms, "sim:echo=one");
    rig.wait_for_text(ANN, "You said one.");
    rig.ask("sim:echo=two");
    rig.wait_for_text(&rig.ann, "You said two.");
    run(&rig, &["heartbeat"]);
    rig.wait_for_text(&rig.ann, "You said beat.");
    let group = rig.group();
    rig.twilio.say_in_group(&group, &rig.ann, "ostler sim:echo=three");
    rig.wait_for_said(&group, "You said three.");
    run(&rig, &["heartbeat"]);
    rig.wait_for_said(&group, "You said beat.");
    assert_eq!((rig.texts(&rig.ann).len(), rig.texts(ANN).len()), (2, 1));
}

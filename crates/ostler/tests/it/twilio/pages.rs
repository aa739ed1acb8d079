//! Answers that take more than one message.

use serde_json::json;

use super::rig::Rig;
use crate::{
    discord::pages::{code, lines},
    twilio_double::Message,
};

/// The most that Twilio takes in a message, as UTF-16 counts.
const MOST: usize = 1600;

/// Lets this be the answer to somebody, and returns its messages.
fn answered(text: &str, last: &str) -> Vec<Message> {
    let rig = Rig::with(|_, settings| {
        settings["inbound"] =
            json!({ "reply": { "mode": "text", "text": text, "agent": { "kind": "claude" } } });
    });
    rig.ask("tell me");
    let sent = rig.wait_for("the last page", &rig.ann, |sent| {
        sent.last().is_some_and(|message| message.body.ends_with(last))
    });
    assert!(sent.len() >= 3, "{}", sent.len());
    assert!(sent.iter().all(|message| message.body.encode_utf16().count() <= MOST));
    sent
}

#[test]
fn code_of_5000_characters_is_whole_in_each_message_and_all_there() {
    let text = code();
    let sent = answered(&text, "That is all.");
    for Message { body, .. } in &sent {
        let n_fences = body.lines().filter(|line| line.starts_with("```")).count();
        assert_eq!(n_fences % 2, 0, "{body}");
    }
    let pages: Vec<&str> = sent.iter().flat_map(|message| lines(&message.body)).collect();
    assert_eq!(pages, lines(&text));
}

#[test]
fn no_message_ends_within_an_emoji_or_a_letter() {
    for cluster in ["👩‍👩‍👧‍👦", "🇩🇪", "e\u{301}\u{323}", "👍🏽"] {
        let text = format!("{}.", cluster.repeat(5000 / cluster.chars().count()));
        let sent = answered(&text, ".");
        for message in &sent {
            let rest = message.body.trim_end_matches('.').replace(cluster, "");
            assert_eq!(rest, "", "{cluster:?}");
        }
        let all: String = sent.iter().map(|message| message.body.as_str()).collect();
        assert_eq!(all, text);
    }
}

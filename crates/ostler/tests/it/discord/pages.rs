//! Answers that take more than one message.

use serde_json::json;

use super::rig::Rig;
use crate::discord_double::Message;

/// The most that Discord takes in a message.
const MOST: usize = 2000;

/// Lets the bot give this answer, and returns its messages.
fn answered(text: &str, last: &str) -> Vec<Message> {
    let rig = Rig::with(|_, settings| {
        settings["inbound"] =
            json!({ "reply": { "mode": "text", "text": text, "agent": { "kind": "claude" } } });
    });
    rig.ask("tell me");
    let said = rig.wait_for("the last page", rig.channel, |said| {
        said.last().is_some_and(|message| message.content.ends_with(last))
    });
    assert!(said.iter().all(|message| message.content.chars().count() <= MOST));
    said
}

/// Returns an answer of a little more than 5,000 characters with two long blocks of
/// code.
pub(crate) fn code() -> String {
    let mut text = "Here is what you asked for:\n\n".to_owned();
    for (language, n_lines) in [("rust", 70), ("", 50)] {
        text.push_str(&format!("```{language}\n"));
        for line in 0..n_lines {
            text.push_str(&format!("    let value_{line} = compute({line}, \"ä\"); // 🦀\n"));
        }
        text.push_str("```\n\nAnd then:\n\n");
    }
    text + "That is all."
}

/// Returns the lines that are not there to begin or end a block.
pub(crate) fn lines(text: &str) -> Vec<&str> {
    text.lines().filter(|line| !line.starts_with("```") && !line.is_empty()).collect()
}

/// Asserts that no message is too long, and that each ends the blocks that it begins.
pub(crate) fn assert_whole(said: &[Message]) {
    assert!(said.len() >= 3, "{}", said.len());
    for Message { content, .. } in said {
        assert!(content.chars().count() <= MOST, "{content}");
        let n_fences = content.lines().filter(|line| line.starts_with("```")).count();
        assert_eq!(n_fences % 2, 0, "{content}");
    }
}

#[test]
fn code_of_5000_characters_is_whole_in_each_message_and_all_there() {
    let text = code();
    assert!(text.chars().count() > 5000);
    let said = answered(&text, "That is all.");
    assert_whole(&said);
    // What was cut within the first block goes on in its language.
    assert!(said[1].content.starts_with("```rust\n"), "{}", said[1].content);
    let pages: Vec<&str> = said.iter().flat_map(|message| lines(&message.content)).collect();
    assert_eq!(pages, lines(&text));
}

#[test]
fn no_message_ends_within_an_emoji_or_a_letter() {
    for cluster in ["👩‍👩‍👧‍👦", "🇩🇪", "e\u{301}\u{323}", "👍🏽"] {
        let text = format!("{}.", cluster.repeat(5000 / cluster.chars().count()));
        let said = answered(&text, ".");
        assert!(said.len() >= 3, "{}", said.len());
        for message in &said {
            let rest = message.content.trim_end_matches('.').replace(cluster, "");
            assert_eq!(rest, "", "{cluster:?}");
        }
        let all: String = said.iter().map(|message| message.content.as_str()).collect();
        assert_eq!(all, text);
    }
}

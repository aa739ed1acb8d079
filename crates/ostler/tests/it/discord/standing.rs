//! Answers that stand in the end, whatever Discord refuses on the way.

use serde_json::json;

use super::rig::Rig;
use crate::discord_double::Message;

/// The permission to attach files.
const ATTACH_FILES: u64 = 1 << 15;

fn has(said: &[Message], text: &str) -> bool {
    said.iter().any(|message| message.content.contains(text))
}

fn texts(said: &[Message]) -> String {
    said.iter().map(|message| message.content.as_str()).collect()
}

#[test]
fn an_answer_in_a_thread_that_was_closed_meanwhile_arrives() {
    let rig = Rig::with(|_, settings| settings["discord"]["threads"] = json!(true));
    let thread = rig.ask("sim:slow=900 tell me all about it");
    rig.wait_for("the start of an answer", thread, |said| !said.is_empty());
    rig.discord.archive(thread);
    rig.wait_for("all of it", thread, |said| has(said, "characters."));
}

#[test]
fn a_long_answer_comes_as_text_where_no_files_can_be_attached() {
    let rig = Rig::with(|_, settings| settings["discord"]["long_answers"] = json!("file"));
    rig.discord.deny(rig.channel, ATTACH_FILES);
    rig.ask(&format!("sim:echo={}", "word-".repeat(1000)));
    let said = rig.wait_for("all of it", rig.channel, |said| has(said, "characters."));
    let all = texts(&said);
    assert_eq!(all.matches("word").count(), 1000, "{all}");
    assert!(!all.contains("attached") && said.iter().all(|it| it.attachments.is_empty()), "{all}");
}

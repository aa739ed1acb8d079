//! Files that come with messages and go out with answers, as people meet them.

use std::{fs, path::Path};

use serde_json::json;

use super::rig::Rig;
use crate::discord_double::Message;

/// A rig in which the block `inbound.reply` says something of media.
fn replying(media: &serde_json::Value) -> Rig {
    Rig::with(|rig, settings| {
        fs::write(rig.place.path("stable.txt"), "hay").unwrap();
        settings["inbound"] = json!({ "reply": media });
        settings["inbound"]["reply"]["agent"] = json!({ "kind": "claude" });
    })
}

/// Returns the names of the files that a message has.
fn names(message: &Message) -> Vec<&str> {
    message.attachments.iter().map(|file| file.name.as_str()).collect()
}

#[test]
fn inbound_reply_media_url_is_a_file_that_goes_with_each_reply() {
    // Seen from the file that says it.
    let rig = replying(&json!({ "mediaUrl": "stable.txt" }));
    for number in 0..2 {
        rig.ask(&format!("sim:echo=answer-{number}"));
        let said = rig.wait_for("an answer with its file", rig.channel, |said| {
            said.len() == number + 1 && said.iter().all(|it| !it.attachments.is_empty())
        });
        let last = said.last().unwrap();
        assert!(last.content.contains(&format!("answer-{number}")), "{last:?}");
        assert_eq!(names(last), ["stable.txt"]);
    }
}

#[test]
fn inbound_reply_media_url_is_a_link_at_the_end_of_each_reply() {
    let rig = replying(&json!({ "mediaUrl": "https://example.org/stable.png" }));
    rig.ask("sim:echo=answer");
    let answer = rig.wait_for_text("https://example.org/stable.png");
    assert!(answer.content.ends_with("\nhttps://example.org/stable.png"), "{answer:?}");
    assert_eq!(names(&answer), Vec::<&str>::new());
}

#[test]
fn inbound_reply_media_url_goes_with_a_fixed_text() {
    let media = json!({ "mode": "text", "text": "We are closed.", "mediaUrl": "stable.txt" });
    let rig = replying(&media);
    rig.ask("hello");
    let answer = rig.wait_for_text("We are closed.");
    assert_eq!(names(&answer), ["stable.txt"]);
}

#[test]
fn inbound_reply_media_max_mb_is_how_large_the_files_of_a_reply_may_be() {
    let rig = replying(&json!({ "mediaMaxMb": 1 }));
    let file = fs::File::create(rig.place.work().join("large.bin")).unwrap();
    file.set_len(1024 * 1024 + 1).unwrap();
    rig.ask("sim:echo=MEDIA:large.bin");
    rig.wait_for_text("large.bin was not sent: it is larger than 1 MB.");
}

#[test]
fn media_max_image_mb_goes_by_what_a_file_is() {
    let rig = Rig::with(|_, settings| settings["media"] = json!({ "max_image_mb": 1 }));
    let mut image = b"GIF89a".to_vec();
    image.resize(1024 * 1024 + 1, 0);
    fs::write(rig.place.work().join("notes.txt"), &image).unwrap();
    rig.ask("sim:echo=MEDIA:notes.txt");
    rig.wait_for_text("notes.txt was not sent: it is larger than 1 MB.");
}

/// A rig that hears recordings by a script, whose argument is the path of one.
fn hearing(script: &str) -> Rig {
    Rig::with(|_, settings| {
        let command = ["sh", "-c", script, "sh", "{{MediaPath}}"];
        settings["media"] = json!({ "transcribe": { "command": command } });
    })
}

#[test]
fn a_voice_note_without_a_word_is_answered_by_what_is_spoken_in_it() {
    let rig = hearing("tail -c +5 \"$1\"");
    let note: &[u8] = b"OggSsim:echo=feed-the-horses";
    rig.discord.say_with(rig.channel, rig.ann, &rig.mentioning(""), &[("voice.ogg", note)]);
    rig.wait_for_text("feed-the-horses");
    let folder = fs::read_dir(rig.place.path("data/media")).unwrap().next().unwrap().unwrap();
    let kept = folder.path().join(".1.transcript");
    assert_eq!(fs::read_to_string(kept).unwrap(), "sim:echo=feed-the-horses");
}

#[test]
fn a_voice_note_that_nobody_could_hear_is_answered_all_the_same() {
    for script in ["exit 3", "kill -9 $$", "yes", "true"] {
        let rig = hearing(script);
        let note: &[u8] = b"OggS";
        let asked = rig.mentioning("sim:echo=heard-nothing");
        rig.discord.say_with(rig.channel, rig.ann, &asked, &[("voice.ogg", note)]);
        rig.wait_for_text("heard-nothing");
        assert!(rig.log().contains("a recording was not transcribed"), "{script}: {}", rig.log());
        assert!(!has_transcript(&rig.place.path("data/media")), "{script}");
    }
}

/// Whether there is a transcript below a folder.
fn has_transcript(folder: &Path) -> bool {
    fs::read_dir(folder).unwrap().any(|entry| {
        let path = entry.unwrap().path();
        if path.is_dir() { has_transcript(&path) } else { path.ends_with(".1.transcript") }
    })
}

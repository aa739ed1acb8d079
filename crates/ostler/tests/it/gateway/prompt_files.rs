//! Prompt files of a gateway that runs.

use std::fs;

use serde_json::{Value, json};

use super::daemon::{Daemon, ended, send};
use crate::support::Place;

/// Writes an agent that is played, and notes the system prompt of each process.
fn agent(place: &Place) -> String {
    let ostler = env!("CARGO_BIN_EXE_ostler").replace('\'', r"'\''");
    let notes = place.path("system");
    let text = format!(
        "#!/bin/sh\nlast=\nfor word; do\n\
         [ \"$last\" = --append-system-prompt-file ] && cat \"$word\" >> '{0}' && echo '|' >> '{0}'\n\
         last=$word\ndone\nexec '{ostler}' scripted --as claude -- \"$@\"\n",
        notes.display()
    );
    place.program("noted-claude", &text).to_str().unwrap().to_owned()
}

#[test]
fn edits_count_from_the_next_message_on_in_the_same_session() {
    let place = Place::new();
    let folder = place.path("me");
    let settings = json!({ "agent": { "path": agent(&place) }, "prompt": { "dir": folder } });
    let daemon = Daemon::start(&place, &settings);
    assert!(folder.join("skills/example/SKILL.md").is_file(), "{}", daemon.log());
    assert!(daemon.log().contains("templates of prompt files were written"), "{}", daemon.log());
    let mut client = daemon.client();
    let mut ask = |text: &str| -> Value {
        let job = send(&mut client, "main", text);
        let end = ended(&mut client, &job);
        assert_eq!(end["state"], "done", "{end}");
        end["complete"]["session_id"].clone()
    };
    let session = ask("templates say nothing");
    assert!(!place.path("system").exists());
    fs::write(folder.join("IDENTITY.md"), "You are Ada.").unwrap();
    assert_eq!(ask("one"), session);
    assert_eq!(ask("two"), session);
    fs::write(folder.join("IDENTITY.md"), "You are Bob.").unwrap();
    assert_eq!(ask("three"), session);
    fs::remove_file(folder.join("IDENTITY.md")).unwrap();
    fs::create_dir(folder.join("IDENTITY.md")).unwrap();
    assert_eq!(ask("four"), session);
    assert_eq!(ask("five"), session);
    let noted = fs::read_to_string(place.path("system")).unwrap();
    // A process for each text: the second message found the one of the first.
    assert_eq!(noted, "# Identity\n\nYou are Ada.|\n# Identity\n\nYou are Bob.|\n");
    let log = daemon.log();
    assert_eq!(log.matches("it is a folder and no file").count(), 1, "{log}");
    assert_eq!(daemon.stop(), Some(0));
}

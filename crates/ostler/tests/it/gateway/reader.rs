//! A reader that stops reading.

use serde_json::{Value, json};

use super::daemon::{Daemon, ended};
use crate::{client::Client, support::Place};

/// How much an agent says in a turn: more than a connection holds on its way.
const BYTES: usize = 2_000_000;

/// Sends a message that is answered by a process of its own, as only that is
/// played here, and returns its job.
fn send(client: &mut Client) -> String {
    let request = json!({
        "type": "send", "conversation": "local:main", "text": "hello", "cold": true,
    });
    client.ask(&request).unwrap()["job"].as_str().unwrap().to_owned()
}

#[test]
fn a_reader_that_does_not_read_holds_nothing_up_and_misses_nothing() {
    let place = Place::new();
    let flood = json!([
        { "do": "line", "text": r#"{"type":"thread.started","thread_id":"01a1e088-9109-7530-b2ac-e9fa07582dea"}"# },
        { "do": "flood", "bytes": BYTES, "line_bytes": 8192,
          "template": r#"{"type":"item.completed","item":{"id":"item_{n}","type":"reasoning","text":"{pad}"}}"# },
        { "do": "line", "text": r#"{"type":"item.completed","item":{"id":"item_0","type":"agent_message","text":"done"}}"# },
        { "do": "line", "text": r#"{"type":"turn.completed","usage":{"input_tokens":1,"output_tokens":1}}"# },
    ]);
    let agent = place.script(&flood);
    let settings = json!({ "agent": { "default": "codex", "path": agent } });
    let daemon = Daemon::start(&place, &settings);
    let mut slow = daemon.client();
    slow.tell(&json!({ "type": "follow", "after": 0 })).unwrap();
    let mut client = daemon.client();
    let mut newest = 0;
    let mut turns = 0;
    for _ in 0..3 {
        let job = send(&mut client);
        assert_eq!(ended(&mut client, &job)["state"], "done");
        turns += 1;
    }
    // The last of everything, as somebody sees it who comes now.
    let mut late = daemon.client();
    late.tell(&json!({ "type": "follow", "after": 0 })).unwrap();
    let mut completes = 0;
    while completes < turns {
        let line = late.hear().unwrap();
        completes += u32::from(line["event"]["type"] == "complete");
        newest = line["number"].as_i64().unwrap();
    }
    let mut bytes = 0;
    for number in 1..=newest {
        let line: Value = slow.hear().unwrap();
        assert_eq!(line["number"], number, "{line}");
        bytes += line["event"]["text"].as_str().map_or(0, str::len);
    }
    assert!(bytes > 2 * BYTES, "{bytes}");
    // And it goes on from there, live.
    let job = send(&mut client);
    assert_eq!(slow.hear().unwrap()["number"], newest + 1);
    assert_eq!(ended(&mut client, &job)["state"], "done");
    drop(slow);
    assert_eq!(daemon.stop(), Some(0));
}

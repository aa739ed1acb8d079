//! Messages that a gateway does not take, and what it does all the same.

use serde_json::{Value, json};

use super::daemon::{Daemon, ended, send};
use crate::support::Place;

#[test]
fn what_cannot_be_a_message_is_refused_and_the_connection_goes_on() {
    let place = Place::new();
    let daemon = Daemon::start(&place, &json!({}));
    let mut client = daemon.client();
    let to = |conversation: &str| json!({ "type": "send", "conversation": conversation, "text": "hello" });
    let long = format!("local:{}", "x".repeat(100_000));
    let wrong: [(Value, &str); 12] = [
        (to("local:a\u{7}b"), "control"),
        (to("local:a\nb"), "control"),
        (to("lo\u{1b}cal:a"), ""),
        (to("local:"), "empty"),
        (to(&long), "longer"),
        (to("main"), ""),
        (to("pigeon:main"), "pigeon"),
        (to("webhook:ftp://127.0.0.1/"), "http"),
        (json!({ "type": "send", "conversation": "local:main", "text": " \n" }), "prompt required"),
        (json!({ "type": "send", "conversation": "local:main", "text": 1 }), ""),
        (json!({ "type": "sing" }), ""),
        (json!(["send"]), ""),
    ];
    for (request, says) in wrong {
        let answer = client.ask(&request).unwrap();
        assert_eq!(answer["type"], "refused", "{request}: {answer}");
        assert_eq!(answer["code"], "invalid_request", "{request}: {answer}");
        let message = answer["message"].as_str().unwrap();
        assert!(message.contains(says), "{request}: {message}");
        assert!(!message.chars().any(char::is_control), "{message:?}");
    }
    let agent = json!({
        "type": "send", "conversation": "local:main", "text": "hello", "agent": "clyde",
    });
    let answer = client.ask(&agent).unwrap();
    assert_eq!((&answer["type"], &answer["code"]), (&json!("refused"), &json!("invalid_request")));
    assert!(answer["message"].as_str().unwrap().contains("clyde"), "{answer}");
    let job = send(&mut client, "main", "hello");
    assert_eq!(ended(&mut client, &job)["state"], "done");
    let listed = place.run(&["queue", "list", "--output", "json"]).json();
    assert_eq!(listed["jobs"].as_array().unwrap().len(), 1, "nothing else was stored");
    assert_eq!(daemon.stop(), Some(0));
}

#[test]
fn a_conversation_is_told_that_too_much_waits_and_others_are_not_held_up_by_it() {
    let place = Place::new();
    let daemon = Daemon::start(&place, &json!({ "gateway": { "max_queue_depth": 2 } }));
    let mut client = daemon.client();
    let first = send(&mut client, "main", "sim:delay=60000");
    super::daemon::follow_until(&mut daemon.client(), &first, |line| {
        line["event"]["type"] == "started"
    });
    for _ in 0..2 {
        send(&mut client, "main", "hello");
    }
    let refused = super::daemon::try_send(&mut client, "main", "hello");
    assert_eq!((&refused["type"], &refused["code"]), (&json!("refused"), &json!("queue_full")));
    let cancelled = client.ask(&json!({ "type": "cancel", "job": first })).unwrap();
    assert_eq!(cancelled["type"], "cancelled", "{cancelled}");
    assert_eq!(ended(&mut client, &first)["state"], "cancelled");
    let job = crate::support::until("there is room again", || {
        let answer = super::daemon::try_send(&mut client, "main", "hello");
        answer["job"].as_str().map(str::to_owned)
    });
    assert_eq!(ended(&mut client, &job)["state"], "done");
    assert_eq!(daemon.stop(), Some(0));
}

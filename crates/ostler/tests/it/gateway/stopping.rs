//! A gateway that is told to stop while turns run.

use serde_json::{Value, json};

use super::daemon::{Daemon, ended, follow_until, send, try_send};
use crate::support::{Place, processes_with, until};

fn has_started(line: &Value) -> bool {
    line["event"]["type"] == "started"
}

#[test]
fn turns_get_their_grace_and_what_is_left_goes_on_in_its_session_after_the_restart() {
    let place = Place::new();
    let daemon = Daemon::start(&place, &json!({ "gateway": { "shutdown_grace": "2s" } }));
    let mut client = daemon.client();
    let first = send(&mut client, "long", "hello");
    let session = ended(&mut client, &first)["complete"]["session_id"].clone();
    assert!(session.is_string());

    let long = send(&mut client, "long", "sim:delay=60000");
    let next = send(&mut client, "long", "sim:history");
    let short = send(&mut client, "short", "sim:delay=500");
    for job in [&long, &short] {
        follow_until(&mut daemon.client(), job, has_started);
    }
    let mut follower = daemon.client();
    follower.tell(&json!({ "type": "follow", "job": short })).unwrap();
    daemon.signal("TERM");
    let refusal = until("nothing more is accepted", || match try_ask(&mut client) {
        Some(answer) if answer["type"] == "accepted" => None,
        answer => Some(answer),
    });
    if let Some(refusal) = refusal {
        assert_eq!((&refusal["type"], &refusal["code"]), (&json!("refused"), &json!("stopping")));
    }
    assert_eq!(daemon.wait(), Some(0));
    let agent = place.path("bin/played-claude");
    assert_eq!(processes_with(agent.to_str().unwrap()), Vec::<u32>::new());

    let state =
        |job: &str| place.run(&["queue", "show", job, "--output", "json"]).json()["state"].clone();
    assert_eq!(state(&short), "done", "it ended within the grace");
    assert_eq!(state(&long), "ready", "it is left for the next gateway");
    assert_eq!(state(&next), "waiting");

    let daemon = Daemon::start_again(&place);
    let mut client = daemon.client();
    let started = follow_until(&mut daemon.client(), &long, |line| {
        has_started(line) && line["event"]["attempt"] == 2
    });
    assert_eq!(started["event"]["session_id"], session, "{started}");
    assert_eq!(started["event"]["resumed"], true, "{started}");
    let cancelled = client.ask(&json!({ "type": "cancel", "job": long })).unwrap();
    assert_eq!(cancelled["type"], "cancelled", "{cancelled}");
    assert_eq!(ended(&mut client, &long)["state"], "cancelled");
    let end = ended(&mut client, &next);
    assert_eq!((&end["state"], &end["complete"]["session_id"]), (&json!("done"), &session));
    assert_eq!(daemon.stop(), Some(0));
}

/// Sends something, as somebody who may find nobody there any more.
fn try_ask(client: &mut crate::client::Client) -> Option<Value> {
    let request = json!({ "type": "send", "conversation": "local:late", "text": "hello" });
    client.ask(&request).ok()
}

#[test]
fn a_second_signal_ends_it_at_once_and_the_turn_goes_on_later() {
    let place = Place::new();
    let daemon = Daemon::start(&place, &json!({}));
    let mut client = daemon.client();
    let job = send(&mut client, "main", "sim:delay=60000");
    follow_until(&mut daemon.client(), &job, has_started);
    daemon.signal("TERM");
    until("it is stopping", || {
        daemon.log().contains("a second signal stops at once").then_some(())
    });
    daemon.signal("TERM");
    assert_eq!(daemon.wait(), Some(130));
    let agent = place.path("bin/played-claude");
    until("its agents are gone", || {
        processes_with(agent.to_str().unwrap()).is_empty().then_some(())
    });
    let daemon = Daemon::start_again(&place);
    follow_until(&mut daemon.client(), &job, |line| {
        has_started(line) && line["event"]["attempt"] == 2
    });
    let mut client = daemon.client();
    client.ask(&json!({ "type": "cancel", "job": job })).unwrap();
    assert_eq!(ended(&mut client, &job)["state"], "cancelled");
    assert_eq!(try_send(&mut client, "main", "hello")["type"], "accepted");
    assert_eq!(daemon.stop(), Some(0));
}

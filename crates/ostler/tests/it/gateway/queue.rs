//! Ten thousand messages that wait.

use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

use serde_json::json;
use sqlx::{Connection as _, SqliteConnection, sqlite::SqliteConnectOptions};

use super::daemon::{Daemon, send};
use crate::support::{Place, until};

const CONVERSATIONS: usize = 200;
const MESSAGES: usize = 50;
const SENDERS: usize = 20;

#[test]
fn ten_thousand_waiting_messages_slow_no_start_and_keep_their_order() {
    let place = Place::new();
    let limits = json!({ "max_concurrent_turns": 1, "max_queue_depth": 20_000 });
    let daemon = Daemon::start(&place, &json!({ "gateway": limits }));
    // The only one that runs, and it does not end.
    send(&mut daemon.client(), "first", "sim:hang");
    std::thread::scope(|scope| {
        for sender in 0..SENDERS {
            let mut client = daemon.client();
            scope.spawn(move || {
                for message in 0..MESSAGES {
                    for conversation in (sender..CONVERSATIONS).step_by(SENDERS) {
                        send(&mut client, &conversation.to_string(), &message.to_string());
                    }
                }
            });
        }
    });
    daemon.signal("KILL");
    daemon.wait();

    // From now on a fixed text is the answer, so that all of them can be answered.
    let reply = json!({ "mode": "text", "text": "later", "agent": { "kind": "claude" } });
    let limits = json!({ "max_concurrent_turns": 8, "max_queue_depth": 20_000 });
    let began = Instant::now();
    let daemon =
        Daemon::start(&place, &json!({ "gateway": limits, "inbound": { "reply": reply } }));
    let took = began.elapsed();
    assert!(took < Duration::from_secs(5), "it took {took:?} to start");
    let mut client = daemon.client();
    until("all are answered", || {
        let standing = client.ask(&json!({ "type": "status" })).unwrap();
        let done = standing["queue"]["done"].as_u64().unwrap();
        (done == u64::try_from(CONVERSATIONS * MESSAGES).unwrap() + 1).then_some(())
    });
    assert_eq!(daemon.stop(), Some(0));
    check_order(&place);
}

/// Each conversation's jobs ended one after the other, in the order of their texts.
fn check_order(place: &Place) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let rows: Vec<(String, String, i64, i64)> = runtime.block_on(async {
        let options = SqliteConnectOptions::new().filename(place.path("data/ostler.db"));
        let mut connection = SqliteConnection::connect_with(&options).await.unwrap();
        let sql = "SELECT lane, payload, started_at, ended_at FROM jobs ORDER BY lane, seq";
        sqlx::query_as(sql).fetch_all(&mut connection).await.unwrap()
    });
    let mut lanes: BTreeMap<String, (usize, i64)> = BTreeMap::new();
    for (lane, payload, started_at, ended_at) in rows {
        let payload: serde_json::Value = serde_json::from_str(&payload).unwrap();
        if payload["text"] == "sim:hang" {
            continue;
        }
        let (next, last_end) = lanes.entry(lane).or_default();
        assert_eq!(payload["text"], next.to_string());
        assert!(started_at >= *last_end && ended_at >= started_at);
        (*next, *last_end) = (*next + 1, ended_at);
    }
    assert_eq!(lanes.len(), CONVERSATIONS);
    assert!(lanes.values().all(|(n_messages, _)| *n_messages == MESSAGES));
}

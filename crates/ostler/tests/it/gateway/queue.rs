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
/// Many, so that many of their messages are made durable at once.
const SENDERS: usize = 50;
/// How many answers are waited for.
const ANSWERS: u64 = 2000;

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

    // From now on a fixed text is the answer, so that many of them can be answered.
    let reply = json!({ "mode": "text", "text": "later", "agent": { "kind": "claude" } });
    let limits = json!({ "max_concurrent_turns": 8, "max_queue_depth": 20_000 });
    let began = Instant::now();
    let daemon =
        Daemon::start(&place, &json!({ "gateway": limits, "inbound": { "reply": reply } }));
    let took = began.elapsed();
    assert!(took < Duration::from_secs(5), "it took {took:?} to start");
    let mut client = daemon.client();
    until("many are answered", || {
        let standing = client.ask(&json!({ "type": "status" })).unwrap();
        (standing["queue"]["done"].as_u64().unwrap() >= ANSWERS).then_some(())
    });
    assert_eq!(daemon.stop(), Some(0));
    check_order(&place);
}

/// A job as it is stored: lane, payload, state, started, ended.
type Row = (String, String, String, Option<i64>, Option<i64>);

/// In each conversation those are answered that came first, one after the other,
/// and the others still wait in the order of their texts.
fn check_order(place: &Place) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let rows: Vec<Row> = runtime.block_on(async {
        let options = SqliteConnectOptions::new().filename(place.path("data/ostler.db"));
        let mut connection = SqliteConnection::connect_with(&options).await.unwrap();
        let sql = "SELECT lane, payload, state, started_at, ended_at FROM jobs ORDER BY lane, seq";
        sqlx::query_as(sql).fetch_all(&mut connection).await.unwrap()
    });
    assert_eq!(rows.len(), CONVERSATIONS * MESSAGES + 1);
    let mut lanes: BTreeMap<String, Lane> = BTreeMap::new();
    for (lane, payload, state, started_at, ended_at) in rows {
        let payload: serde_json::Value = serde_json::from_str(&payload).unwrap();
        if payload["text"] == "sim:hang" {
            continue;
        }
        let lane = lanes.entry(lane).or_default();
        assert_eq!(payload["text"], lane.next.to_string());
        lane.next += 1;
        if state == "done" {
            assert!(!lane.waits, "one that came later was answered first");
            assert!(started_at >= lane.last_end && ended_at >= started_at);
            lane.last_end = ended_at;
        } else {
            lane.waits = true;
        }
    }
    assert_eq!(lanes.len(), CONVERSATIONS);
}

/// How far one has come with a conversation.
#[derive(Default)]
struct Lane {
    /// The text of the next message.
    next: usize,
    /// When the last one was answered.
    last_end: Option<i64>,
    /// Whether one was seen that is not.
    waits: bool,
}

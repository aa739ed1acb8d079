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

/// A message that needs no agent to be answered, so that many can be.
const RESET: &str = "/new";

#[test]
fn ten_thousand_waiting_messages_slow_no_start_and_keep_their_order() {
    let place = Place::new();
    let limits = json!({ "max_concurrent_turns": 1, "max_queue_depth": 20_000 });
    let daemon = Daemon::start(&place, &json!({ "gateway": limits }));
    // The only one that runs, and it does not end.
    send(&mut daemon.client(), "first", "sim:hang");
    let sent = fill(&daemon);
    daemon.signal("KILL");
    daemon.wait();

    let limits = json!({ "max_concurrent_turns": 8, "max_queue_depth": 20_000 });
    let began = Instant::now();
    let daemon = Daemon::start(&place, &json!({ "gateway": limits }));
    let took = began.elapsed();
    assert!(took < Duration::from_secs(5), "it took {took:?} to start");
    let mut client = daemon.client();
    until("many are answered", || {
        let standing = client.ask(&json!({ "type": "status" })).unwrap();
        (standing["queue"]["done"].as_u64().unwrap() >= ANSWERS).then_some(())
    });
    daemon.signal("KILL");
    daemon.wait();
    check_order(&place, &sent);
}

/// Sends all of them, and returns the jobs of each conversation in their order.
fn fill(daemon: &Daemon) -> Vec<Vec<String>> {
    let send_to = |conversations: std::iter::StepBy<std::ops::Range<usize>>| {
        let mut client = daemon.client();
        let mut sent: Vec<_> = conversations.map(|number| (number, Vec::new())).collect();
        for _ in 0..MESSAGES {
            for (conversation, jobs) in &mut sent {
                jobs.push(send(&mut client, &conversation.to_string(), RESET));
            }
        }
        sent
    };
    let sent: Vec<_> = std::thread::scope(|scope| {
        let senders: Vec<_> = (0..SENDERS)
            .map(|sender| scope.spawn(move || send_to((sender..CONVERSATIONS).step_by(SENDERS))))
            .collect();
        senders.into_iter().flat_map(|sender| sender.join().unwrap()).collect()
    });
    sent.into_iter().map(|(_, jobs)| jobs).collect()
}

/// How a job stands in the end.
#[derive(Clone, Debug)]
struct Standing {
    lane: String,
    seq: i64,
    state: String,
    started_at: Option<i64>,
    ended_at: Option<i64>,
}

/// In each conversation those are answered that came first, one after the other,
/// and the others still wait, in the order in which they came.
fn check_order(place: &Place, sent: &[Vec<String>]) {
    let standings = read(place);
    assert_eq!(standings.len(), CONVERSATIONS * MESSAGES + 1);
    for jobs in sent {
        let jobs: Vec<_> = jobs.iter().map(|job| &standings[job]).collect();
        for pair in jobs.windows(2) {
            let [before, after] = pair else { continue };
            assert_eq!((&before.lane, before.seq + 1), (&after.lane, after.seq));
            if after.state == "done" {
                assert_eq!(before.state, "done", "one that came later was answered first");
                assert!(after.started_at >= before.ended_at, "{before:?} {after:?}");
            }
        }
    }
}

type JobRow = (String, String, i64, String, Option<i64>, Option<i64>);

fn read(place: &Place) -> BTreeMap<String, Standing> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let rows: Vec<JobRow> = runtime.block_on(async {
        let options = SqliteConnectOptions::new().filename(place.path("data/ostler.db"));
        let mut connection = SqliteConnection::connect_with(&options).await.unwrap();
        let sql = "SELECT id, lane, seq, state, started_at, ended_at FROM jobs";
        sqlx::query_as(sql).fetch_all(&mut connection).await.unwrap()
    });
    let row = |(id, lane, seq, state, started_at, ended_at)| {
        (id, Standing { lane, seq, state, started_at, ended_at })
    };
    rows.into_iter().map(row).collect()
}

//! The socket with a gateway behind it.

use std::{path::PathBuf, time::Duration};

use ostler_core::permission::Decision;
use proptest::{prelude::*, strategy::ValueTree as _, test_runner::TestRunner};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::{
    io::{AsyncWriteExt as _, BufReader},
    net::{
        UnixStream,
        unix::{OwnedReadHalf, OwnedWriteHalf},
    },
    time,
};

use super::{
    client::{ConnectError, Connection},
    lines::LineReader,
    listen::Listening,
    message::{MAX_LINE, MAX_PROMPT_LINE},
    server::Server,
};
use crate::{
    clock::Millis,
    gateway::testing::{Knobs, Rig},
    id::{ConversationId, JobId, PermissionId, TurnId},
    store::{
        Store,
        conversations::{self, Address},
        events::{self, NewEvent},
        permissions::{self, NewRequest},
        testing::on_sqlite,
        turns::{self, NewTurn},
    },
};

/// The longest that anything may take.
const LIMIT: Duration = Duration::from_secs(60);

/// A gateway that listens.
struct Stand {
    rig: Rig,
    server: Server,
    path: PathBuf,
    _folder: TempDir,
}

impl Stand {
    async fn new(store: Store) -> Self {
        let rig = Rig::new(store, Knobs::default()).await;
        let folder = tempfile::Builder::new().prefix("os").tempdir().unwrap();
        let listening = Listening::bind(folder.path()).await.unwrap();
        let path = super::path(folder.path());
        let server = Server::start(listening, rig.gateway.clone());
        Self { rig, server, path, _folder: folder }
    }

    async fn connect(&self) -> Client {
        let mut client = self.connect_unheard().await;
        let hello = client.hear().await;
        assert_eq!((&hello["type"], &hello["protocol"]), (&json!("hello"), &json!(1)));
        client
    }

    async fn connect_unheard(&self) -> Client {
        let (from, to) = UnixStream::connect(&self.path).await.unwrap().into_split();
        Client { lines: LineReader::new(BufReader::new(from), usize::MAX), to }
    }

    async fn stop(self) {
        self.rig.stop().await;
        self.server.stop(LIMIT).await;
        assert!(!self.path.exists());
    }
}

/// Somebody who talks to it.
struct Client {
    lines: LineReader<BufReader<OwnedReadHalf>>,
    to: OwnedWriteHalf,
}

impl Client {
    async fn say(&mut self, message: Value) {
        self.write(message.to_string().as_bytes()).await;
    }

    async fn write(&mut self, line: &[u8]) {
        self.to.write_all(&[line, b"\n"].concat()).await.unwrap();
    }

    /// Returns what is said next; null at the end.
    async fn hear(&mut self) -> Value {
        let line = time::timeout(LIMIT, self.lines.next()).await.unwrap().unwrap();
        line.map_or(Value::Null, |line| serde_json::from_slice(&line).unwrap())
    }

    async fn ask(&mut self, message: Value) -> Value {
        self.say(message).await;
        self.hear().await
    }

    /// Hears events up to the end, and returns both.
    async fn hear_to_the_end(&mut self) -> (Vec<Value>, Value) {
        let mut events = Vec::new();
        loop {
            let heard = self.hear().await;
            match heard["type"].as_str() {
                Some("event") => events.push(heard),
                _ => return (events, heard),
            }
        }
    }
}

fn send(text: &str) -> Value {
    json!({ "type": "send", "conversation": "local:main", "text": text })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_message_is_accepted_and_followed_to_its_answer_and_the_connection_goes_on() {
    on_sqlite(async |store| {
        let stand = Stand::new(store).await;
        let mut client = stand.connect().await;
        let accepted = client.ask(send("hello")).await;
        assert_eq!((&accepted["type"], &accepted["again"]), (&json!("accepted"), &json!(false)));
        client.say(json!({ "type": "follow", "job": accepted["job"] })).await;
        let (events, ended) = client.hear_to_the_end().await;
        let types: Vec<_> = events.iter().map(|event| event["event"]["type"].as_str()).collect();
        assert_eq!((types[0], types.last()), (Some("started"), Some(&Some("complete"))));
        assert_eq!((&ended["type"], &ended["state"]), (&json!("ended"), &json!("done")));
        assert_eq!(ended["complete"]["response_text"], "hello");
        let status = client.ask(json!({ "type": "status" })).await;
        assert_eq!((&status["type"], &status["queue"]["done"]), (&json!("status"), &json!(1)));
        assert_eq!(client.ask(json!({ "type": "look" })).await["type"], "looked");
        let first = events[0]["number"].as_i64().unwrap();
        let from =
            json!({ "type": "follow", "conversation": accepted["conversation"], "after": first });
        assert_eq!(client.ask(from).await, events[1]);
        stand.stop().await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_same_message_twice_is_accepted_once_also_on_another_connection() {
    on_sqlite(async |store| {
        let stand = Stand::new(store).await;
        let mut message = send("once");
        message["id"] = json!("m1");
        let first = stand.connect().await.ask(message.clone()).await;
        let second = stand.connect().await.ask(message).await;
        assert_eq!((&first["job"], &second["again"]), (&second["job"], &json!(true)));
        stand.stop().await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_cannot_be_done_is_refused_and_the_connection_goes_on() {
    on_sqlite(async |store| {
        let stand = Stand::new(store).await;
        let mut client = stand.connect().await;
        for (message, code) in [
            (json!({ "type": "dance" }), "invalid_request"),
            (send(" \n"), "invalid_request"),
            (json!({ "type": "send", "conversation": "pigeon:x", "text": "a" }), "invalid_request"),
            (
                json!({ "type": "send", "conversation": "webhook:x", "text": "a" }),
                "invalid_request",
            ),
            (json!({ "type": "follow", "job": JobId::new() }), "unknown_job"),
            (
                json!({ "type": "answer", "request": PermissionId::new(), "decision": "allow" }),
                "unknown_request",
            ),
        ] {
            let refused = client.ask(message.clone()).await;
            assert_eq!((&refused["type"], &refused["code"]), (&json!("refused"), &json!(code)));
        }
        let cancelled = client.ask(json!({ "type": "cancel", "job": JobId::new() })).await;
        assert_eq!(cancelled["outcome"], "unknown_job");
        let nothing = json!({ "type": "cancel", "conversation": ConversationId::new() });
        assert_eq!(client.ask(nothing).await["outcome"], "nothing_to_cancel");
        stand.stop().await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_line_that_is_too_long_is_refused_and_ends_the_connection() {
    on_sqlite(async |store| {
        let stand = Stand::new(store).await;
        let endless = vec![b'x'; MAX_PROMPT_LINE + 1];
        let mut long = json!({ "type": "status", "more": "x".repeat(MAX_LINE) }).to_string();
        long.push('\n');
        for line in [endless.as_slice(), long.as_bytes()] {
            let mut client = stand.connect().await;
            // The gateway may hang up before it has all.
            client.to.write_all(line).await.ok();
            let refused = client.hear().await;
            assert_eq!(refused["code"], "invalid_request");
            assert!(refused["message"].as_str().unwrap().contains("too long"), "{refused}");
            assert!(!matches!(client.lines.next().await, Ok(Some(_))));
        }
        let mut client = stand.connect().await;
        let accepted = client.ask(send(&"fail ".repeat(MAX_LINE / 4))).await;
        assert_eq!(accepted["type"], "accepted");
        stand.stop().await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_line_that_was_cut_by_the_end_of_the_connection_does_nothing() {
    on_sqlite(async |store| {
        let stand = Stand::new(store).await;
        let line = send("hello").to_string();
        for cut in [1, line.len() / 2, line.len() - 1] {
            let mut client = stand.connect().await;
            client.to.write_all(&line.as_bytes()[..cut]).await.unwrap();
            client.to.shutdown().await.unwrap();
            assert_eq!(client.hear().await["code"], "invalid_request");
            assert_eq!(client.hear().await, Value::Null);
        }
        let status = stand.connect().await.ask(json!({ "type": "status" })).await;
        assert_eq!((&status["queue"]["ready"], &status["queue"]["done"]), (&json!(0), &json!(0)));
        stand.stop().await;
    })
    .await;
}

/// A request that begins nothing, with something changed in it.
fn any_line() -> impl Strategy<Value = Vec<u8>> {
    let whole = prop_oneof![
        Just(json!({ "type": "status" })),
        Just(json!({ "type": "look", "more": [1, { "x": null }] })),
        Just(json!({ "type": "send", "conversation": "local:", "text": "x" })),
        Just(json!({ "type": "cancel", "job": "job_01890a5d" })),
        Just(json!({ "type": "answer", "request": "prm_1", "decision": "allow" })),
        Just(json!({ "type": ["send"] })),
    ];
    let changed =
        (whole, any::<prop::sample::Index>(), any::<u8>()).prop_map(|(line, at, byte)| {
            let mut line = line.to_string().into_bytes();
            let at = at.index(line.len());
            line[at] = byte;
            line
        });
    let bytes = prop::collection::vec(any::<u8>(), 0..100);
    prop_oneof![changed, bytes].prop_map(|mut line| {
        line.retain(|byte| *byte != b'\n');
        line
    })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whatever_a_line_is_it_is_refused_or_answered_and_the_connection_goes_on() {
    on_sqlite(async |store| {
        let stand = Stand::new(store).await;
        let mut client = stand.connect().await;
        let mut runner = TestRunner::deterministic();
        for _ in 0..500 {
            let line = any_line().new_tree(&mut runner).unwrap().current();
            client.write(&line).await;
            client.say(json!({ "type": "the next" })).await;
            if !line.iter().all(u8::is_ascii_whitespace) {
                let heard = client.hear().await;
                assert!(heard["type"].is_string(), "{heard}");
            }
            let refused = client.hear().await;
            assert!(refused["message"].as_str().unwrap().contains("the next"), "{refused}");
        }
        stand.stop().await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_job_can_be_cancelled_by_who_follows_it_but_nothing_else_is_done_meanwhile() {
    on_sqlite(async |store| {
        let stand = Stand::new(store).await;
        let mut client = stand.connect().await;
        let job = client.ask(send("hang")).await["job"].clone();
        client.say(json!({ "type": "follow", "job": job })).await;
        stand.rig.until_hanging().await;
        assert_eq!(client.hear().await["event"]["type"], "started");
        assert_eq!(client.ask(json!({ "type": "status" })).await["code"], "following");
        assert_eq!(client.ask(send("meanwhile")).await["code"], "following");
        client.write(b"nonsense").await;
        assert_eq!(client.hear().await["code"], "invalid_request");
        client.say(json!({ "type": "cancel", "job": job })).await;
        let mut heard = Vec::new();
        while heard.last().is_none_or(|last: &Value| last["type"] != "ended") {
            heard.push(client.hear().await);
        }
        assert_eq!(heard.last().unwrap()["state"], "cancelled");
        let cancelled = heard.iter().find(|heard| heard["type"] == "cancelled").unwrap();
        assert_eq!(cancelled["outcome"], "cancel_requested");
        assert_eq!(client.ask(json!({ "type": "look" })).await["type"], "looked");
        stand.stop().await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_conversation_is_cancelled_with_all_that_waits_in_it() {
    on_sqlite(async |store| {
        let stand = Stand::new(store).await;
        let mut client = stand.connect().await;
        let running = client.ask(send("hang")).await;
        stand.rig.until_hanging().await;
        client.ask(send("second")).await;
        let all = json!({ "type": "cancel", "conversation": running["conversation"] });
        let cancelled = client.ask(all).await;
        assert_eq!(cancelled["outcome"], "cancel_requested");
        assert_eq!((&cancelled["waiting"], &cancelled["running"]), (&json!(1), &running["job"]));
        stand.stop().await;
    })
    .await;
}

/// Stores a request for permission; returns its id.
async fn ask_for_permission(store: &Store) -> PermissionId {
    store
        .must((), |conn, ()| {
            Box::pin(async move {
                let address = Address::new("local", "asked").unwrap();
                let now = Millis::now();
                let conversation = conversations::find_or_begin(conn, &address, now).await?.id;
                let turn = NewTurn {
                    id: TurnId::new(),
                    conversation,
                    job: None,
                    attempt: 1,
                    agent: "pi".to_owned(),
                    begun_at: now,
                };
                turns::begin(conn, &turn).await?;
                let request = NewRequest {
                    conversation,
                    turn: turn.id,
                    request: "r1".to_owned(),
                    body: "{}".to_owned(),
                    asked_of: None,
                    asked_at: now,
                    expires_at: now.after(LIMIT),
                };
                permissions::ask(conn, PermissionId::new(), &request).await
            })
        })
        .await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_request_is_answered_once() {
    on_sqlite(async |store| {
        let stand = Stand::new(store.clone()).await;
        let request = ask_for_permission(&store).await;
        let mut client = stand.connect().await;
        let answer =
            json!({ "type": "answer", "request": request, "decision": "deny", "text": "no" });
        let answered = client.ask(answer.clone()).await;
        assert_eq!(
            (&answered["type"], &answered["outcome"]),
            (&json!("answered"), &json!("taken"))
        );
        assert_eq!(client.ask(answer).await["code"], "decided");
        let stored = store.read(request, |conn, id| Box::pin(permissions::find(conn, *id))).await;
        let decision = stored.unwrap().unwrap().resolution.unwrap().decision;
        assert_eq!(decision.decision, Decision::Deny.code());
        stand.stop().await;
    })
    .await;
}

/// Stores this many events, each of a kilobyte.
async fn fill(store: &Store, n_events: i64) {
    let body = json!({ "type": "output", "text": "x".repeat(1000) }).to_string();
    let event = |seq| NewEvent {
        conversation: None,
        turn: None,
        seq,
        at: Millis(seq),
        kind: "output".to_owned(),
        body: body.clone(),
        belongs: None,
    };
    let events: Vec<_> = (1..=n_events).map(event).collect();
    store
        .must(events, |conn, events| {
            Box::pin(async move { events::append(conn, events).await.map(drop) })
        })
        .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_does_not_read_stops_nobody_else_and_reads_everything_later() {
    const EVENTS: i64 = 3_000;
    on_sqlite(async |store| {
        let stand = Stand::new(store.clone()).await;
        fill(&store, EVENTS).await;
        let (mut slow, mut stuck) = (stand.connect().await, stand.connect().await);
        for client in [&mut slow, &mut stuck] {
            client.say(json!({ "type": "follow", "after": 0 })).await;
        }
        let mut other = stand.connect().await;
        let job = other.ask(send("hello")).await["job"].clone();
        other.say(json!({ "type": "follow", "job": job })).await;
        assert_eq!(other.hear_to_the_end().await.1["complete"]["response_text"], "hello");
        for number in 1..=EVENTS {
            assert_eq!(slow.hear().await["number"], number);
        }
        stand.rig.stop().await;
        // Nobody reads from this one; it is cut.
        stand.server.stop(Duration::from_millis(50)).await;
        drop(stuck);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_comes_after_events_were_removed_is_told_so() {
    on_sqlite(async |store| {
        let stand = Stand::new(store.clone()).await;
        fill(&store, 10).await;
        store.must((), |conn, ()| Box::pin(events::remove_before(conn, Millis(6), 100))).await;
        let mut client = stand.connect().await;
        let missed = client.ask(json!({ "type": "follow", "after": 2 })).await;
        assert_eq!((&missed["type"], &missed["number"]), (&json!("missed"), &json!(5)));
        assert_eq!(client.hear().await["number"], 6);
        let mut client = stand.connect().await;
        assert_eq!(client.ask(json!({ "type": "follow" })).await["number"], 6);
        stand.stop().await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_connection_too_many_is_told_so_and_takes_the_place_of_one_that_ended() {
    on_sqlite(async |store| {
        let stand = Stand::new(store).await;
        let mut clients = Vec::new();
        for _ in 0..256 {
            clients.push(stand.connect().await);
        }
        let refused = stand.connect_unheard().await.hear().await;
        assert_eq!(refused["code"], "too_many_connections");
        let error = Connection::open(&stand.path).await.unwrap_err();
        assert!(matches!(error, ConnectError::Refused(_)), "{error}");
        clients.pop();
        let is_let_in = async {
            while Connection::open(&stand.path).await.is_err() {
                tokio::task::yield_now().await;
            }
        };
        time::timeout(LIMIT, is_let_in).await.unwrap();
        stand.stop().await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_follows_a_turn_is_told_its_end_while_the_gateway_stops() {
    on_sqlite(async |store| {
        let stand = Stand::new(store).await;
        let mut client = stand.connect().await;
        let job = client.ask(send("gate")).await["job"].clone();
        stand.rig.until_hanging().await;
        let mut idle = stand.connect().await;
        client.say(json!({ "type": "follow", "job": job })).await;
        assert_eq!(client.hear().await["event"]["type"], "started");
        stand.rig.gateway.close();
        stand.server.close();
        let is_gone = async {
            while stand.path.exists() {
                tokio::task::yield_now().await;
            }
        };
        time::timeout(LIMIT, is_gone).await.unwrap();
        assert_eq!(idle.ask(send("late")).await["code"], "stopping");
        stand.rig.open_gate().await;
        stand.rig.stop().await;
        stand.server.stop(LIMIT).await;
        let (_, ended) = client.hear_to_the_end().await;
        assert_eq!(
            (&ended["type"], &ended["complete"]["response_text"]),
            (&json!("ended"), &json!("opened"))
        );
        assert_eq!((client.hear().await, idle.hear().await), (Value::Null, Value::Null));
    })
    .await;
}

//! What is shown of a turn, in a chat that does what each test says.

use serde_json::json;
use tokio::{sync::mpsc, time};

use super::{
    super::{
        testing::{Fake, by_changes, by_numbers},
        *,
    },
    *,
};
use crate::{
    channel::SMS,
    gateway::{
        inbound::Inbound,
        testing::{Knobs, Rig, inbound},
    },
    store::{
        Topic,
        conversations::Address,
        events::{self, NewEvent},
        posts,
        testing::on_both,
        turns,
    },
};

/// The longest that anything may take.
const LONG: Duration = Duration::from_secs(60);
const PLACE: &str = "+15551110001";

/// A turn that runs for somebody in a chat, and whoever shows it.
struct Stand {
    rig: Rig,
    shows: Shows,
    chat: Arc<Fake>,
    posted: mpsc::UnboundedReceiver<Post>,
    on_duty: watch::Sender<bool>,
    turn: TurnId,
    seq: i64,
}

impl Stand {
    async fn begin(store: Store, limits: Limits, is_on_duty: bool) -> Self {
        let rig = Rig::new(store.clone(), Knobs::default()).await;
        let (chat, posted) = Fake::new(limits);
        let on_duty = watch::Sender::new(is_on_duty);
        let mut chats = Chats::default();
        chats.add(SMS, Arc::clone(&chat) as Arc<dyn Chat>, on_duty.subscribe());
        let shows = Shows::start(store.clone(), chats, rig.policy.subscribe());
        let address = Address::new(SMS, PLACE).unwrap();
        rig.try_send(Inbound { address, ..inbound("unused", "hang") }).await.unwrap();
        rig.until_hanging().await;
        let running = store.must((), |conn, ()| Box::pin(turns::running(conn, 2)));
        let [turn] = running.await[..] else { panic!("one turn runs") };
        Self { rig, shows, chat, posted, on_duty, turn, seq: 100 }
    }

    /// Adds events to the turn's log.
    async fn happens(&mut self, all: &[(&str, serde_json::Value)]) {
        let new = all.iter().map(|(kind, body)| {
            self.seq += 1;
            NewEvent {
                conversation: None,
                belongs: None,
                turn: Some(self.turn),
                seq: self.seq,
                at: Millis::now(),
                kind: (*kind).to_owned(),
                body: body.to_string(),
            }
        });
        let new: Vec<NewEvent> = new.collect();
        let stored = self.rig.store.must(new, |conn, new| {
            conn.wake(Topic::Events);
            Box::pin(async move { events::append(conn, new).await })
        });
        stored.await;
    }

    /// Waits until the store knows what the chat calls a part of the answer.
    async fn until_noted(&self, slot: &Slot) -> String {
        let turn = self.rig.store.must(self.turn, |conn, turn| Box::pin(turns::find(conn, *turn)));
        let id = turn.await.unwrap().turn.job.unwrap().to_string();
        let subject = Subject { id, channel: SMS.to_owned(), place: PLACE.to_owned() };
        let slot = slot.to_string();
        let noted = async {
            loop {
                let found =
                    self.rig.store.must(subject.clone(), |conn, of| Box::pin(posts::of(conn, of)));
                let mut found = found.await.into_iter();
                if let Some(message) = found.find_map(|it| it.message.filter(|_| it.slot == slot)) {
                    break message;
                }
            }
        };
        time::timeout(LONG, noted).await.unwrap()
    }

    async fn speak(&self) {
        self.on_duty.send_replace(true);
        self.rig
            .store
            .must((), |conn, ()| {
                conn.wake(Topic::Events);
                Box::pin(async { Ok(()) })
            })
            .await;
    }

    async fn next(&mut self) -> Post {
        time::timeout(LONG, self.posted.recv()).await.unwrap().unwrap()
    }

    async fn end(self) {
        self.shows.stop().await;
        self.rig.again().await.stop().await;
    }
}

fn asks(id: &str) -> (&'static str, serde_json::Value) {
    asks_for(id, "rm -r hay")
}

fn asks_for(id: &str, command: &str) -> (&'static str, serde_json::Value) {
    let input = json!({ "command": command });
    let options = ["allow", "deny"];
    let body = json!({
        "id": id, "request": id, "kind": "command", "tool": "Bash", "title": command,
        "input": input, "options": options,
    });
    ("permission", body)
}

fn says(text: &str) -> (&'static str, serde_json::Value) {
    ("output", json!({ "block": "0", "text": text }))
}

on_both! {
    async fn what_was_asked_while_no_gateway_spoke_is_shown_by_the_one_that_begins_to(store: Store) {
        let mut stand = Stand::begin(store, by_numbers(), false).await;
        // More than is read at once, so that what was asked lies behind it.
        let mut all = vec![says("a"); 600];
        all.push(asks("prm_1"));
        stand.happens(&all).await;
        stand.speak().await;
        assert!(stand.next().await.text.contains("1 Allow"));
        stand.end().await;
    }

    async fn what_is_asked_is_shown_although_the_chat_refused_something_else(store: Store) {
        let edits = Some(Duration::from_millis(1));
        let limits = Limits { edits, known_again: Some(LONG), ..by_numbers() };
        let mut stand = Stand::begin(store, limits, true).await;
        stand.chat.refuse_next();
        stand.happens(&[says("an answer that is not taken"), asks("prm_1")]).await;
        assert!(stand.next().await.text.contains("1 Allow"));
        stand.end().await;
    }

    async fn what_is_asked_and_did_not_arrive_is_asked_again(store: Store) {
        let mut stand = Stand::begin(store.clone(), by_numbers(), true).await;
        stand.happens(&[asks("prm_1")]).await;
        let first = stand.next().await;
        // The chat says later that it was lost; what comes next lets it be looked for.
        let message = stand.until_noted(&Slot::Asked("prm_1".to_owned())).await;
        let lost = store.must(message, |conn, message| {
            Box::pin(posts::delivered(conn, SMS, message, "failed", Some("lost")))
        });
        lost.await;
        stand.happens(&[says("more")]).await;
        assert_eq!(stand.next().await, first);
        stand.end().await;
    }

    async fn what_is_asked_comes_as_text_where_its_file_is_not_taken(store: Store) {
        let limits = Limits {
            text: 400, files: 1, file_bytes: 1 << 20, has_captions: true, ..by_changes()
        };
        let mut stand = Stand::begin(store, limits, true).await;
        stand.chat.has_no_files.store(true, std::sync::atomic::Ordering::Relaxed);
        let command: String = (0..100).map(|n| format!("step-{n}; ")).collect();
        stand.happens(&[asks_for("prm_1", &command)]).await;
        let mut all = String::new();
        while !all.contains("1 Allow") {
            all.push_str(&stand.next().await.text);
        }
        assert!((0..100).all(|n| all.contains(&format!("step-{n};"))), "{all}");
        stand.end().await;
    }
}

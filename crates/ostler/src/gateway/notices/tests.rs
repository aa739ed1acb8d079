//! What is told, how often, and to whom.

use std::time::Duration;

use serde_json::json;

use super::{
    testing::{LONG, command, deliver, deliver_as_usual, project},
    *,
};
use crate::{
    channel::{
        WEBHOOK, notice, reach,
        testing::{self, Receiver, Request},
        webhook::Limits,
    },
    config::Api,
    gateway::{
        commands::tests::entry,
        testing::{Knobs, Rig},
    },
    store::{
        Store,
        testing::{on_both, outbox_rows},
        webhooks::Webhook,
    },
};

fn knobs() -> Knobs {
    Knobs { api: Api { private_webhooks: true, ..Api::default() }, ..Knobs::default() }
}

async fn webhook(store: &Store, of: Option<ProjectId>, url: &str) -> WebhookId {
    let webhook = Webhook {
        id: WebhookId::new(),
        project: of,
        url: url.to_owned(),
        kinds: NoticeKind::ALL.to_vec(),
        secret: "whsec_test".to_owned(),
        created_by: "a test".to_owned(),
        created_at: now(),
    };
    let id = webhook.id;
    store.must(webhook, |conn, webhook| Box::pin(webhooks::add(conn, webhook))).await;
    id
}

fn now() -> Millis {
    Millis::now()
}

fn told_kind(request: &Request) -> (String, String, String) {
    let text = |pointer: &str| request.body.pointer(pointer).unwrap().as_str().unwrap().to_owned();
    (text("/type"), text("/data/state"), text("/data/command_id"))
}

/// Puts a message on its way as if it were another time.
async fn put_at(store: &Store, message: NewMessage, at: Millis) {
    store
        .must((message, at), |conn, (message, at)| {
            Box::pin(async move { outbox::put(conn, message, *at).await.map(drop) })
        })
        .await;
}

/// Takes what was told until so many came, answering each.
async fn heard(receiver: &mut Receiver, n: usize) -> Vec<(String, String, String)> {
    let mut heard = Vec::new();
    while heard.len() < n {
        let request = receiver.next().await;
        heard.push(told_kind(&request));
        request.answer(204);
    }
    heard
}

fn expected(of: &[(&str, &str)], id: CommandId) -> Vec<(String, String, String)> {
    of.iter()
        .map(|(kind, state)| ((*kind).to_owned(), (*state).to_owned(), id.to_string()))
        .collect()
}

on_both! {
    async fn a_webhook_hears_that_a_command_began_and_ended(store: Store) {
        let rig = Rig::new(store.clone(), knobs()).await;
        let mine = project(&store, "mine", &rig.path("")).await;
        let other = project(&store, "other", &rig.path("")).await;
        let mut receiver = Receiver::start().await;
        let mut all = Receiver::start().await;
        webhook(&store, Some(mine), &receiver.url).await;
        webhook(&store, None, &all.url).await;
        let delivery = deliver_as_usual(&store, rig.policy.subscribe());
        let first = command(&rig.gateway, mine, "very-private words").await;
        let began = receiver.next().await;
        assert_eq!(began.headers["ostler-event"], "command.started");
        let mut body = began.body.clone();
        assert_eq!(body["id"], began.key());
        body["id"] = json!("out");
        body["created_at"] = json!("then");
        assert_eq!(body, json!({
            "id": "out", "type": "command.started", "created_at": "then",
            "data": {
                "project_id": mine, "command_id": first, "stream_id": first, "kind": "prompt",
                "state": "running", "session_id": null, "provider": null, "result": null,
            },
        }));
        began.answer(200);
        let ended = receiver.next().await;
        assert_eq!(told_kind(&ended).0, "command.completed");
        assert_eq!(ended.body["data"]["session_id"], "s1");
        assert_eq!(ended.body["data"]["provider"], "pi");
        let result = &ended.body["data"]["result"];
        assert_eq!((&result["exit_code"], &result["is_cut"]), (&json!(0), &json!(false)));
        ended.answer(200);
        heard(&mut all, 2).await;
        let second = command(&rig.gateway, other, "fail").await;
        let both = [("command.started", "running"), ("command.failed", "failed")];
        assert_eq!(heard(&mut all, 2).await, expected(&both, second));
        delivery.stop(LONG).await;
        assert!(receiver.try_next().is_none() && all.try_next().is_none());
        rig.stop().await;
    }

    async fn a_turn_that_is_tried_again_is_told_of_once(store: Store) {
        let rig = Rig::new(store.clone(), Knobs { retries: 2, ..knobs() }).await;
        let mine = project(&store, "mine", &rig.path("")).await;
        let mut receiver = Receiver::start().await;
        webhook(&store, Some(mine), &receiver.url).await;
        let delivery = deliver_as_usual(&store, rig.policy.subscribe());
        let id = command(&rig.gateway, mine, "stumble").await;
        let told = [("command.started", "running"), ("command.completed", "completed")];
        assert_eq!(heard(&mut receiver, 2).await, expected(&told, id));
        assert_eq!(rig.calls().len(), 2);
        delivery.stop(LONG).await;
        assert!(receiver.try_next().is_none());
        assert_eq!(outbox_rows(&store).await.len(), 2);
        rig.stop().await;
    }

    async fn a_command_that_outlives_its_gateway_is_told_of_once(store: Store) {
        let rig = Rig::new(store.clone(), knobs()).await;
        let mine = project(&store, "mine", &rig.path("")).await;
        let mut receiver = Receiver::start().await;
        webhook(&store, Some(mine), &receiver.url).await;
        let id = command(&rig.gateway, mine, "gate").await;
        rig.until_hanging().await;
        // Nothing was sent before it stopped.
        let rig = rig.again().await;
        rig.until_hanging().await;
        rig.open_gate().await;
        rig.end_of(id.into()).await;
        let delivery = deliver_as_usual(&store, rig.policy.subscribe());
        let told = [("command.started", "running"), ("command.completed", "completed")];
        assert_eq!(heard(&mut receiver, 2).await, expected(&told, id));
        delivery.stop(LONG).await;
        assert!(receiver.try_next().is_none());
        rig.stop().await;
    }

    async fn webhooks_that_do_not_answer_leave_room_for_replies(store: Store) {
        let rig = Rig::new(store.clone(), knobs()).await;
        let (mut silent, mut chat) = (Receiver::start().await, Receiver::start().await);
        for _ in 0..16 {
            let id = webhook(&store, None, &silent.url).await;
            put_at(&store, testing::message(NOTICE, &id.to_string(), "never"), now()).await;
        }
        // None is given up before it is answered here.
        let limits = Limits { whole: Duration::from_secs(600), ..notice::LIMITS };
        let delivery = deliver(&store, rig.policy.subscribe(), limits, reach::system());
        let mut held = Vec::new();
        while held.len() < 8 {
            held.push(silent.next().await);
        }
        put_at(&store, testing::message(WEBHOOK, &chat.url, "hello"), now()).await;
        let reply = chat.next().await;
        assert_eq!(reply.text(), "hello");
        reply.answer(200);
        assert!(silent.try_next().is_none(), "eight are enough");
        held.into_iter().for_each(|request| request.answer(200));
        for _ in 8..16 {
            silent.next().await.answer(200);
        }
        delivery.stop(LONG).await;
        rig.stop().await;
    }

    async fn what_waited_long_for_a_webhook_that_does_not_answer_is_given_up_with_the_first(
        store: Store
    ) {
        let rig = Rig::new(store.clone(), knobs()).await;
        let mut receiver = Receiver::start().await;
        let id = webhook(&store, None, &receiver.url).await.to_string();
        let long_ago = now().before(Duration::from_secs(11 * 60));
        for (text, at) in [("first", long_ago), ("old", long_ago), ("new", now())] {
            put_at(&store, testing::message(NOTICE, &id, text), at).await;
        }
        // One that is refused says nothing about those after it.
        let refusing = webhook(&store, None, &format!("{}/refusing", receiver.url)).await;
        for text in ["refused", "taken"] {
            let message = testing::message(NOTICE, &refusing.to_string(), text);
            put_at(&store, message, long_ago).await;
        }
        let policy = rig.policy.subscribe();
        let delivery = deliver(&store, policy, notice::LIMITS, reach::system());
        let mut taken = Vec::new();
        while taken.len() < 2 {
            let request = receiver.next().await;
            match request.text() {
                "first" => request.answer(500),
                "refused" => request.answer(400),
                text => {
                    taken.push(text.to_owned());
                    request.answer(200);
                }
            }
        }
        delivery.stop(LONG).await;
        taken.sort();
        assert_eq!(taken, ["new", "taken"]);
        let rows = outbox_rows(&store).await;
        let old = &rows[1];
        assert_eq!((old.state.as_str(), old.attempt), ("failed", 0));
        assert_eq!(old.reason.as_deref(), Some("the webhook does not answer"));
        rig.stop().await;
    }

    async fn a_cancelled_command_is_a_failed_one(store: Store) {
        let rig = Rig::new(store.clone(), knobs()).await;
        let mine = project(&store, "mine", &rig.path("")).await;
        let mut receiver = Receiver::start().await;
        webhook(&store, Some(mine), &receiver.url).await;
        let delivery = deliver_as_usual(&store, rig.policy.subscribe());
        let id = command(&rig.gateway, mine, "hang").await;
        rig.until_hanging().await;
        rig.gateway.cancel_command(id, entry(id)).await.unwrap();
        rig.gateway.look_again();
        let told = [("command.started", "running"), ("command.failed", "cancelled")];
        assert_eq!(heard(&mut receiver, 2).await, expected(&told, id));
        delivery.stop(LONG).await;
        rig.stop().await;
    }
}

#[test]
fn a_notice_is_known_again_by_its_key() {
    let (webhook, command) = (WebhookId::new(), CommandId::new());
    for kind in NoticeKind::ALL {
        assert_eq!(read_key(&key(webhook, command, kind)), (Some(command), Some(kind)));
    }
    assert_eq!(read_key("whk_1:job_2"), (None, None));
}

#[test]
fn a_long_answer_is_cut_between_characters() {
    let text = "é".repeat(LONGEST);
    let result = CommandResult { response_text: Some(text), ..CommandResult::default() };
    let told = told(&result);
    assert_eq!(told["response_text"].as_str().map(str::len), Some(LONGEST));
    assert_eq!(told["is_cut"], true);
    assert_eq!(super::told(&CommandResult::default())["is_cut"], false);
}

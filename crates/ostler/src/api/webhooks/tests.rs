//! Webhooks as their owners make them, and what becomes of calls.

use std::{sync::Arc, time::Duration};

use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use tokio::time;

use super::*;
use crate::{
    api::testing::{LIMIT, Rig, TestKey, make_key},
    channel::{notice::LIMITS, reach::Lookup, testing::Receiver, webhook::Limits},
    config::Api,
    gateway::{
        notices::testing::{LONG, command, deliver, deliver_as_usual, project},
        testing::Knobs,
    },
    store::{Store, Topic, testing::on_both},
};

async fn rig(store: Store) -> Rig {
    let api = Api { private_webhooks: true, ..Api::default() };
    Rig::with(store, Knobs { api, ..Knobs::default() }).await
}

async fn make(rig: &Rig, url: &str, project: Option<ProjectId>) -> Value {
    let events = ["command.started", "command.completed", "command.failed"];
    let body = json!({ "url": url, "events": events, "project_id": project });
    let answer = rig.post("/webhooks", body).await;
    assert_eq!(answer.status, 201, "{answer:?}");
    answer.data()
}

/// Waits until the history of a webhook is so.
async fn until(rig: &Rig, id: &str, is_so: impl Fn(&[Value]) -> bool) -> Vec<Value> {
    let mut wakeups = rig.gateway.store.wakeups(Topic::Outbox);
    let looked = async {
        loop {
            let found = rig.get(&format!("/webhooks/{id}/deliveries")).await.data();
            let found = found.as_array().unwrap().clone();
            if is_so(&found) {
                return found;
            }
            wakeups.next().await;
        }
    };
    time::timeout(LIMIT, looked).await.expect("the history never was so")
}

/// An HMAC that is computed in another way than the one that is tested.
fn hmac(secret: &str, text: &[u8]) -> String {
    let mut block = [0_u8; 64];
    block[..secret.len()].copy_from_slice(secret.as_bytes());
    let pad = |with: u8| block.map(|byte| byte ^ with);
    let inner = Sha256::new().chain_update(pad(0x36)).chain_update(text).finalize();
    let outer = Sha256::new().chain_update(pad(0x5c)).chain_update(inner).finalize();
    outer.iter().map(|byte| format!("{byte:02x}")).collect()
}

on_both! {
    async fn a_secret_is_shown_once_and_nowhere_else(store: Store) {
        let rig = rig(store.clone()).await;
        let mine = project(&store, "mine", &rig.folder("mine")).await;
        let made = make(&rig, "https://example.org/x?y=1", Some(mine)).await;
        let secret = made["secret"].as_str().unwrap();
        let (start, rest) = secret.split_at(6);
        assert_eq!((start, rest.len()), ("whsec_", 32));
        assert!(rest.bytes().all(|byte| byte.is_ascii_alphanumeric()), "{secret}");
        let id = made["id"].as_str().unwrap().to_owned();
        let one = rig.get(&format!("/webhooks/{id}")).await.data();
        assert_eq!(one["url"], "https://example.org/x?y=1");
        assert_eq!(one["project_id"], json!(mine));
        let listed = rig.get("/webhooks").await.data();
        assert_eq!(listed, json!([one]));
        let subject = id.clone();
        let audited = store.read(subject, |conn, id| Box::pin(audit::about(conn, id)));
        let audited: Vec<_> = Result::<_, StoreError>::unwrap(audited.await);
        assert_eq!(audited[0].action, "webhook.create");
        let parsed = id.parse().unwrap();
        let stored = store.read(parsed, |conn, id| Box::pin(webhooks::find(conn, *id)));
        let stored = Result::<_, StoreError>::unwrap(stored.await).unwrap();
        assert_eq!(stored.secret, secret);
        assert!(!format!("{one}{listed}{audited:?}{stored:?}").contains(rest));
        assert_eq!(rig.call("DELETE", &format!("/webhooks/{id}"), None).await.status, 200);
        for (method, path) in
            [("GET", format!("/webhooks/{id}")), ("DELETE", format!("/webhooks/{id}")),
             ("GET", format!("/webhooks/{id}/deliveries"))]
        {
            assert_eq!(rig.call(method, &path, None).await.status, 404, "{method} {path}");
        }
        assert_eq!(rig.get("/webhooks").await.data(), json!([]));
        rig.stop().await;
    }

    async fn a_key_has_only_the_webhooks_of_its_projects(store: Store) {
        let rig = rig(store.clone()).await;
        let mine = project(&store, "mine", &rig.folder("mine")).await;
        let other = project(&store, "other", &rig.folder("other")).await;
        let scopes = vec![Scope::ProjectsExecute];
        let limited = TestKey { scopes: scopes.clone(), projects: Some(vec![mine]), ..TestKey::default() };
        let limited = make_key(&store, limited).await;
        let free = rig.key(&scopes).await;
        let reader = rig.key(&[Scope::ProjectsRead]).await;
        let of_mine = make(&rig, "https://example.org/1", Some(mine)).await;
        let of_other = make(&rig, "https://example.org/2", Some(other)).await;
        let of_all = make(&rig, "https://example.org/3", None).await;
        let path = |made: &Value| format!("/webhooks/{}", made["id"].as_str().unwrap());
        for (key, made, status) in [
            (&limited, &of_mine, 200), (&limited, &of_other, 404), (&limited, &of_all, 404),
            (&free, &of_mine, 200), (&free, &of_other, 200), (&free, &of_all, 404),
            (&reader, &of_mine, 403), (&rig.admin, &of_all, 200),
        ] {
            for path in [path(made), format!("{}/deliveries", path(made))] {
                let answer = rig.call_with(key, "GET", &path, None).await;
                assert_eq!(answer.status, status, "{path} {answer:?}");
            }
        }
        let count = async |key: &str| {
            let listed = rig.call_with(key, "GET", "/webhooks", None).await.data();
            listed.as_array().unwrap().len()
        };
        assert_eq!((count(&limited).await, count(&free).await, count(&rig.admin).await), (1, 2, 3));
        for (key, project, status) in [
            (&limited, Some(mine), 201), (&limited, Some(other), 404), (&limited, None, 403),
            (&free, Some(other), 201), (&free, None, 403), (&reader, Some(mine), 403),
            (&rig.admin, Some(ProjectId::new()), 404),
        ] {
            let body = json!({
                "url": "https://example.org/", "events": ["command.failed"], "project_id": project,
            });
            let answer = rig.call_with(key, "POST", "/webhooks", Some(body)).await;
            assert_eq!(answer.status, status, "{answer:?}");
        }
        assert_eq!(rig.call_with(&limited, "DELETE", &path(&of_other), None).await.status, 404);
        rig.stop().await;
    }

    async fn what_is_wrong_with_a_webhook_is_told(store: Store) {
        let rig = Rig::new(store).await;
        for (body, says) in [
            (json!({ "url": "https://example.org/", "events": [] }), "at least one"),
            (json!({ "url": "https://example.org/", "events": ["command.done"] }), "command.done"),
            (json!({ "url": "https://example.org/" }), "events"),
            (json!({ "url": "ftp://example.org/", "events": ["command.failed"] }), "scheme"),
            (json!({ "url": "https://a:b@c/", "events": ["command.failed"] }), "user name"),
            (json!({ "url": "http://0x7f.1/", "events": ["command.failed"] }), "private"),
            (json!({ "url": "http://[::ffff:10.0.0.1]/", "events": ["command.failed"] }), "private"),
            (json!({ "url": "https://c/", "events": ["command.failed"], "color": 1 }), "color"),
        ] {
            let answer = rig.post("/webhooks", body).await;
            assert_eq!((answer.status, answer.code()), (400, "BAD_REQUEST"), "{answer:?}");
            let message = answer.body["error"]["message"].as_str().unwrap().to_owned();
            assert!(message.contains(says), "{message}");
        }
        for path in ["/webhooks?limit=0", "/webhooks?limit=101", "/webhooks?cursor=x"] {
            assert_eq!(rig.get(path).await.status, 400, "{path}");
        }
        for number in 0..=MOST {
            let body = json!({ "url": "https://example.org/", "events": ["command.failed"] });
            let status = rig.post("/webhooks", body).await.status;
            assert_eq!(status, if number < MOST { 201 } else { 409 });
        }
        let mut path = "/webhooks?limit=8".to_owned();
        let mut n_seen = 0;
        loop {
            let page = rig.get(&path).await;
            n_seen += page.body["data"].as_array().unwrap().len();
            let Some(next) = page.body["meta"]["next_cursor"].as_str() else { break };
            path = format!("/webhooks?limit=8&cursor={next}");
        }
        assert_eq!(n_seen, 20);
        rig.stop().await;
    }

    async fn a_call_is_signed_so_that_its_receiver_can_tell(store: Store) {
        let rig = rig(store.clone()).await;
        let mine = project(&store, "mine", &rig.folder("mine")).await;
        let mut receiver = Receiver::start().await;
        let made = make(&rig, &format!("{}/in?key=1", receiver.url), Some(mine)).await;
        let delivery = deliver_as_usual(&store, rig.gateway.policy.subscribe());
        let id = command(&rig.gateway.gateway, mine, "very-private").await;
        for event in ["command.started", "command.completed"] {
            let call = receiver.next().await;
            let signed = call.headers["ostler-signature"].clone();
            let (at, signature) = signed.strip_prefix("t=").unwrap().split_once(",v1=").unwrap();
            let seconds = Millis::now().0 / 1000;
            assert!((seconds - 60..=seconds).contains(&at.parse().unwrap()), "{signed}");
            let text = [format!("{at}.").as_bytes(), &call.raw].concat();
            assert_eq!(signature, hmac(made["secret"].as_str().unwrap(), &text));
            assert_eq!(call.headers["ostler-event"], event);
            assert_eq!(call.headers["content-type"], "application/json");
            assert_eq!((&call.body["type"], call.path.as_str()), (&json!(event), "/in?key=1"));
            call.answer(202);
        }
        let webhook = made["id"].as_str().unwrap();
        let history = until(&rig, webhook, |all| all.iter().all(|one| one["state"] == "sent")).await;
        let seen: Vec<_> = history
            .iter()
            .map(|one| (&one["event"], &one["command_id"], &one["attempts"], &one["response_status"]))
            .collect();
        let (id, one, status) = (json!(id), json!(1), json!(202));
        assert_eq!(seen, [
            (&json!("command.completed"), &id, &one, &status),
            (&json!("command.started"), &id, &one, &status),
        ]);
        let path = format!("/webhooks/{webhook}/deliveries?limit=1");
        let first = rig.get(&path).await;
        let next = first.body["meta"]["next_cursor"].as_str().unwrap();
        let second = rig.get(&format!("{path}&cursor={next}")).await;
        assert_eq!(second.body["data"][0], history[1]);
        assert_eq!(second.body["meta"].get("next_cursor"), None);
        delivery.stop(LONG).await;
        rig.stop().await;
    }

    async fn a_receiver_that_never_takes_it_is_called_three_times(store: Store) {
        let rig = rig(store.clone()).await;
        let mine = project(&store, "mine", &rig.folder("mine")).await;
        let mut receiver = Receiver::start().await;
        let body = json!({
            "url": receiver.url, "events": ["command.completed"], "project_id": mine,
        });
        let made = rig.post("/webhooks", body).await.data();
        let delivery = deliver_as_usual(&store, rig.gateway.policy.subscribe());
        command(&rig.gateway.gateway, mine, "hello").await;
        let mut keys = Vec::new();
        for _ in 0..3 {
            let call = receiver.next().await;
            keys.push((call.key().to_owned(), call.raw.clone()));
            call.answer_with(503, "", "not now");
        }
        keys.dedup();
        assert_eq!(keys.len(), 1, "each is the same call");
        let webhook = made["id"].as_str().unwrap();
        let history = until(&rig, webhook, |all| all[0]["state"] == "failed").await;
        assert_eq!((&history[0]["attempts"], &history[0]["response_status"]), (&json!(3), &json!(503)));
        assert_eq!(history[0]["reason"], "503 Service Unavailable: not now");
        assert!(history[0]["ended_at"].is_string() && history.len() == 1);
        delivery.stop(LONG).await;
        assert!(receiver.try_next().is_none());
        rig.stop().await;
    }

    async fn a_receiver_that_hangs_is_left_and_called_again(store: Store) {
        let rig = rig(store.clone()).await;
        let mine = project(&store, "mine", &rig.folder("mine")).await;
        let mut receiver = Receiver::start().await;
        let body = json!({
            "url": receiver.url, "events": ["command.failed"], "project_id": mine,
        });
        let made = rig.post("/webhooks", body).await.data();
        let limits = Limits { whole: Duration::from_secs(3), ..LIMITS };
        let policy = rig.gateway.policy.subscribe();
        let delivery = deliver(&store, policy, limits, reach::system());
        command(&rig.gateway.gateway, mine, "fail").await;
        for _ in 0..3 {
            receiver.next().await.hold().await;
        }
        let webhook = made["id"].as_str().unwrap();
        let history = until(&rig, webhook, |all| all[0]["state"] == "failed").await;
        assert_eq!(history[0]["reason"], "no answer within 3s");
        assert_eq!(history[0]["response_status"], Value::Null);
        delivery.stop(LONG).await;
        rig.stop().await;
    }

    async fn a_webhook_that_is_deleted_hears_nothing_more(store: Store) {
        let rig = rig(store.clone()).await;
        let mine = project(&store, "mine", &rig.folder("mine")).await;
        let mut receiver = Receiver::start().await;
        let made = make(&rig, &receiver.url, Some(mine)).await;
        let id = command(&rig.gateway.gateway, mine, "hello").await;
        rig.gateway.end_of(id.into()).await;
        let path = format!("/webhooks/{}", made["id"].as_str().unwrap());
        assert_eq!(rig.call("DELETE", &path, None).await.status, 200);
        let rows = crate::store::testing::outbox_rows(&store).await;
        let ended = rows.iter().map(|row| (row.state.as_str(), row.reason.as_deref()));
        let deleted = ("failed", Some("the webhook was deleted"));
        assert_eq!(ended.collect::<Vec<_>>(), [deleted, deleted]);
        let delivery = deliver_as_usual(&store, rig.gateway.policy.subscribe());
        let id = command(&rig.gateway.gateway, mine, "hello").await;
        rig.gateway.end_of(id.into()).await;
        delivery.stop(LONG).await;
        assert!(receiver.try_next().is_none());
        rig.stop().await;
    }

    async fn a_name_that_leads_to_this_machine_is_not_called(store: Store) {
        let rig = Rig::new(store.clone()).await;
        let mine = project(&store, "mine", &rig.folder("mine")).await;
        let mut receiver = Receiver::start().await;
        let port = receiver.url.rsplit(':').next().unwrap().to_owned();
        let url = format!("http://hooks.example:{port}/in");
        let body = json!({ "url": url, "events": ["command.completed"], "project_id": mine });
        let made = rig.post("/webhooks", body).await.data();
        let lookup: Lookup =
            Arc::new(|_| Box::pin(async { Ok(vec!["127.0.0.1:0".parse().unwrap()]) }));
        let policy = rig.gateway.policy.subscribe();
        let delivery = deliver(&store, policy, LIMITS, lookup);
        command(&rig.gateway.gateway, mine, "hello").await;
        let webhook = made["id"].as_str().unwrap();
        let history = until(&rig, webhook, |all| !all.is_empty() && all[0]["state"] == "failed").await;
        let reason = history[0]["reason"].as_str().unwrap();
        assert!(reason.contains("private network") && !reason.contains("hooks.example"), "{reason}");
        delivery.stop(LONG).await;
        assert!(receiver.try_next().is_none());
        rig.stop().await;
    }

    async fn an_address_that_was_allowed_once_is_checked_at_each_call(store: Store) {
        let rig = rig(store.clone()).await;
        let mine = project(&store, "mine", &rig.folder("mine")).await;
        let mut receiver = Receiver::start().await;
        let made = make(&rig, &receiver.url, Some(mine)).await;
        rig.gateway.change(&Knobs::default());
        let delivery = deliver_as_usual(&store, rig.gateway.policy.subscribe());
        command(&rig.gateway.gateway, mine, "hello").await;
        let webhook = made["id"].as_str().unwrap();
        let is_over = |all: &[Value]| all.len() == 2 && all.iter().all(|one| one["state"] == "failed");
        let history = until(&rig, webhook, is_over).await;
        assert_eq!(history[0]["attempts"], 1);
        delivery.stop(LONG).await;
        assert!(receiver.try_next().is_none());
        rig.stop().await;
    }
}

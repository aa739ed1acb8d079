//! Requests that are made twice.

use serde_json::{Value, json};
use tokio::task::JoinSet;

use super::*;
use crate::{
    api::{
        prompt::tests::make_project,
        testing::{self, Rig, TestKey, make_key},
    },
    id::ProjectId,
    key::Scope,
    store::{Keep, testing::on_both},
};

/// Asks under a name.
fn request(rig: &Rig, key: &str, path: &str, name: &str, body: &Value) -> reqwest::RequestBuilder {
    rig.request("POST", path).bearer_auth(key).header("Idempotency-Key", name).json(body)
}

async fn send(rig: &Rig, key: &str, path: &str, name: &str, body: &Value) -> testing::Answer {
    testing::answer(request(rig, key, path, name, body).send().await.unwrap()).await
}

fn is_again(answer: &testing::Answer) -> bool {
    answer.headers.get("idempotency-replayed").is_some_and(|value| value == "true")
}

async fn n_commands(rig: &Rig, project: ProjectId) -> usize {
    let listed = rig.get(&format!("/projects/{project}/commands")).await.data();
    listed.as_array().unwrap().len()
}

on_both! {
    async fn what_was_answered_in_a_project_is_gone_with_it(store: Store) {
        let rig = Rig::new(store).await;
        let project = make_project(&rig, "a").await;
        let body = json!({ "prompt": "hello" });
        let path = format!("/projects/{project}/prompt");
        assert_eq!(send(&rig, &rig.admin, &path, "n", &body).await.status, 202);
        rig.call("DELETE", &format!("/projects/{project}"), None).await.data();
        let again = send(&rig, &rig.admin, &path, "n", &body).await;
        assert_eq!((again.status, again.code()), (404, "NOT_FOUND"));
        rig.stop().await;
    }

    async fn the_same_request_twice_is_done_once_also_after_a_restart(store: Store) {
        let scopes = vec![Scope::Admin];
        let key = make_key(&store, TestKey { scopes, ..TestKey::default() }).await;
        let rig = Rig::new(store.clone()).await;
        let project = make_project(&rig, "a").await;
        let path = format!("/projects/{project}/prompt");
        let body = json!({ "prompt": "hello", "stream_id": "s" });
        let first = send(&rig, &key, &path, "n 1", &body).await;
        let again = send(&rig, &key, &path, "n 1", &body).await;
        assert_eq!((first.status, again.status), (202, 202));
        assert!(!is_again(&first) && is_again(&again));
        let (request, other) = (&first.body["meta"]["request_id"], &again.body["meta"]["request_id"]);
        assert_ne!(request, other);
        let (first, again) = (first.data(), again.data());
        assert_eq!(first, again);
        rig.stop().await;
        let rig = Rig::new(store.clone()).await;
        let late = send(&rig, &key, &path, "n 1", &body).await;
        assert!(is_again(&late));
        assert_eq!(late.data(), first);
        // Who waits this time is told the end.
        let over = send(&rig, &key, &format!("{path}?wait=60s"), "n 1", &body).await;
        assert!(is_again(&over) && over.status == 200, "{over:?}");
        assert_eq!(over.data()["id"], first["command_id"]);
        assert_eq!(n_commands(&rig, project).await, 1);
        rig.stop().await;
    }

    async fn the_same_request_twenty_times_at_once_is_done_once(store: Store) {
        let rig = Rig::new(store).await;
        let project = make_project(&rig, "a").await;
        let path = format!("/projects/{project}/prompt");
        let body = json!({ "prompt": "hello" });
        let mut all = JoinSet::new();
        for _ in 0..20 {
            all.spawn(request(&rig, &rig.admin, &path, "same", &body).send());
        }
        let mut told = Vec::new();
        let mut n_first = 0;
        while let Some(sent) = all.join_next().await {
            let answer = testing::answer(sent.unwrap().unwrap()).await;
            assert_eq!(answer.status, 202, "{answer:?}");
            n_first += usize::from(!is_again(&answer));
            told.push(answer.data());
        }
        assert_eq!(n_first, 1);
        assert!(told.iter().all(|one| one == &told[0]));
        assert_eq!(n_commands(&rig, project).await, 1);
        rig.stop().await;
    }

    async fn another_request_of_the_same_name_is_refused_unless_another_makes_it(store: Store) {
        let rig = Rig::new(store).await;
        let (project, elsewhere) = (make_project(&rig, "a").await, make_project(&rig, "b").await);
        let path = format!("/projects/{project}/prompt");
        let body = json!({ "prompt": "hello" });
        send(&rig, &rig.admin, &path, "same", &body).await.data();
        for (path, body) in [
            (path.clone(), json!({ "prompt": "other" })),
            (format!("/projects/{elsewhere}/prompt"), body.clone()),
            (format!("/projects/{project}/claude"), body.clone()),
            (path.clone(), json!({ "prompt": "" })),
        ] {
            let answer = send(&rig, &rig.admin, &path, "same", &body).await;
            assert_eq!((answer.status, answer.code()), (409, "CONFLICT"), "{path}");
        }
        let other = rig.key(&[Scope::ProjectsExecute]).await;
        let answer = send(&rig, &other, &path, "same", &body).await;
        assert!(answer.status == 202 && !is_again(&answer));
        assert_eq!((n_commands(&rig, project).await, n_commands(&rig, elsewhere).await), (2, 0));
        // A key that may not ask is not told what was answered.
        let reader = rig.key(&[Scope::ProjectsRead]).await;
        assert_eq!(send(&rig, &reader, &path, "same", &body).await.status, 403);
        rig.stop().await;
    }

    async fn a_request_that_was_refused_has_used_no_name(store: Store) {
        let rig = Rig::new(store).await;
        let project = make_project(&rig, "a").await;
        let path = format!("/projects/{project}/prompt");
        let refused = send(&rig, &rig.admin, &path, "same", &json!({ "prompt": "" })).await;
        assert_eq!(refused.status, 400);
        let answer = send(&rig, &rig.admin, &path, "same", &json!({ "prompt": "x" })).await;
        assert!(answer.status == 202 && !is_again(&answer));
        rig.stop().await;
    }

    async fn a_name_has_one_to_255_printable_characters(store: Store) {
        let rig = Rig::new(store).await;
        let project = make_project(&rig, "a").await;
        let path = format!("/projects/{project}/prompt");
        let body = json!({ "prompt": "x" });
        let (longest, long) = ("x".repeat(255), "x".repeat(256));
        for (name, status) in
            [("", 400), ("a\tb", 400), ("ü", 400), (&long, 400), (&longest, 202), ("~!", 202)]
        {
            let answer = send(&rig, &rig.admin, &path, name, &body).await;
            assert_eq!(answer.status, status, "{name}");
        }
        let two = request(&rig, &rig.admin, &path, "one", &body).header("Idempotency-Key", "two");
        assert_eq!(two.send().await.unwrap().status(), 400);
        rig.stop().await;
    }

    async fn an_answer_is_known_for_a_day(store: Store) {
        let kept = |name: &str, at| AnsweredRequest {
            actor: "key".to_owned(),
            name: name.to_owned(),
            fingerprint: "f".to_owned(),
            status: 202,
            body: "{}".to_owned(),
            at,
        };
        let now = Millis::now();
        let day = std::time::Duration::from_secs(24 * 60 * 60);
        let old = kept("old", Millis(now.before(day).0 - 1));
        let young = kept("young", Millis(now.before(day).0 + 1));
        for one in [old.clone(), young.clone()] {
            let keep = store.must(one, |conn, one| Box::pin(answered_requests::keep(conn, one)));
            assert_eq!(keep.await, None);
        }
        assert_eq!(store.clean_up(Keep::default(), now).await.unwrap(), 1);
        for (one, found) in [(old, None), (young.clone(), Some(young))] {
            let keep = store.must(one, |conn, one| Box::pin(answered_requests::keep(conn, one)));
            assert_eq!(keep.await, found);
        }
    }
}

#[test]
fn a_write_that_was_made_twice_is_no_second_request() {
    let key = Key { actor: "k".to_owned(), name: "n".to_owned(), fingerprint: "f".to_owned() };
    let request = Request { key: Some(key) };
    let answer = request.answer(StatusCode::ACCEPTED, &json!({ "id": 1 }), Millis(1)).unwrap();
    let own = answer.kept();
    assert!(!answer.clone().settle(own.clone()).unwrap().is_again);
    assert!(!answer.clone().settle(None).unwrap().is_again);
    let before = own.map(|own| AnsweredRequest { body: "{\"id\":0}".to_owned(), ..own });
    let again = answer.clone().settle(before.clone()).unwrap();
    assert_eq!((again.is_again, again.body.as_str()), (true, "{\"id\":0}"));
    let other = before.map(|own| AnsweredRequest { fingerprint: "g".to_owned(), ..own });
    assert_eq!(answer.settle(other).unwrap_err().code, Code::Conflict);
}

#[test]
fn a_request_is_the_same_by_method_path_and_body() {
    let all = [
        fingerprint(&Method::POST, "/a", b"x"),
        fingerprint(&Method::PUT, "/a", b"x"),
        fingerprint(&Method::POST, "/b", b"x"),
        fingerprint(&Method::POST, "/a", b"y"),
        fingerprint(&Method::POST, "/a", b""),
    ];
    let different: std::collections::BTreeSet<_> = all.iter().collect();
    assert_eq!(different.len(), all.len());
    assert!(all.iter().all(|text| text.len() == 64));
}

//! What holds for every request.

use serde_json::json;

use super::{
    health::Phase,
    testing::{Rig, answer},
};
use crate::store::testing::on_both;

on_both! {
    async fn anybody_may_ask_whether_it_lives_and_is_ready(store: Store) {
        let rig = Rig::new(store).await;
        let health = answer(rig.request("GET", "/health").send().await.unwrap()).await;
        assert_eq!(health.body, json!({ "status": "healthy", "agents": { "pi": "available" } }));
        for (phase, status, word) in [
            (Phase::Starting, 503, "starting"),
            (Phase::Ready, 200, "ready"),
            (Phase::Stopping, 503, "stopping"),
        ] {
            rig.phase.send_replace(phase);
            let ready = answer(rig.request("GET", "/ready").send().await.unwrap()).await;
            assert_eq!((ready.status, ready.body), (status, json!({ "status": word })));
        }
        rig.stop().await;
    }

    async fn what_is_not_there_is_an_error_in_the_envelope(store: Store) {
        let rig = Rig::new(store).await;
        for (method, path, status, code) in [
            ("GET", "/", 404, "NOT_FOUND"),
            ("POST", "/v1/chat/completions", 404, "NOT_FOUND"),
            ("POST", "/health", 405, "BAD_REQUEST"),
        ] {
            let answer = rig.call(method, path, None).await;
            assert_eq!((answer.status, answer.code()), (status, code), "{path}");
            assert!(answer.body["error"]["message"].is_string());
        }
        rig.stop().await;
    }

    async fn a_request_has_the_name_that_it_came_with_if_that_can_be_one(store: Store) {
        let rig = Rig::new(store).await;
        let long = "x".repeat(129);
        for (given, is_kept) in
            [("my-1.2:3_4", true), ("", false), ("with space", false), (long.as_str(), false)]
        {
            let request = rig.request("GET", "/nothing").header("X-Request-Id", given);
            let answer = answer(request.send().await.unwrap()).await;
            let named = answer.headers["x-request-id"].to_str().unwrap();
            assert_eq!(answer.body["meta"]["request_id"], named);
            assert_eq!(named == given, is_kept, "{given}");
            assert!(is_kept || named.starts_with("req_"), "{named}");
        }
        rig.stop().await;
    }
}

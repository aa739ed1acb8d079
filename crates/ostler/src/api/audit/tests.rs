//! The audit, asked over HTTP.

use serde_json::json;

use super::*;
use crate::{
    api::testing::Rig,
    store::{Store, testing::on_both},
};

/// A time that no upkeep takes for long ago: the start of 2100.
const THEN: i64 = 4_102_444_800_000;

/// Adds lines: who did what to what, and when.
async fn note(store: &Store, lines: &[(&str, &str, &str, i64)]) {
    for (actor, action, subject, at) in lines {
        let entry = Entry {
            at: Millis(THEN + *at),
            actor: (*actor).to_owned(),
            action: (*action).to_owned(),
            subject: (*subject).to_owned(),
            detail: json!({ "at": at }).to_string(),
        };
        store.must(entry, |conn, entry| Box::pin(audit::add(conn, entry))).await;
    }
}

on_both! {
    async fn lines_are_found_by_what_is_known_of_them(store: Store) {
        let rig = Rig::new(store).await;
        note(&rig.gateway.store, &[
            ("me", "key.create", "key_1", 1_000),
            ("you", "key.create", "key_2", 2_000),
            ("me", "key.revoke", "key_2", 3_000),
            ("me", "project.create", "prj_1", 4_000),
        ]).await;
        for (query, found) in [
            ("", vec![4_000, 3_000, 2_000, 1_000]),
            ("actor=me", vec![4_000, 3_000, 1_000]),
            ("action=key.create", vec![2_000, 1_000]),
            ("subject=key_2", vec![3_000, 2_000]),
            ("actor=me&subject=key_2", vec![3_000]),
            ("since=2100-01-01T00:00:02Z&until=2100-01-01T00:00:04Z", vec![3_000, 2_000]),
            ("actor=nobody", vec![]),
            ("actor=%00", vec![]),
        ] {
            let lines = rig.get(&format!("/audit?{query}")).await.data();
            let at = |line: &Value| line["detail"]["at"].as_i64().unwrap();
            let lines: Vec<_> = lines.as_array().unwrap().iter().map(at).collect();
            assert_eq!(lines, found, "{query}");
        }
        let first = rig.get("/audit?limit=1").await.data()[0].clone();
        assert_eq!(first["at"], "2100-01-01T00:00:04.000Z");
        assert!(first["id"].as_str().unwrap().starts_with("aud_"));
        for wrong in ["limit=0", "since=soon", "until=", "cursor=key_1", "subjekt=x"] {
            let answer = rig.get(&format!("/audit?{wrong}")).await;
            assert_eq!((answer.status, answer.code()), (400, "BAD_REQUEST"), "{wrong}");
        }
        rig.stop().await;
    }

    async fn pages_of_lines_have_each_once(store: Store) {
        let rig = Rig::new(store).await;
        for number in 0..7 {
            note(&rig.gateway.store, &[("me", "a", "x", number)]).await;
        }
        let (mut seen, mut path) = (Vec::new(), "/audit?limit=3".to_owned());
        loop {
            let page = rig.get(&path).await;
            let next = page.body["meta"]["next_cursor"].as_str().map(str::to_owned);
            for line in page.data().as_array().unwrap() {
                seen.push(line["detail"]["at"].as_i64().unwrap());
            }
            let Some(next) = next else { break };
            path = format!("/audit?limit=3&cursor={next}");
        }
        assert_eq!(seen, [6, 5, 4, 3, 2, 1, 0]);
        rig.stop().await;
    }
}

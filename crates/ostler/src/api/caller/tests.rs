//! Keys as they are shown, where they are shown from, and how often.

use serde_json::json;

use super::*;
use crate::{
    api::testing::{Answer, Rig, TestKey, answer, make_key},
    config::Api,
    gateway::testing::Knobs,
    store::testing::on_both,
};

/// A service that believes this machine about whom it speaks for.
async fn behind_a_proxy(store: crate::store::Store, api: Api) -> Rig {
    let trusted_proxies = vec!["127.0.0.0/8".parse().unwrap()];
    Rig::with(store, Knobs { api: Api { trusted_proxies, ..api }, ..Knobs::default() }).await
}

fn open_api() -> Api {
    Knobs::default().api
}

/// Asks with a header, for an address.
async fn ask(rig: &Rig, header: (&str, &str), from: &str) -> Answer {
    let request = rig.request("GET", "/keys").header(header.0, header.1);
    answer(request.header("X-Forwarded-For", from).send().await.unwrap()).await
}

async fn bearer(rig: &Rig, key: &str, from: &str) -> Answer {
    ask(rig, ("Authorization", &format!("Bearer {key}")), from).await
}

on_both! {
    async fn a_key_is_taken_from_either_header_and_nothing_else_is_one(store: Store) {
        let rig = behind_a_proxy(store, open_api()).await;
        let admin = rig.admin.clone();
        for (name, value) in [
            ("Authorization", format!("Bearer {admin}")),
            ("Authorization", format!("bearer  {admin} ")),
            ("X-API-Key", admin.clone()),
        ] {
            assert_eq!(ask(&rig, (name, &value), "1.1.1.1").await.status, 200, "{name}: {value}");
        }
        // A proxy before it may have a login of its own.
        let request = rig.request("GET", "/keys").basic_auth("me", Some("secret"));
        let request = request.header("X-API-Key", &admin);
        assert_eq!(request.send().await.unwrap().status(), 200);
        let request = rig.request("GET", "/keys").bearer_auth("eyJhbGciOi.of-a-proxy");
        let request = request.header("X-API-Key", &admin);
        assert_eq!(request.send().await.unwrap().status(), 200);
        let other = KeyText::make().unwrap();
        let changed = format!("{}{}", &admin[..admin.len() - 1], if admin.ends_with('0') { 1 } else { 0 });
        for (name, value) in [
            ("Authorization", format!("Basic {admin}")),
            ("Authorization", admin.clone()),
            ("Authorization", "Bearer".to_owned()),
            ("Authorization", format!("Bearer {}", other.reveal())),
            ("Authorization", format!("Bearer {changed}")),
            ("Authorization", format!("Bearer {admin}x")),
            ("X-API-Key", "ost_".to_owned()),
            ("X-Other", admin.clone()),
        ] {
            let answer = ask(&rig, (name, &value), "1.1.1.1").await;
            assert_eq!((answer.status, answer.code()), (401, "UNAUTHORIZED"), "{name}: {value}");
            assert_eq!(answer.headers["www-authenticate"], "Bearer");
        }
        rig.stop().await;
    }

    async fn a_key_is_good_until_it_expires_or_is_revoked_and_only_from_its_networks(store: Store) {
        let rig = behind_a_proxy(store, open_api()).await;
        let networks = Some(vec!["10.0.0.0/8".parse().unwrap(), "2001:db8::/32".parse().unwrap()]);
        let scopes = vec![Scope::KeysRead];
        let key = TestKey { scopes: scopes.clone(), networks, ..TestKey::default() };
        let key = make_key(&rig.gateway.store, key).await;
        for (from, status, code) in [
            ("10.1.2.3", 200, "none"),
            ("::ffff:10.1.2.3", 200, "none"),
            ("2001:db8::7", 200, "none"),
            ("11.0.0.1", 403, "IP_NOT_ALLOWED"),
            ("2001:db9::7", 403, "IP_NOT_ALLOWED"),
            ("10.1.2.3, 11.0.0.1", 403, "IP_NOT_ALLOWED"),
            // Only the proxy itself is left.
            ("nonsense", 403, "IP_NOT_ALLOWED"),
        ] {
            let answer = bearer(&rig, &key, from).await;
            assert_eq!((answer.status, answer.code()), (status, code), "{from}");
        }
        let now = Millis::now();
        for (expires_at, status, code) in [
            (now.after(Duration::from_secs(3600)), 200, "none"),
            (now.before(Duration::from_millis(1)), 401, "KEY_EXPIRED"),
        ] {
            let expires_at = Some(expires_at);
            let key = TestKey { scopes: scopes.clone(), expires_at, ..TestKey::default() };
            let key = make_key(&rig.gateway.store, key).await;
            let answer = bearer(&rig, &key, "1.1.1.1").await;
            assert_eq!((answer.status, answer.code()), (status, code));
        }
        let made = rig.post("/keys", json!({ "name": "a", "scopes": ["keys:read"] })).await.data();
        let (id, word) = (made["id"].as_str().unwrap(), made["key"].as_str().unwrap());
        assert_eq!(bearer(&rig, word, "1.1.1.1").await.status, 200);
        rig.call("DELETE", &format!("/keys/{id}"), None).await.data();
        let answer = bearer(&rig, word, "1.1.1.1").await;
        assert_eq!((answer.status, answer.code()), (401, "KEY_REVOKED"));
        rig.stop().await;
    }

    async fn it_is_written_down_once_a_minute_that_a_key_is_used(store: Store) {
        let rig = Rig::new(store).await;
        let key = rig.key(&[Scope::KeysRead]).await;
        let used = async || {
            rig.service.settled().await;
            let prefix = KeyText::read(&key).unwrap().prefix().to_owned();
            let found = rig.gateway.store.read(prefix, |conn, prefix| {
                Box::pin(keys::find_by_prefix(conn, prefix))
            });
            let found: Result<_, StoreError> = found.await;
            found.unwrap().unwrap().last_used_at
        };
        assert_eq!(used().await, None);
        let before = Millis::now();
        rig.call_with(&key, "GET", "/keys", None).await.data();
        let first = used().await.unwrap();
        assert!(first >= before && first <= Millis::now(), "{first}");
        for _ in 0..5 {
            rig.call_with(&key, "GET", "/keys", None).await.data();
        }
        assert_eq!(used().await, Some(first));
        rig.stop().await;
    }

    async fn a_key_that_asks_too_often_is_told_when_again_and_others_go_on(store: Store) {
        let rig = behind_a_proxy(store, Api { requests_per_key: 3, ..open_api() }).await;
        let (one, two) = (rig.key(&[Scope::KeysRead]).await, rig.key(&[Scope::KeysRead]).await);
        for number in 0..3 {
            assert_eq!(bearer(&rig, &one, &format!("1.1.1.{number}")).await.status, 200);
        }
        let refused = bearer(&rig, &one, "1.1.1.9").await;
        assert_eq!((refused.status, refused.code()), (429, "TOO_MANY_REQUESTS"));
        let wait: u64 = refused.headers["retry-after"].to_str().unwrap().parse().unwrap();
        assert!((1..=20).contains(&wait), "{wait}");
        assert_eq!(bearer(&rig, &two, "1.1.1.9").await.status, 200);
        rig.stop().await;
    }

    async fn an_address_that_asks_too_often_is_told_when_again_but_may_look_after_it(store: Store) {
        let rig = behind_a_proxy(store, Api { requests_per_address: 3, ..open_api() }).await;
        let get = async |path: &str, from: &str| {
            let request = rig.request("GET", path).header("X-Forwarded-For", from);
            answer(request.send().await.unwrap()).await
        };
        for _ in 0..3 {
            assert_eq!(get("/nothing", "1.1.1.1").await.status, 404);
        }
        for path in ["/nothing", "/keys", "/"] {
            let refused = get(path, "1.1.1.1").await;
            assert_eq!((refused.status, refused.code()), (429, "TOO_MANY_REQUESTS"), "{path}");
            assert!(refused.headers.contains_key("retry-after"));
            assert!(refused.body["meta"]["request_id"].is_string());
        }
        assert_eq!(bearer(&rig, &rig.admin, "1.1.1.1").await.status, 429);
        for path in ["/health", "/ready"] {
            assert_eq!(get(path, "1.1.1.1").await.status, 200, "{path}");
        }
        // Whoever fetches a file by a link may share the address with strangers.
        assert_eq!(get("/media/no-such-link", "1.1.1.1").await.status, 404);
        assert_eq!(get("/media/no/such/link", "1.1.1.1").await.status, 429);
        assert_eq!(get("/nothing", "1.1.1.2").await.status, 404);
        rig.stop().await;
    }

    async fn who_tries_keys_is_told_nothing_more_after_a_while(store: Store) {
        let rig = behind_a_proxy(store, open_api()).await;
        // One more is allowed every two seconds: who is slow gets more than thirty.
        let mut n_told = 0;
        let refused = loop {
            let answer = bearer(&rig, KeyText::make().unwrap().reveal(), "1.1.1.1").await;
            if answer.status != 401 || n_told == 1000 {
                break answer;
            }
            n_told += 1;
        };
        assert_eq!((refused.status, refused.code()), (429, "TOO_MANY_REQUESTS"));
        assert!(n_told >= 30, "{n_told}");
        // Somebody else behind the same address can go on, and elsewhere nothing happened.
        assert_eq!(bearer(&rig, &rig.admin, "1.1.1.1").await.status, 200);
        assert_eq!(bearer(&rig, "ost_none", "1.1.1.2").await.status, 401);
        rig.stop().await;
    }
}

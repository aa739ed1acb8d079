//! Keys that are made, looked at and revoked over HTTP.

use std::collections::BTreeSet;

use serde_json::Value;

use super::*;
use crate::{
    api::testing::{LIMIT, Rig, TestKey, make_key},
    store::{
        projects::{self, Project},
        testing::on_both,
    },
};

/// Makes a project.
async fn project(rig: &Rig, name: &str) -> ProjectId {
    let project = Project {
        id: ProjectId::new(),
        name: name.to_owned(),
        directory: rig.folder(name).display().to_string(),
        agent: None,
        settings: Default::default(),
        created_at: Millis::now(),
        updated_at: Millis::now(),
    };
    let id = project.id;
    rig.gateway.store.must(project, |conn, new| Box::pin(projects::add(conn, new))).await;
    id
}

/// Returns the actions of the audit about something.
async fn audited(rig: &Rig, subject: &str) -> Vec<Entry> {
    let subject = subject.to_owned();
    let found =
        rig.gateway.store.read(subject, |conn, subject| Box::pin(audit::about(conn, subject)));
    found.await.unwrap()
}

on_both! {
    async fn a_key_is_shown_once_and_its_hash_never(store: Store) {
        let rig = Rig::new(store).await;
        let body = json!({
            "name": "ci", "scopes": ["projects:execute", "projects:read"],
            "networks": ["10.1.2.3/8", "192.0.2.7"], "expires_in": "30d",
        });
        let before = Millis::now();
        let made = rig.post("/keys", body).await;
        assert_eq!(made.status, 201);
        let made = made.data();
        let word = made["key"].as_str().unwrap();
        assert!(word.starts_with(made["prefix"].as_str().unwrap()) && word.len() == 36);
        assert_eq!(made["scopes"], json!(["projects:read", "projects:execute"]));
        assert_eq!(made["networks"], json!(["10.0.0.0/8", "192.0.2.7/32"]));
        assert_eq!((&made["projects"], &made["state"]), (&Value::Null, &json!("active")));
        let end = read_time("", made["expires_at"].as_str().unwrap()).unwrap();
        assert!(end.0 - before.0 >= 30 * 24 * 3600 * 1000, "{end}");
        let id = made["id"].as_str().unwrap();
        let mut shown = made.clone();
        shown.as_object_mut().unwrap().remove("key");
        assert_eq!(rig.get(&format!("/keys/{id}")).await.data(), shown);
        let listed = rig.get("/keys").await.data();
        assert_eq!(listed[0], shown);
        assert!(!listed.to_string().contains(word) && !listed.to_string().contains("hash"));
        let lines = audited(&rig, id).await;
        assert_eq!((lines.len(), lines[0].action.as_str()), (1, "key.create"));
        assert!(lines[0].actor.starts_with("key_") && !lines[0].detail.contains(word));
        assert!(lines[0].detail.contains("\"from\":\"127.0.0.1\""), "{lines:?}");
        rig.stop().await;
    }

    async fn what_is_wrong_with_a_key_is_said_and_none_is_made(store: Store) {
        let rig = Rig::new(store).await;
        let unknown = ProjectId::new();
        for (body, says) in [
            (json!({ "scopes": ["admin"] }), "name"),
            (json!({ "name": "", "scopes": ["admin"] }), "name"),
            (json!({ "name": "a" }), "scopes"),
            (json!({ "name": "a", "scopes": [] }), "scope"),
            (json!({ "name": "a", "scopes": ["root"] }), "root"),
            (json!({ "name": "a", "scopes": ["admin"], "networks": ["home"] }), "home"),
            (json!({ "name": "a", "scopes": ["admin"], "projects": ["x"] }), "projects"),
            (json!({ "name": "a", "scopes": ["admin"], "projects": [unknown] }), "no project"),
            (json!({ "name": "a", "scopes": ["admin"], "projects": [] }), "projects"),
            (json!({ "name": "a", "scopes": ["admin"], "expires_in": "soon" }), "expires_in"),
            (json!({ "name": "a", "scopes": ["admin"], "expires_at": "soon" }), "expires_at"),
            (json!({ "name": "a", "scopes": ["admin"], "expires_at": "2020-01-01T00:00:00Z" }), "expired"),
            (json!({ "name": "a", "scopes": ["admin"], "expires_at": "2120-01-01T00:00:00Z", "expires_in": "1d" }), "both"),
            (json!({ "name": "a", "scopes": ["admin"], "admin": true }), "admin"),
        ] {
            let answer = rig.post("/keys", body.clone()).await;
            assert_eq!((answer.status, answer.code()), (400, "BAD_REQUEST"), "{body}");
            let message = answer.body["error"]["message"].as_str().unwrap();
            assert!(message.contains(says), "{message} for {body}");
        }
        assert_eq!(rig.get("/keys").await.data().as_array().unwrap().len(), 1);
        rig.stop().await;
    }

    async fn nobody_gives_a_key_more_than_he_has(store: Store) {
        let rig = Rig::new(store).await;
        let (mine, other) = (project(&rig, "mine").await, project(&rig, "other").await);
        let limited = TestKey {
            scopes: vec![Scope::KeysWrite, Scope::KeysRead, Scope::ProjectsRead],
            projects: Some(vec![mine]),
            networks: Some(vec!["127.0.0.0/8".parse().unwrap()]),
            expires_at: Some(Millis::now().after(std::time::Duration::from_secs(3600))),
        };
        let end = limited.expires_at.unwrap();
        let key = make_key(&rig.gateway.store, limited).await;
        let make = async |body: Value| rig.call_with(&key, "POST", "/keys", Some(body)).await;
        for more in [
            json!({ "name": "a", "scopes": ["admin"] }),
            json!({ "name": "a", "scopes": ["projects:execute"] }),
            json!({ "name": "a", "scopes": ["projects:read"], "projects": [other] }),
            json!({ "name": "a", "scopes": ["projects:read"], "projects": [mine, other] }),
            json!({ "name": "a", "scopes": ["projects:read"], "networks": ["0.0.0.0/0"] }),
            json!({ "name": "a", "scopes": ["projects:read"], "expires_in": "2h" }),
        ] {
            let answer = make(more.clone()).await;
            assert_eq!((answer.status, answer.code()), (403, "FORBIDDEN"), "{more}");
        }
        let made = make(json!({ "name": "a", "scopes": ["projects:read"] })).await.data();
        assert_eq!(made["projects"], json!([mine]));
        assert_eq!(made["networks"], json!(["127.0.0.0/8"]));
        assert_eq!(made["expires_at"], json!(end));
        rig.stop().await;
    }

    async fn a_key_for_some_projects_sees_only_keys_for_no_others(store: Store) {
        let rig = Rig::new(store).await;
        let (mine, other) = (project(&rig, "mine").await, project(&rig, "other").await);
        let keys = |projects: Option<Vec<ProjectId>>| TestKey {
            scopes: vec![Scope::KeysWrite, Scope::KeysRead],
            projects,
            ..TestKey::default()
        };
        let key = make_key(&rig.gateway.store, keys(Some(vec![mine]))).await;
        for projects in [None, Some(vec![other]), Some(vec![mine, other])] {
            make_key(&rig.gateway.store, keys(projects)).await;
        }
        let seen = rig.call_with(&key, "GET", "/keys", None).await.data();
        let seen: BTreeSet<_> =
            seen.as_array().unwrap().iter().map(|key| key["id"].to_string()).collect();
        assert_eq!(seen.len(), 1);
        for hidden in rig.get("/keys").await.data().as_array().unwrap() {
            if seen.contains(&hidden["id"].to_string()) {
                continue;
            }
            let path = format!("/keys/{}", hidden["id"].as_str().unwrap());
            for method in ["GET", "DELETE"] {
                let answer = rig.call_with(&key, method, &path, None).await;
                assert_eq!((answer.status, answer.code()), (404, "NOT_FOUND"));
            }
        }
        rig.stop().await;
    }

    async fn pages_of_keys_have_each_once_newest_first(store: Store) {
        let rig = Rig::new(store).await;
        for number in 0..6 {
            let body = json!({ "name": number.to_string(), "scopes": ["keys:read"] });
            rig.post("/keys", body).await.data();
        }
        let (mut names, mut path) = (Vec::new(), "/keys?limit=3".to_owned());
        loop {
            let page = rig.get(&path).await;
            let next = page.body["meta"]["next_cursor"].as_str().map(str::to_owned);
            for key in page.data().as_array().unwrap() {
                names.push(key["name"].as_str().unwrap().to_owned());
            }
            let Some(next) = next else { break };
            path = format!("/keys?limit=3&cursor={next}");
        }
        assert_eq!(names, ["5", "4", "3", "2", "1", "0", "of a test"]);
        for wrong in ["limit=0", "limit=101", "limit=x", "cursor=x", "page=1"] {
            let answer = rig.get(&format!("/keys?{wrong}")).await;
            assert_eq!((answer.status, answer.code()), (400, "BAD_REQUEST"), "{wrong}");
        }
        rig.stop().await;
    }

    async fn a_key_that_was_revoked_stays_listed_and_is_revoked_once(store: Store) {
        let rig = Rig::new(store).await;
        let body = json!({ "name": "a", "scopes": ["keys:read"] });
        let id = rig.post("/keys", body).await.data()["id"].as_str().unwrap().to_owned();
        let path = format!("/keys/{id}");
        let first = rig.call("DELETE", &path, None).await.data();
        assert_eq!(first["state"], "revoked");
        let second = rig.call("DELETE", &path, None).await.data();
        assert_eq!(first["revoked_at"], second["revoked_at"]);
        assert_eq!(rig.get("/keys").await.data()[0], first);
        let actions: Vec<_> = audited(&rig, &id).await.into_iter().map(|line| line.action).collect();
        assert_eq!(actions, ["key.create", "key.revoke"]);
        let nobody = format!("/keys/{}", KeyId::new());
        for path in [nobody.as_str(), "/keys/x", "/keys/prj_00000000000000000000000000000000"] {
            let answer = rig.call("DELETE", path, None).await;
            assert_eq!((answer.status, answer.code()), (404, "NOT_FOUND"), "{path}");
        }
        rig.stop().await;
    }

    async fn the_last_admin_key_that_works_cannot_be_revoked(store: Store) {
        let rig = Rig::new(store).await;
        let first = rig.get("/keys").await.data()[0]["id"].as_str().unwrap().to_owned();
        let mine = project(&rig, "mine").await;
        // None of these could do everything.
        let (expired, soon) = (Some(Millis(1)), Some(Millis::now().after(LIMIT)));
        let far = Some(vec!["192.0.2.0/24".parse().unwrap()]);
        for (projects, networks, expires_at) in [
            (Some(vec![mine]), None, None),
            (None, None, expired),
            (None, None, soon),
            (None, far, None),
        ] {
            let scopes = vec![Scope::Admin];
            let key = TestKey { scopes, projects, networks, expires_at };
            make_key(&rig.gateway.store, key).await;
        }
        let answer = rig.call("DELETE", &format!("/keys/{first}"), None).await;
        assert_eq!((answer.status, answer.code()), (409, "CONFLICT"));
        assert_eq!(rig.get(&format!("/keys/{first}")).await.data()["state"], "active");
        // Who is no admin cannot revoke one who is.
        let writer = rig.key(&[Scope::KeysWrite]).await;
        let answer = rig.call_with(&writer, "DELETE", &format!("/keys/{first}"), None).await;
        assert_eq!((answer.status, answer.code()), (403, "FORBIDDEN"));
        let second = rig.key(&[Scope::Admin]).await;
        rig.call("DELETE", &format!("/keys/{first}"), None).await.data();
        let answer = rig.get("/keys").await;
        assert_eq!(answer.code(), "KEY_REVOKED");
        assert_eq!(rig.call_with(&second, "GET", "/keys", None).await.status, 200);
        rig.stop().await;
    }

    async fn admins_who_revoke_each_other_at_once_leave_one(store: Store) {
        let rig = Rig::new(store).await;
        let second = rig.key(&[Scope::Admin]).await;
        let all = rig.get("/keys").await.data();
        let path = |at: usize| format!("/keys/{}", all[at]["id"].as_str().unwrap());
        let (newest, first) = (path(0), path(1));
        let (a, b) = tokio::join!(
            rig.call("DELETE", &newest, None),
            rig.call_with(&second, "DELETE", &first, None)
        );
        let statuses = BTreeSet::from([a.status, b.status]);
        // The slower one is refused, by the rule or because its key is gone.
        assert!(statuses.contains(&200) && statuses.len() == 2, "{a:?} {b:?}");
        rig.stop().await;
    }
}

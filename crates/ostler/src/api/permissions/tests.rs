//! Permission requests over HTTP.

use super::*;
use crate::{
    api::{prompt::tests::make_project, testing::Rig},
    gateway::asking::{self, Asked},
    store::{
        audit::{self, Entry},
        conversations::Address,
        testing::on_both,
        turns,
    },
};
use ostler_core::permission::{Permission, PermissionKind};

/// Stores a request of the newest turn of a project, open for this many seconds.
pub(in crate::api) async fn asked(
    rig: &Rig,
    project: ProjectId,
    number: u32,
    seconds: i64,
) -> PermissionId {
    let store = &rig.gateway.store;
    let turns = store.read(project, |conn, id| Box::pin(turns::of_project(conn, *id, None, 1)));
    let turns: Result<_, StoreError> = turns.await;
    let turn = turns.unwrap().remove(0).turn;
    let input = Some(json!({ "command": "rm -r build" }));
    let title = "rm -r build".to_owned();
    let mut permission = Permission::new(PermissionKind::Command, "Bash", title, input).named("r1");
    let expires = jiff::Timestamp::now() + jiff::SignedDuration::from_secs(seconds);
    permission.expires_at = Some(expires);
    let (conversation, of) = (turn.conversation, "key_1".to_owned());
    let (turn, target) = (turn.id, &Address::new("local", "main").unwrap());
    let asked = Asked { conversation, turn, of, permission: &permission, target, number };
    asking::store(store, asked).await.unwrap().id
}

async fn begun(rig: &Rig, name: &str) -> (ProjectId, String) {
    let project = make_project(rig, name).await;
    let path = format!("/projects/{project}/prompt?wait=60s");
    let over = rig.post(&path, json!({ "prompt": "x" })).await.data();
    (project, over["id"].as_str().unwrap().to_owned())
}

on_both! {
    async fn what_an_agent_asks_is_listed_and_answered_once(store: Store) {
        let rig = Rig::new(store.clone()).await;
        let (project, command) = begun(&rig, "a").await;
        let (other, _) = begun(&rig, "b").await;
        let (first, second) = (asked(&rig, project, 1, 60).await, asked(&rig, project, 2, 60).await);
        let late = asked(&rig, project, 3, -1).await;
        asked(&rig, other, 4, 60).await;
        let path = format!("/projects/{project}/permissions");
        let listed = rig.get(&path).await.data();
        let ids: Vec<_> = listed.as_array().unwrap().iter().map(|one| one["id"].clone()).collect();
        assert_eq!(ids, [json!(second), json!(first)]);
        let one = &listed[1];
        assert_eq!(one["command_id"], command);
        assert_eq!((&one["kind"], &one["tool"]), (&json!("command"), &json!("Bash")));
        assert_eq!((&one["title"], &one["input"]["command"]), (&json!("rm -r build"), &json!("rm -r build")));
        assert_eq!(one["options"], json!(["allow", "allow_always", "deny"]));
        assert!(one["expires_at"].as_str().unwrap().ends_with('Z') && one["turn_id"].is_string());
        let page = rig.get(&format!("{path}?limit=1")).await;
        assert_eq!(page.body["meta"]["next_cursor"], json!(second));
        let rest = rig.get(&format!("{path}?limit=1&cursor={second}")).await.data();
        assert_eq!(rest[0]["id"], json!(first));
        let answer = json!({ "decision": "deny", "text": "not now" });
        let decided = rig.post(&format!("{path}/{first}"), answer.clone()).await.data();
        assert_eq!(decided, json!({ "id": first, "decision": "deny" }));
        let lines = store.read(first.to_string(), |conn, id| Box::pin(audit::about(conn, id)));
        let lines: Result<Vec<Entry>, StoreError> = lines.await;
        let lines = lines.unwrap();
        assert_eq!((lines.len(), lines[0].action.as_str()), (1, "permission.deny"));
        assert!(lines[0].actor.starts_with("key_"));
        let detail: Value = serde_json::from_str(&lines[0].detail).unwrap();
        assert_eq!((&detail["project"], &detail["from"]), (&json!(project), &json!("127.0.0.1")));
        assert!(detail["request"].as_str().unwrap().starts_with("req_"), "{detail}");
        assert_eq!(detail["asked"]["title"], "rm -r build");
        for (id, status, code) in [
            (first, 409, "CONFLICT"),
            (late, 409, "CONFLICT"),
            (PermissionId::new(), 404, "NOT_FOUND"),
        ] {
            let told = rig.post(&format!("{path}/{id}"), answer.clone()).await;
            assert_eq!((told.status, told.code()), (status, code), "{told:?}");
        }
        let elsewhere = format!("/projects/{other}/permissions/{second}");
        assert_eq!(rig.post(&elsewhere, answer.clone()).await.code(), "NOT_FOUND");
        let reader = rig.key(&[Scope::ProjectsRead]).await;
        let told = rig.call_with(&reader, "POST", &format!("{path}/{second}"), Some(answer)).await;
        assert_eq!(told.code(), "FORBIDDEN");
        assert_eq!(rig.get(&path).await.data().as_array().unwrap().len(), 1);
        rig.stop().await;
    }

    async fn an_answer_that_makes_no_sense_is_refused(store: Store) {
        let rig = Rig::new(store).await;
        let (project, _) = begun(&rig, "a").await;
        let id = asked(&rig, project, 1, 60).await;
        let path = format!("/projects/{project}/permissions/{id}");
        for body in [
            json!({}),
            json!({ "decision": "perhaps" }),
            json!({ "decision": "ALLOW" }),
            json!({ "decision": { "allow": null } }),
            json!({ "decision": "allow", "text": "a\u{0}b" }),
            json!({ "decision": "allow", "text": "x".repeat(LONGEST + 1) }),
            json!({ "decision": "allow", "text": 5 }),
            json!({ "decision": "allow", "by": "me" }),
        ] {
            let told = rig.post(&path, body.clone()).await;
            assert_eq!((told.status, told.code()), (400, "BAD_REQUEST"), "{body}");
        }
        rig.post(&path, json!({ "decision": "allow_always" })).await.data();
        rig.stop().await;
    }
}

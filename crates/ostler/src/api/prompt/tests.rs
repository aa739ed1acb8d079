//! Prompts over HTTP: what they may say, and how they are answered.

mod refused;
mod waiting;

use ostler_core::request::Permissions;
use serde_json::{Value, json};

use super::*;
use crate::{
    api::{
        Phase,
        testing::{Answer, Rig, TestKey, answer, make_key},
    },
    store::{
        StoreError,
        audit::{self, Entry},
        projects::{self, Project, ProjectSettings},
        testing::on_both,
    },
};

/// Keeps a project with a folder and these wishes.
async fn project_with(rig: &Rig, name: &str, wishes: Wishes) -> ProjectId {
    let project = Project {
        id: ProjectId::new(),
        name: name.to_owned(),
        directory: rig.folder(name).display().to_string(),
        agent: None,
        settings: ProjectSettings { wishes },
        created_at: Millis(1),
        updated_at: Millis(1),
    };
    let store = &rig.gateway.store;
    store.must(project.clone(), |conn, project| Box::pin(projects::add(conn, project))).await;
    project.id
}

/// Keeps a project with a folder.
pub(in crate::api) async fn make_project(rig: &Rig, name: &str) -> ProjectId {
    project_with(rig, name, Wishes::default()).await
}

/// Asks, and waits for the end.
async fn ask(rig: &Rig, project: ProjectId, body: Value) -> Value {
    rig.post(&format!("/projects/{project}/prompt?wait=60s"), body).await.data()
}

on_both! {
    async fn a_prompt_is_accepted_and_done(store: Store) {
        let rig = Rig::new(store.clone()).await;
        let project = make_project(&rig, "a").await;
        for route in ["prompt", "claude"] {
            let path = format!("/projects/{project}/{route}");
            let answer = rig.post(&path, json!({ "prompt": "hello", "stream_id": "my-1" })).await;
            assert_eq!(answer.status, 202);
            let data = answer.data();
            let id = data["command_id"].as_str().unwrap().to_owned();
            let expected = json!({
                "command_id": id, "stream_id": "my-1",
                "stream_url": format!("/projects/{project}/events?stream_id=my-1"),
                "session_id": null, "agent_provider": "pi", "state": "queued",
            });
            assert_eq!(data, expected);
            let command: CommandId = id.parse().unwrap();
            rig.gateway.end_of(command.into()).await;
            let lines = store.read(id.clone(), |conn, id| Box::pin(audit::about(conn, id)));
            let lines: Result<Vec<Entry>, StoreError> = lines.await;
            let lines = lines.unwrap();
            assert_eq!((lines.len(), lines[0].action.as_str()), (1, "command.prompt"));
            assert!(!lines[0].detail.contains("hello"), "{lines:?}");
            let path = format!("/projects/{project}/commands/{id}");
            let over = rig.get(&path).await.data();
            assert_eq!((&over["state"], &over["text"]), (&json!("completed"), &json!("hello")));
            assert_eq!(over["result"]["response_text"], "hello");
            assert_eq!(over["agent_provider"], "pi");
        }
        rig.stop().await;
    }

    async fn a_prompt_with_a_session_goes_on_with_it_in_the_folder_of_the_project(store: Store) {
        let rig = Rig::new(store).await;
        let project = make_project(&rig, "a").await;
        let first = ask(&rig, project, json!({ "prompt": "one" })).await;
        let session = &first["result"]["session_id"];
        let path = format!("/projects/{project}/prompt");
        let next = rig.post(&path, json!({ "prompt": "two", "session_id": session })).await.data();
        assert_eq!((&next["session_id"], session), (session, &json!("s1")));
        let id: CommandId = next["command_id"].as_str().unwrap().parse().unwrap();
        rig.gateway.end_of(id.into()).await;
        assert_eq!(rig.gateway.calls(), ["new|one", "s1|two"]);
        rig.stop().await;
    }

    async fn a_prompt_may_not_ask_for_more_than_the_project_gives(store: Store) {
        let rig = Rig::new(store).await;
        let wishes = Wishes {
            permissions: Some(Permissions::Ask),
            allowed_tools: Some(vec!["Read".to_owned(), "Edit".to_owned()]),
            ..Wishes::default()
        };
        let project = project_with(&rig, "a", wishes).await;
        let path = format!("/projects/{project}/prompt");
        for (more, status) in [
            (json!({ "permissions": "bypass" }), 403),
            (json!({ "permissions": "ask" }), 202),
            (json!({ "permissions": "read-only" }), 202),
            (json!({ "allowed_tools": ["Read", "Bash"] }), 403),
            (json!({ "allowed_tools": ["Read"] }), 202),
            (json!({}), 202),
        ] {
            let mut body = json!({ "prompt": "x" });
            body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            let answer = rig.post(&path, body).await;
            assert_eq!(answer.status, status, "{more}: {answer:?}");
            assert!(status == 202 || answer.code() == "FORBIDDEN");
        }
        rig.stop().await;
    }

    async fn a_key_asks_where_it_may_and_what_it_is_not_for_is_not_there(store: Store) {
        let rig = Rig::new(store.clone()).await;
        let (mine, other) = (make_project(&rig, "a").await, make_project(&rig, "b").await);
        let scopes = vec![Scope::ProjectsExecute];
        let key = TestKey { scopes, projects: Some(vec![mine]), ..TestKey::default() };
        let key = make_key(&store, key).await;
        let reader = rig.key(&[Scope::ProjectsRead]).await;
        for (key, project, status) in
            [(&key, mine, 202), (&key, other, 404), (&reader, mine, 403), (&key, ProjectId::new(), 404)]
        {
            let path = format!("/projects/{project}/prompt");
            let body = json!({ "prompt": "x" });
            let answer = rig.call_with(key, "POST", &path, Some(body)).await;
            assert_eq!(answer.status, status, "{answer:?}");
        }
        // Nobody's body is read who may not give one.
        let path = format!("/projects/{mine}/prompt");
        assert_eq!(rig.call_with(&reader, "POST", &path, None).await.status, 403);
        let path = format!("/projects/{}/prompt", ProjectId::new());
        let admin = rig.post(&path, json!({ "prompt": "x" })).await;
        assert_eq!(admin.code(), "NOT_FOUND");
        rig.stop().await;
    }

    async fn a_project_whose_folder_or_agent_is_gone_takes_no_prompts(store: Store) {
        let rig = Rig::new(store.clone()).await;
        let project = make_project(&rig, "a").await;
        std::fs::remove_dir(rig.folder("a")).unwrap();
        let path = format!("/projects/{project}/prompt");
        let answer = rig.post(&path, json!({ "prompt": "x" })).await;
        assert_eq!((answer.status, answer.code()), (409, "CONFLICT"), "{answer:?}");
        rig.stop().await;
    }
}

#[test]
fn what_a_prompt_says_goes_over_what_the_project_says() {
    let base = Wishes {
        agent: Some("pi".to_owned()),
        model: Some("small".to_owned()),
        cwd: Some("/work".into()),
        timeout_ms: Some(5000),
        max_turns: Some(3),
        isolated: true,
        ..Wishes::default()
    };
    let asked = |more: Value| -> PromptRequest {
        let mut body = json!({ "prompt": "x" });
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        serde_json::from_value(body).unwrap()
    };
    assert_eq!(overlay(base.clone(), asked(json!({ "model": null }))), base);
    let all = json!({
        "model": "large", "session_id": "s", "allowed_tools": ["Read"], "timeout": 90,
        "permissions": "read-only", "thinking": "high", "system_prompt": "Be brief.",
        "max_turns": 7,
    });
    let expected = Wishes {
        model: Some("large".to_owned()),
        session: Some("s".to_owned()),
        allowed_tools: Some(vec!["Read".to_owned()]),
        timeout_ms: Some(90_000),
        permissions: Some(Permissions::ReadOnly),
        thinking: Some(Thinking::High),
        system: Some("Be brief.".to_owned()),
        max_turns: Some(7),
        ..base.clone()
    };
    assert_eq!(overlay(base, asked(all)), expected);
}

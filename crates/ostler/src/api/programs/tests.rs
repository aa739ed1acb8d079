//! Programs over HTTP: who may run what, and what is written about it.

use serde_json::{Value, json};

use crate::{
    api::testing::{Rig, TestKey, make_key},
    clock::Millis,
    config::Api,
    gateway::{commands::CommandResult, testing::Knobs},
    id::{CommandId, ProjectId},
    key::Scope,
    store::{
        Store, audit,
        commands::{self, Filter},
        projects::{self, Project, ProjectSettings},
        testing::on_both,
    },
};

async fn rig(store: Store, shell: &[&str]) -> Rig {
    let shell = shell.iter().map(|name| (*name).to_owned()).collect();
    let api = Api { shell, ..Api::default() };
    Rig::with(store, Knobs { api, ..Knobs::default() }).await
}

async fn project(rig: &Rig) -> ProjectId {
    let now = Millis::now();
    let project = Project {
        id: ProjectId::new(),
        name: "one".to_owned(),
        directory: rig.folder("one").to_str().unwrap().to_owned(),
        agent: None,
        settings: ProjectSettings::default(),
        created_at: now,
        updated_at: now,
    };
    let id = project.id;
    let store = &rig.gateway.store;
    store.must(project, |conn, project| Box::pin(projects::add(conn, project))).await;
    id
}

/// Waits for the end of a command that was accepted.
async fn end_of(rig: &Rig, accepted: &Value) -> (Vec<Value>, CommandResult) {
    let id: CommandId = accepted["command_id"].as_str().unwrap().parse().unwrap();
    let (events, _) = rig.gateway.end_of(id.into()).await;
    let store = &rig.gateway.store;
    let command = store.must(id, |conn, id| Box::pin(commands::find(conn, *id))).await.unwrap();
    (events, serde_json::from_str(&command.result.unwrap()).unwrap())
}

on_both! {
    async fn a_listed_program_is_run_in_the_folder_with_exactly_its_words(store: Store) {
        let rig = rig(store, &["printf", "pwd", "./own"]).await;
        let id = project(&rig).await;
        let path = format!("/projects/{id}/shell");
        let command = r"printf '%s\n' 'a b' $x".replace("$x", "'$(id)' *");
        let body = json!({ "command": command, "stream_id": "mine", "timeout": "90s" });
        let answer = rig.post(&path, body).await;
        assert_eq!(answer.status, 202);
        let accepted = answer.data();
        let command_id = accepted["command_id"].clone();
        assert_eq!(accepted, json!({
            "command_id": command_id, "stream_id": "mine",
            "stream_url": format!("/projects/{id}/events?stream_id=mine"),
            "session_id": null, "agent_provider": null, "state": "queued",
        }));
        let (_, result) = end_of(&rig, &accepted).await;
        assert_eq!(result.response_text.as_deref(), Some("a b\n$(id)\n*\n"));
        let subject = command_id.as_str().unwrap().to_owned();
        let lines = rig.gateway.store.must(subject, |conn, subject| Box::pin(audit::about(conn, subject))).await;
        assert_eq!((lines.len(), lines[0].action.as_str()), (1, "command.shell"));
        assert!(lines[0].detail.contains("a b"), "{}", lines[0].detail);

        let accepted = rig.post(&path, json!({ "command": "pwd" })).await.data();
        assert_eq!(accepted["stream_id"], accepted["command_id"]);
        let (_, result) = end_of(&rig, &accepted).await;
        let folder = format!("{}\n", rig.folder("one").display());
        assert_eq!(result.response_text, Some(folder));
        let accepted = rig.post(&path, json!({ "command": "./own" })).await.data();
        assert!(end_of(&rig, &accepted).await.1.is_error);
        rig.stop().await;
    }

    async fn what_is_not_allowed_is_refused_and_nothing_is_stored(store: Store) {
        let rig = rig(store, &["true"]).await;
        let id = project(&rig).await;
        for (route, body, status, code, says) in [
            ("shell", json!({ "command": "true; rm x" }), 400, "BAD_REQUEST", "no shell"),
            ("shell", json!({ "command": "rm x" }), 403, "FORBIDDEN", "`true`"),
            ("shell", json!({ "command": "/bin/true" }), 403, "FORBIDDEN", "`true`"),
            ("shell", json!({ "command": " " }), 400, "BAD_REQUEST", "empty"),
            ("shell", json!({ "command": "true", "timeout": "2d" }), 400, "BAD_REQUEST", "24h"),
            ("shell", json!({ "command": "true", "stream_id": "a b" }), 400, "BAD_REQUEST", "stream_id"),
            ("shell", json!({ "command": "true", "cwd": "/" }), 400, "BAD_REQUEST", "cwd"),
            ("git", json!({ "args": [] }), 400, "BAD_REQUEST", "empty"),
            ("git", json!({ "args": ["-c", "a=b", "log"] }), 400, "BAD_REQUEST", "option"),
            ("git", json!({ "args": ["push"] }), 403, "FORBIDDEN", "`log`"),
            ("git", json!({ "args": ["log", "--output=x"] }), 403, "FORBIDDEN", "--output=x"),
            ("git", json!({ "args": ["diff", "/etc/passwd", "x"] }), 403, "FORBIDDEN", "/etc/passwd"),
        ] {
            let answer = rig.post(&format!("/projects/{id}/{route}"), body.clone()).await;
            assert_eq!((answer.status, answer.code()), (status, code), "{body} {answer:?}");
            let message = answer.body["error"]["message"].as_str().unwrap();
            assert!(message.contains(says), "{body}: {message}");
        }
        let commands = rig.gateway.store.must(id, |conn, id| Box::pin(commands::list(conn, *id, Filter::default(), None, 10)));
        assert!(commands.await.is_empty());
        let other = format!("/projects/{}/shell", ProjectId::new());
        assert_eq!(rig.post(&other, json!({ "command": "true" })).await.code(), "NOT_FOUND");
        rig.stop().await;
    }

    async fn without_a_list_nothing_is_run_and_it_is_said_what_to_set(store: Store) {
        let rig = rig(store, &[]).await;
        let id = project(&rig).await;
        let answer = rig.post(&format!("/projects/{id}/shell"), json!({ "command": "true" })).await;
        assert_eq!(answer.code(), "FORBIDDEN");
        assert!(answer.body["error"]["message"].as_str().unwrap().contains("api.shell"));
        rig.stop().await;
    }

    async fn a_key_needs_the_scope_and_the_project(store: Store) {
        let rig = rig(store, &["true"]).await;
        let id = project(&rig).await;
        let store = &rig.gateway.store;
        let reads = rig.key(&[Scope::ProjectsRead]).await;
        let elsewhere = TestKey {
            scopes: vec![Scope::ProjectsExecute],
            projects: Some(vec![ProjectId::new()]),
            ..TestKey::default()
        };
        let elsewhere = make_key(store, elsewhere).await;
        let runs = rig.key(&[Scope::ProjectsExecute]).await;
        for (route, body) in
            [("shell", json!({ "command": "true" })), ("git", json!({ "args": ["log"] }))]
        {
            let path = format!("/projects/{id}/{route}");
            for (key, status) in [(&reads, 403), (&elsewhere, 404), (&runs, 202)] {
                let answer = rig.call_with(key, "POST", &path, Some(body.clone())).await;
                assert_eq!(answer.status, status, "{answer:?}");
            }
        }
        rig.stop().await;
    }

    async fn git_says_what_it_finds(store: Store) {
        let rig = rig(store, &["git"]).await;
        let id = project(&rig).await;
        let shell = format!("/projects/{id}/shell");
        for command in [
            "git init -q -b main",
            "git -c user.name=t -c user.email=t@example.org commit -q --allow-empty -m 'the first'",
        ] {
            let accepted = rig.post(&shell, json!({ "command": command })).await.data();
            assert_eq!(end_of(&rig, &accepted).await.1.exit_code, 0);
        }
        let path = format!("/projects/{id}/git");
        let accepted = rig.post(&path, json!({ "args": ["log", "-1", "--format=%s"] })).await.data();
        let (events, result) = end_of(&rig, &accepted).await;
        assert_eq!(result.response_text.as_deref(), Some("the first\n"), "{events:#?}");
        assert_eq!((&events[0]["agent"], result.provider.as_deref()), (&json!("git"), Some("git")));
        let accepted = rig.post(&path, json!({ "args": ["show", "nothing"] })).await.data();
        let (_, result) = end_of(&rig, &accepted).await;
        assert_eq!((result.exit_code, result.is_error), (128, true));
        rig.stop().await;
    }
}

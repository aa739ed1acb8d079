//! Projects, as callers make, see, change and delete them.

mod folders;

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::*;
use crate::{
    api::{
        agents::tests::Cast,
        testing::{LIMIT, Rig, TestKey, make_key},
    },
    gateway::{commands::accept::Order, testing::Knobs},
    id::{CommandId, ConversationId},
    store::{
        Store, audit,
        commands::{self, CommandKind, CommandState, StoredCommand},
        conversations::{self, Address},
        sessions::{self, Session},
        testing::on_both,
    },
    wishes::Wishes,
};

/// Makes a project in a folder of its own.
async fn make(rig: &Rig, name: &str) -> Value {
    rig.folder(name);
    rig.post("/projects", json!({ "name": name, "directory": name })).await.data()
}

fn id(project: &Value) -> ProjectId {
    project["id"].as_str().unwrap().parse().unwrap()
}

fn path(project: &Value) -> String {
    format!("/projects/{}", project["id"].as_str().unwrap())
}

async fn actions(store: &Store, project: &Value) -> Vec<(String, Value)> {
    let subject = id(project).to_string();
    let audit = store.read(subject, |conn, it| Box::pin(audit::about(conn, it))).await.unwrap();
    assert!(audit.iter().all(|entry| entry.actor.starts_with("key_")), "{audit:?}");
    audit
        .into_iter()
        .map(|entry| (entry.action, serde_json::from_str(&entry.detail).unwrap()))
        .collect()
}

/// Keeps a session in a new conversation of a project.
async fn keep_session(store: &Store, project: ProjectId, name: &str) -> ConversationId {
    let args = (project, name.to_owned());
    store
        .must(args, |conn, (project, name)| {
            Box::pin(async move {
                let address = Address::new("api", &format!("{project}/{name}")).unwrap();
                let id = conversations::find_or_begin(conn, &address, Millis(1)).await?.id;
                conversations::set_project(conn, id, *project).await?;
                for agent in ["claude", "pi"] {
                    let session = Session {
                        session: name.clone(),
                        memo: "{}".to_owned(),
                        updated_at: Millis(1),
                    };
                    sessions::keep(conn, id, agent, &session).await?;
                }
                Ok(id)
            })
        })
        .await
}

async fn n_sessions(store: &Store, conversation: ConversationId) -> usize {
    let read = store.read(conversation, |conn, id| Box::pin(sessions::list(conn, *id)));
    read.await.unwrap().len()
}

/// Gives a command in a project.
async fn order(rig: &Rig, project: &Value, text: &str) -> CommandId {
    let command = CommandId::new();
    let directory = project["directory"].as_str().unwrap().into();
    let wishes = Wishes { agent: Some("pi".to_owned()), cwd: Some(directory), ..Wishes::default() };
    let entry = audit::Entry {
        at: Millis(1),
        actor: "key_test".to_owned(),
        action: "command.prompt".to_owned(),
        subject: command.to_string(),
        detail: "{}".to_owned(),
    };
    let order = Order {
        id: command,
        project: id(project),
        kind: CommandKind::Prompt,
        stream: None,
        text: text.to_owned(),
        wishes,
        words: None,
        actor: "key_test".to_owned(),
        entry,
    };
    rig.gateway.gateway.command(order).await.unwrap();
    command
}

async fn command(store: &Store, id: CommandId) -> StoredCommand {
    store.read(id, |conn, id| Box::pin(commands::find(conn, *id))).await.unwrap().unwrap()
}

on_both! {
    async fn a_project_is_made_and_seen(store: Store) {
        let rig = Rig::new(store.clone()).await;
        let folder = rig.folder("app");
        let body = json!({
            "name": "My app 🐴", "directory": folder, "agent_provider": "pi",
            "settings": { "model": "opus", "timeout": 90, "permissions": "read-only" },
        });
        let answer = rig.post("/projects", body).await;
        assert_eq!(answer.status, 201);
        let made = answer.data();
        assert!(made["id"].as_str().unwrap().starts_with("prj_"));
        assert_eq!((&made["name"], &made["directory"]), (&json!("My app 🐴"), &json!(folder)));
        assert_eq!(made["agent_provider"], "pi");
        let caps = &ostler_core::agent::find("pi").unwrap().caps;
        assert_eq!(made["agent_capabilities"], serde_json::to_value(caps).unwrap());
        assert_eq!(made["settings"], json!({
            "model": "opus", "timeout": "90s", "permissions": "read-only", "thinking": null,
            "max_turns": null, "allowed_tools": null, "system_prompt": null,
        }));
        assert_eq!(made["created_at"], made["updated_at"]);
        assert!(made["created_at"].as_str().unwrap().ends_with('Z'));
        assert_eq!(rig.get(&path(&made)).await.data(), made);
        assert_eq!(rig.get("/projects").await.data(), json!([made]));
        let [(action, detail)] = &actions(&store, &made).await[..] else { panic!() };
        assert_eq!((action.as_str(), &detail["name"]), ("project.create", &json!("My app 🐴")));
        assert!(detail["request"].as_str().unwrap().starts_with("req_"), "{detail}");
        rig.stop().await;
    }

    async fn what_is_wrong_with_a_project_is_told_and_nothing_is_made(store: Store) {
        let rig = Rig::new(store).await;
        rig.folder("app");
        let long = "x".repeat(101);
        let id = ProjectId::new().to_string();
        for (field, value) in [
            ("name", json!("")),
            ("name", json!(long)),
            ("name", json!("a\nb")),
            ("name", json!("a\u{0}")),
            ("name", json!("a\u{85}b")),
            ("name", json!(" a")),
            ("name", json!(id)),
            ("name", json!(null)),
            ("name", json!(["a"])),
            ("directory", json!(null)),
            ("directory", json!("")),
            ("agent_provider", json!("duck")),
            ("agent_provider", json!("")),
            ("agent_provider", json!(7)),
            ("settings", json!([])),
            ("settings", json!({ "modle": "x" })),
            ("settings", json!({ "model": "-x" })),
            ("create", json!("yes")),
            ("pod", json!("x")),
        ] {
            let mut body = json!({ "name": "app", "directory": "app" });
            body[field] = value;
            let answer = rig.post("/projects", body.clone()).await;
            assert_eq!((answer.status, answer.code()), (400, "BAD_REQUEST"), "{body}");
        }
        for body in [json!([]), json!(["app", "app", false, null, null]), json!(null)] {
            assert_eq!(rig.post("/projects", body).await.status, 400);
        }
        assert_eq!(rig.get("/projects").await.data(), json!([]));
        // Characters count, not bytes.
        let body = json!({ "name": "ü".repeat(100), "directory": "app" });
        assert_eq!(rig.post("/projects", body).await.status, 201);
        rig.stop().await;
    }

    async fn a_name_is_had_by_one_project_at_a_time(store: Store) {
        let rig = Rig::new(store.clone()).await;
        let first = make(&rig, "app").await;
        let body = json!({ "name": "app", "directory": "app" });
        let again = rig.post("/projects", body.clone()).await;
        assert_eq!((again.status, again.code()), (409, "CONFLICT"));
        let other = make(&rig, "other").await;
        let renamed = rig.call("PATCH", &path(&other), Some(json!({ "name": "app" }))).await;
        assert_eq!((renamed.status, renamed.code()), (409, "CONFLICT"));
        assert_eq!(rig.get(&path(&other)).await.data(), other);
        assert_eq!(rig.call("DELETE", &path(&first), None).await.status, 200);
        assert_eq!(rig.post("/projects", body).await.status, 201);
        rig.stop().await;
    }

    async fn of_two_who_take_a_name_at_once_one_gets_it(store: Store) {
        let rig = Rig::new(store.clone()).await;
        for round in 0..5 {
            let name = format!("app {round}");
            let body = json!({ "name": name, "directory": name, "create": true });
            let make = || rig.post("/projects", body.clone());
            let answers = tokio::join!(make(), make(), make(), make());
            let mut answers = [answers.0, answers.1, answers.2, answers.3].map(|it| it.status);
            answers.sort_unstable();
            assert_eq!(answers, [201, 409, 409, 409]);
        }
        let (one, two) = (make(&rig, "one").await, make(&rig, "two").await);
        for round in 0..5 {
            let body = json!({ "name": format!("same {round}") });
            let rename = |project: &Value| {
                let path = path(project);
                let (rig, body) = (&rig, body.clone());
                async move { rig.call("PATCH", &path, Some(body)).await.status }
            };
            let (first, second) = tokio::join!(rename(&one), rename(&two));
            let mut both = [first, second];
            both.sort_unstable();
            assert_eq!(both, [200, 409]);
        }
        let listed = rig.get("/projects").await.data();
        let names: BTreeSet<_> =
            listed.as_array().unwrap().iter().map(|it| it["name"].as_str().unwrap()).collect();
        assert_eq!(names.len(), 7);
        rig.stop().await;
    }

    async fn a_change_is_merged_and_written_down(store: Store) {
        let rig = Rig::new(store.clone()).await;
        let made = make(&rig, "app").await;
        let patch = |body: Value| {
            let path = path(&made);
            let rig = &rig;
            async move { rig.call("PATCH", &path, Some(body)).await }
        };
        let settings = json!({ "model": "opus", "max_turns": 3, "system_prompt": "secret" });
        let changed = patch(json!({ "name": "web", "settings": settings })).await.data();
        assert_eq!((&changed["name"], &changed["settings"]["model"]), (&json!("web"), &json!("opus")));
        assert_eq!(changed["directory"], made["directory"]);
        let changed = patch(json!({ "settings": { "model": null, "thinking": "low", "permissions": "ask" } })).await.data();
        let expected = json!({
            "model": null, "thinking": "low", "max_turns": 3, "system_prompt": "secret",
            "timeout": null, "permissions": "ask", "allowed_tools": null,
        });
        assert_eq!(changed["settings"], expected);
        assert_eq!(rig.get(&path(&made)).await.data(), changed);
        // Nothing changes, and nothing is written down.
        assert_eq!(patch(json!({})).await.data(), changed);
        let cleared = patch(json!({ "settings": null })).await.data();
        assert_eq!(cleared["settings"], made["settings"]);
        for wrong in [
            json!({ "name": null }),
            json!({ "name": "" }),
            json!({ "directory": "x" }),
            json!({ "id": "prj_1" }),
            json!({ "settings": { "max_turns": 0 } }),
            json!({ "settings": 1 }),
            json!({ "settings": ["opus", null, null, null, null, null, null] }),
            json!({ "agent_provider": "duck" }),
            json!(null),
        ] {
            let answer = patch(wrong.clone()).await;
            assert_eq!((answer.status, answer.code()), (400, "BAD_REQUEST"), "{wrong}");
        }
        assert_eq!(rig.get(&path(&made)).await.data(), cleared);
        let audit = actions(&store, &made).await;
        let words: Vec<_> = audit.iter().map(|(action, _)| action.as_str()).collect();
        let changes = ["project.change"; 3];
        assert_eq!(words, [&["project.create"], &changes[..]].concat());
        assert_eq!(audit[1].1["name"], json!({ "from": "app", "to": "web" }));
        let rights: Vec<_> = audit.iter().map(|(_, detail)| &detail["permissions"]).collect();
        let (asks, stops) = (json!({ "from": null, "to": "ask" }), json!({ "from": "ask", "to": null }));
        assert_eq!(rights, [&json!(null), &json!(null), &asks, &stops]);
        assert!(audit.iter().all(|(_, detail)| !detail.to_string().contains("secret")));
        rig.stop().await;
    }

    async fn another_agent_must_be_able_to_run_and_begins_without_sessions(store: Store) {
        let rig = Rig::new(store.clone()).await;
        let _folder = Cast::enter(&rig, "claude");
        let (app, other) = (make(&rig, "app").await, make(&rig, "other").await);
        assert_eq!(app["agent_provider"], "claudecode");
        let kept = keep_session(&store, id(&other), "elsewhere").await;
        let [one, two] = [
            keep_session(&store, id(&app), "one").await,
            keep_session(&store, id(&app), "two").await,
        ];
        let patch = |agent: Value| {
            let path = path(&app);
            let rig = &rig;
            async move { rig.call("PATCH", &path, Some(json!({ "agent_provider": agent }))).await }
        };
        // It is known, but not there.
        let missing = patch(json!("codex")).await;
        assert_eq!((missing.status, missing.code()), (400, "BAD_REQUEST"));
        assert_eq!(n_sessions(&store, one).await, 2);
        let changed = patch(json!("pi")).await.data();
        assert_eq!(changed["agent_provider"], "pi");
        let caps = &ostler_core::agent::find("pi").unwrap().caps;
        assert_eq!(changed["agent_capabilities"], serde_json::to_value(caps).unwrap());
        for (conversation, n_left) in [(one, 0), (two, 0), (kept, 2)] {
            assert_eq!(n_sessions(&store, conversation).await, n_left);
        }
        // The same agent again is no change, by either of its names.
        assert_eq!(patch(json!("claude")).await.data()["agent_provider"], "claudecode");
        let again = keep_session(&store, id(&app), "one").await;
        assert_eq!(patch(json!("claudecode")).await.data()["agent_provider"], "claudecode");
        assert_eq!(n_sessions(&store, again).await, 2);
        assert_eq!(patch(json!("house")).await.data()["agent_provider"], "house");
        assert_eq!(patch(json!(null)).await.data()["agent_provider"], "claudecode");
        let audit = actions(&store, &app).await;
        let agents: Vec<_> = audit.iter().skip(1).map(|(_, detail)| &detail["agent"]).collect();
        assert_eq!(agents, [
            &json!({ "from": null, "to": "pi" }),
            &json!({ "from": "pi", "to": "claude" }),
            &json!({ "from": "claude", "to": "house" }),
            &json!({ "from": "house", "to": null }),
        ]);
        assert_eq!(audit[1].1["sessions"], 4);
        rig.stop().await;
    }

    async fn a_project_that_names_nobody_or_somebody_gone_has_the_default(store: Store) {
        let rig = Rig::new(store.clone()).await;
        let _folder = Cast::enter(&rig, "claude");
        rig.folder("own");
        let body = json!({ "name": "own", "directory": "own", "agent_provider": "house" });
        let own = rig.post("/projects", body).await.data();
        let app = make(&rig, "app").await;
        let agents = async || {
            let list = rig.get("/projects").await.data();
            let agents = [&list[0], &list[1]].map(|it| it["agent_provider"].clone());
            for (project, agent) in [(&app, &agents[0]), (&own, &agents[1])] {
                let found = find(&rig.service, id(project)).await.unwrap();
                let spec = provider_of(&rig.service, &found).await.unwrap();
                assert_eq!(crate::api::provider(&spec.name), agent);
            }
            agents
        };
        assert_eq!(agents().await, ["claudecode", "house"]);
        rig.call("PUT", "/agents/default", Some(json!({ "agent_provider": "pi" }))).await.data();
        assert_eq!(agents().await, ["pi", "house"]);
        // The rig's own agents, among which there is no such one.
        rig.gateway.change(&rig.knobs());
        assert_eq!(agents().await, ["pi", "pi"]);
        rig.stop().await;
    }

    async fn a_deleted_project_is_gone_with_what_was_open_in_it(store: Store) {
        let rig = Rig::new(store.clone()).await;
        let (app, other) = (make(&rig, "app").await, make(&rig, "other").await);
        let done = order(&rig, &app, "hello").await;
        rig.gateway.end_of(done.into()).await;
        let running = order(&rig, &app, "hang").await;
        rig.gateway.until_hanging().await;
        let conversation = keep_session(&store, id(&app), "one").await;
        let deleted = rig.call("DELETE", &path(&app), None).await.data();
        assert_eq!(deleted, json!({ "id": app["id"], "cancelled_commands": 1 }));
        tokio::time::timeout(LIMIT, rig.gateway.end_of(running.into())).await.unwrap();
        assert_eq!(command(&store, running).await.state, CommandState::Cancelled);
        assert_eq!(command(&store, done).await.state, CommandState::Completed);
        assert_eq!(n_sessions(&store, conversation).await, 0);
        for (method, body) in [("GET", None), ("PATCH", Some(json!({}))), ("DELETE", None)] {
            let answer = rig.call(method, &path(&app), body).await;
            assert_eq!((answer.status, answer.code()), (404, "NOT_FOUND"), "{method}");
        }
        assert_eq!(rig.get("/projects").await.data(), json!([other]));
        let audit = actions(&store, &app).await;
        assert_eq!(audit[1].0, "project.delete");
        assert_eq!((&audit[1].1["cancelled"], &audit[1].1["name"]), (&json!(1), &json!("app")));
        assert!(std::path::Path::new(app["directory"].as_str().unwrap()).is_dir());
        rig.stop().await;
    }

    async fn a_key_has_its_projects_and_no_others(store: Store) {
        let rig = Rig::new(store.clone()).await;
        let (app, other) = (make(&rig, "app").await, make(&rig, "other").await);
        let scopes = vec![Scope::ProjectsRead, Scope::ProjectsExecute];
        let limited = |projects: Vec<ProjectId>| {
            let projects = Some(projects);
            make_key(&store, TestKey { scopes: scopes.clone(), projects, ..TestKey::default() })
        };
        let key = limited(vec![id(&app)]).await;
        let none = limited(Vec::new()).await;
        assert_eq!(rig.call_with(&key, "GET", "/projects", None).await.data(), json!([app]));
        assert_eq!(rig.call_with(&none, "GET", "/projects", None).await.data(), json!([]));
        assert_eq!(rig.call_with(&key, "GET", &path(&app), None).await.status, 200);
        for (method, body) in [("GET", None), ("PATCH", Some(json!({}))), ("DELETE", None)] {
            let answer = rig.call_with(&key, method, &path(&other), body).await;
            assert_eq!((answer.status, answer.code()), (404, "NOT_FOUND"), "{method}");
        }
        // One that is for some projects could not use a new one.
        let new = rig.call_with(&key, "POST", "/projects", None).await;
        assert_eq!((new.status, new.code()), (403, "FORBIDDEN"));
        let read = rig.key(&[Scope::ProjectsRead]).await;
        for (method, path) in
            [("POST", "/projects"), ("PATCH", &path(&app)), ("DELETE", &path(&app))]
        {
            let answer = rig.call_with(&read, method, path, None).await;
            assert_eq!((answer.status, answer.code()), (403, "FORBIDDEN"), "{method}");
        }
        assert_eq!(rig.call_with(&key, "DELETE", &path(&app), None).await.status, 200);
        rig.stop().await;
    }

    async fn what_began_before_the_agent_changed_brings_no_session_back(store: Store) {
        // One runs meanwhile, and one waits.
        let rig = Rig::with(store.clone(), Knobs { at_once: 1, ..Knobs::default() }).await;
        let app = make(&rig, "app").await;
        let gemini = json!({ "agent_provider": "gemini" });
        for (method, place, back) in [
            ("PATCH", path(&app), json!({ "agent_provider": null })),
            ("PUT", "/agents/default".to_owned(), json!({ "agent_provider": null })),
        ] {
            let begun = [order(&rig, &app, "gate").await, order(&rig, &app, "two").await];
            rig.gateway.until_hanging().await;
            rig.call(method, &place, Some(gemini.clone())).await.data();
            rig.gateway.open_gate().await;
            for id in begun {
                rig.gateway.end_of(id.into()).await;
                let over = command(&store, id).await;
                assert_eq!(over.state, CommandState::Completed, "{method}");
                assert_eq!(n_sessions(&store, over.command.conversation).await, 0, "{method}");
            }
            // Its own are kept.
            let prompt = format!("{}/prompt?wait=60s", path(&app));
            let over = rig.post(&prompt, json!({ "prompt": "three" })).await.data();
            assert_eq!(over["agent_provider"], "gemini", "{method}");
            let over = command(&store, over["id"].as_str().unwrap().parse().unwrap()).await;
            assert_eq!(n_sessions(&store, over.command.conversation).await, 1, "{method}");
            rig.call(method, &place, Some(back)).await.data();
        }
        rig.stop().await;
    }

    async fn a_list_can_be_read_to_its_end(store: Store) {
        let rig = Rig::new(store.clone()).await;
        let folder = rig.folder("app").display().to_string();
        let ids: Vec<_> = (0..250).map(|_| ProjectId::new()).collect();
        store.must((ids.clone(), folder), |conn, (ids, folder)| {
            Box::pin(async move {
                for id in ids {
                    let project = Project {
                        id: *id,
                        name: format!("app {id}"),
                        directory: folder.clone(),
                        agent: None,
                        settings: projects::ProjectSettings::default(),
                        created_at: Millis(1),
                        updated_at: Millis(1),
                    };
                    assert!(projects::add(conn, &project).await?);
                }
                Ok(())
            })
        }).await;
        let some: Vec<_> = ids.iter().step_by(2).copied().collect();
        let scopes = vec![Scope::ProjectsRead];
        let key = TestKey { scopes, projects: Some(some.clone()), ..TestKey::default() };
        let key = make_key(&store, key).await;
        for (key, expected, limit, n_pages) in [
            (&rig.admin, &ids, None, 5),
            (&rig.admin, &ids, Some(100), 3),
            (&rig.admin, &ids, Some(25), 10),
            (&key, &some, Some(50), 3),
        ] {
            let (mut seen, mut cursor, mut n_seen) = (Vec::new(), None::<String>, 0);
            loop {
                let mut path = "/projects?".to_owned();
                path += &limit.map(|limit| format!("limit={limit}&")).unwrap_or_default();
                path += &cursor.map(|cursor| format!("cursor={cursor}")).unwrap_or_default();
                let page = rig.call_with(key, "GET", &path, None).await;
                let next = page.body["meta"]["next_cursor"].as_str().map(str::to_owned);
                let page = page.data();
                seen.extend(page.as_array().unwrap().iter().map(id));
                n_seen += 1;
                match next {
                    Some(next) => cursor = Some(next),
                    None => break,
                }
            }
            let newest_first: Vec<_> = expected.iter().rev().copied().collect();
            assert_eq!((seen, n_seen), (newest_first, n_pages));
        }
        for wrong in
            ["limit=0", "limit=101", "limit=-1", "limit=x", "cursor=x", "cursor=", "page=2",
             "limit=1&limit=2"]
        {
            let answer = rig.get(&format!("/projects?{wrong}")).await;
            assert_eq!((answer.status, answer.code()), (400, "BAD_REQUEST"), "{wrong}");
        }
        rig.stop().await;
    }

    async fn who_may_only_prompt_does_not_decide_what_agents_may_do(store: Store) {
        let rig = Rig::new(store).await;
        let app = make(&rig, "app").await;
        let key = rig.key(&[Scope::ProjectsRead, Scope::ProjectsExecute]).await;
        let set = json!({ "settings": { "permissions": "ask", "allowed_tools": ["Read"] } });
        rig.call("PATCH", &path(&app), Some(set)).await.data();
        rig.folder("new");
        let create = |settings: &Value| json!({ "name": "new", "directory": "new", "settings": settings });
        for settings in [
            json!({ "permissions": "bypass" }),
            json!({ "model": "m", "allowed_tools": ["Read", "Bash"] }),
            json!({ "permissions": null }),
            json!({ "allowed_tools": null }),
            Value::Null,
        ] {
            let change = Some(json!({ "settings": settings }));
            let answer = rig.call_with(&key, "PATCH", &path(&app), change).await;
            assert_eq!((answer.status, answer.code()), (403, "FORBIDDEN"), "{settings}");
        }
        for settings in [json!({ "permissions": "bypass" }), json!({ "allowed_tools": ["Bash"] })] {
            let answer = rig.call_with(&key, "POST", "/projects", Some(create(&settings))).await;
            assert_eq!((answer.status, answer.code()), (403, "FORBIDDEN"), "{settings}");
        }
        let strict = json!({ "permissions": "read-only", "model": "m" });
        let change = Some(json!({ "settings": strict }));
        let settings = rig.call_with(&key, "PATCH", &path(&app), change).await.data()["settings"].clone();
        assert_eq!((&settings["permissions"], &settings["model"]), (&json!("read-only"), &json!("m")));
        assert_eq!(settings["allowed_tools"], json!(["Read"]));
        let nothing = json!({ "permissions": null, "allowed_tools": null, "timeout": "5m" });
        let answer = rig.call_with(&key, "POST", "/projects", Some(create(&nothing))).await;
        assert_eq!(answer.status, 201, "{answer:?}");
        rig.stop().await;
    }

    async fn a_name_that_is_taken_is_told_from_other_errors(store: Store) {
        let rig = Rig::new(store.clone()).await;
        let (_, other) = (make(&rig, "app").await, make(&rig, "other").await);
        let mut other = find(&rig.service, id(&other)).await.unwrap();
        other.name = "app".to_owned();
        let written =
            store.write(other, |conn, other| Box::pin(async move { projects::update(conn, other).await }));
        assert!(projects::is_taken(&written.await.unwrap_err()));
        rig.stop().await;
    }
}

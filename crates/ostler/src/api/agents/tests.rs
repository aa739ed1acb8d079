//! The agents, as callers see them.

use std::{
    fs,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    sync::Arc,
};

use ostler_core::{
    Host, HostConfig,
    agent::{Roster, acp::AcpAgent},
    request::TurnRequest,
};
use serde_json::Value;
use tempfile::TempDir;

use super::*;
use crate::{
    api::testing::Rig,
    gateway::{inbound::Payload, policy::Agents},
    store::testing::on_both,
};

/// Agents of which some are installed, and one is of the configuration.
pub(in crate::api) struct Cast {
    roster: Roster,
    host: Host,
    folder: PathBuf,
}

impl Cast {
    /// Installs `claude`, `pi`, `house`, and `gemini`, which hangs, in a folder.
    fn new(folder: &Path) -> Self {
        for (name, script) in [
            ("claude", "#!/bin/sh\necho 2.1.3\n"),
            ("pi", "#!/bin/sh\necho 'no number'\n"),
            ("house", "#!/bin/sh\necho 1.2.3\n"),
            ("gemini", "#!/bin/sh\nexec sleep 1000\n"),
        ] {
            let path = folder.join(name);
            fs::write(&path, script).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        }
        let mut roster = Roster::default();
        let command = vec![folder.join("house").display().to_string()];
        let own = AcpAgent { name: "house".to_owned(), command, ..AcpAgent::default() };
        roster.add(own.spec().unwrap());
        let environment = [("PATH".into(), "/usr/bin:/bin".into())].into();
        let mut config = HostConfig::from_environment(environment);
        config.data_dir = folder.join("data");
        config.run_root = folder.to_owned();
        Self { roster, host: Host::new(config), folder: folder.to_owned() }
    }

    /// Has a service go by these agents; they are there as long as the folder is.
    pub(in crate::api) fn enter(rig: &Rig, project_agent: &str) -> TempDir {
        let folder = tempfile::Builder::new().prefix("ocast").tempdir().unwrap();
        let mut policy = Policy::of_troupe(Box::new(Self::new(folder.path())));
        policy.api.clone_from(&rig.gateway.policy.borrow().api);
        policy.project_agent = project_agent.to_owned();
        rig.gateway.policy.send_replace(Arc::new(policy));
        folder
    }
}

impl Agents for Cast {
    fn resolve(&self, name: Option<&str>) -> Result<AgentRef, String> {
        let found = self.roster.resolve(name.unwrap_or("pi"));
        found.cloned().map_err(|error| error.to_string())
    }

    fn availability(&self) -> Vec<(String, bool)> {
        self.roster.iter().map(|spec| (spec.name.to_string(), true)).collect()
    }

    fn agent(&self, spec: &AgentRef) -> CliAgent {
        let program = self.folder.join(spec.name.as_str());
        CliAgent::new(spec.clone(), self.host.clone()).with_program(program)
    }

    fn prepare(&self, spec: &AgentRef, payload: &Payload) -> (CliAgent, TurnRequest) {
        let cwd = payload.wishes.cwd.as_ref().unwrap_or(&self.folder);
        (self.agent(spec), TurnRequest::new(String::new(), cwd))
    }
}

fn named<'a>(agents: &'a Value, name: &str) -> &'a Value {
    agents.as_array().unwrap().iter().find(|agent| agent["name"] == name).unwrap()
}

on_both! {
    async fn all_agents_are_listed_with_what_is_known_of_them(store: Store) {
        let rig = Rig::new(store).await;
        let folder = Cast::enter(&rig, "claude");
        let agents = rig.get("/agents").await.data();
        let names: Vec<_> =
            agents.as_array().unwrap().iter().map(|agent| agent["name"].as_str().unwrap()).collect();
        assert_eq!(names, ["claudecode", "codex", "gemini", "opencode", "pi", "house"]);
        let claude = named(&agents, "claudecode");
        assert_eq!((&claude["state"], &claude["is_default"]), (&json!("available"), &json!(true)));
        assert_eq!(claude["path"], folder.path().join("claude").display().to_string());
        assert_eq!(claude["version"], json!(null), "nothing was started to find out");
        let caps = ostler_core::agent::find("claude").unwrap();
        assert_eq!(claude["capabilities"], serde_json::to_value(&caps.caps).unwrap());
        let codex = named(&agents, "codex");
        assert_eq!((&codex["state"], &codex["is_default"]), (&json!("unavailable"), &json!(false)));
        assert_eq!(codex.get("path"), None);
        assert_eq!(named(&agents, "house")["state"], "available");

        for name in ["claudecode", "claude"] {
            assert_eq!(&rig.get(&format!("/agents/{name}")).await.data(), claude);
        }
        // Where programs lie is nothing for everybody.
        let key = rig.key(&[Scope::ProjectsRead]).await;
        let agents = rig.call_with(&key, "GET", "/agents", None).await.data();
        assert_eq!(named(&agents, "claudecode").get("path"), None);
        let one = rig.call_with(&key, "GET", "/agents/pi", None).await.data();
        assert_eq!((one.get("path"), &one["state"]), (None, &json!("available")));
        rig.stop().await;
    }

    async fn an_agent_says_how_it_is(store: Store) {
        let rig = Rig::new(store).await;
        let _folder = Cast::enter(&rig, "claude");
        let claude = rig.get("/agents/claudecode/health").await.data();
        assert_eq!((&claude["status"], &claude["version"]), (&json!("healthy"), &json!("2.1.3")));
        assert!(claude["latency_ms"].is_u64() && claude["message"].is_null(), "{claude}");
        // From now on it is known.
        assert_eq!(rig.get("/agents/claude").await.data()["version"], "2.1.3");
        let pi = rig.get("/agents/pi/health").await.data();
        assert_eq!((&pi["status"], &pi["version"]), (&json!("healthy"), &json!(null)));
        assert!(pi["message"].as_str().unwrap().contains("could not be read"), "{pi}");
        let codex = rig.get("/agents/codex/health").await.data();
        assert_eq!(codex["status"], "unhealthy");
        assert!(codex["message"].as_str().unwrap().contains("does not exist"), "{codex}");
        let key = rig.key(&[Scope::ProjectsRead]).await;
        for name in ["codex", "pi"] {
            let path = format!("/agents/{name}/health");
            let told = rig.call_with(&key, "GET", &path, None).await.data();
            let message = told["message"].as_str().unwrap();
            assert!(message.contains(name) && !message.contains('/'), "{message}");
        }
        rig.stop().await;
    }

    async fn what_is_no_agent_is_not_found(store: Store) {
        let rig = Rig::new(store).await;
        let _folder = Cast::enter(&rig, "claude");
        let long = "x".repeat(5000);
        for name in ["duck", "Claude", "%00", "..%2f", "%ff", "%F0%9F%90%B4", &long] {
            for path in [format!("/agents/{name}"), format!("/agents/{name}/health")] {
                let answer = rig.get(&path).await;
                assert_eq!((answer.status, answer.code()), (404, "NOT_FOUND"), "{path}");
            }
        }
        rig.stop().await;
    }

    async fn the_default_is_configured_until_somebody_chooses_another(store: Store) {
        let rig = Rig::new(store.clone()).await;
        let _folder = Cast::enter(&rig, "claude");
        let default = |answer: Value| answer["agent_provider"].as_str().unwrap().to_owned();
        assert_eq!(default(rig.get("/agents/default").await.data()), "claudecode");
        for wrong in [
            json!({}),
            json!({ "agent_provider": "duck" }),
            json!({ "agent_provider": "codex" }),
            json!({ "agent_provider": 1 }),
            json!({ "agent_provider": "pi", "more": 1 }),
        ] {
            let answer = rig.call("PUT", "/agents/default", Some(wrong.clone())).await;
            assert_eq!((answer.status, answer.code()), (400, "BAD_REQUEST"), "{wrong}");
        }
        assert_eq!(default(rig.get("/agents/default").await.data()), "claudecode");
        for (chosen, expected) in
            [(json!("pi"), "pi"), (json!("house"), "house"), (json!(null), "claudecode")]
        {
            let body = json!({ "agent_provider": chosen });
            let put = rig.call("PUT", "/agents/default", Some(body)).await.data();
            assert_eq!(default(put), expected);
            assert_eq!(default(rig.get("/agents/default").await.data()), expected);
            let agents = rig.get("/agents").await.data();
            for agent in agents.as_array().unwrap() {
                assert_eq!(agent["is_default"], agent["name"] == expected);
            }
        }
        let subject = PROJECT_AGENT.to_owned();
        let audit = store.read(subject, |conn, it| Box::pin(audit::about(conn, it))).await.unwrap();
        let agents: Vec<_> = audit
            .iter()
            .map(|entry| serde_json::from_str::<Value>(&entry.detail).unwrap()["agent"].clone())
            .collect();
        assert_eq!(agents, [json!("pi"), json!("house"), json!(null)]);
        assert!(audit.iter().all(|entry| entry.actor.starts_with("key_")), "{audit:?}");

        // Only those who may do everything choose for everybody.
        let key = rig.key(&[Scope::ProjectsRead, Scope::ProjectsExecute]).await;
        let put = rig.call_with(&key, "PUT", "/agents/default", None).await;
        assert_eq!((put.status, put.code()), (403, "FORBIDDEN"));
        let key = rig.key(&[Scope::KeysRead]).await;
        for path in ["/agents", "/agents/pi", "/agents/pi/health", "/agents/default"] {
            assert_eq!(rig.call_with(&key, "GET", path, None).await.status, 403, "{path}");
        }
        rig.stop().await;
    }

    async fn a_choice_that_is_gone_falls_back_to_the_configured_one(store: Store) {
        let rig = Rig::new(store.clone()).await;
        let _folder = Cast::enter(&rig, "claude");
        let gone = "gone".to_owned();
        store.must(gone, |conn, gone| {
            Box::pin(choices::keep(conn, PROJECT_AGENT, gone, Millis(1)))
        }).await;
        assert_eq!(rig.get("/agents/default").await.data()["agent_provider"], "claudecode");
        // And if that is gone too, to the gateway's.
        let _folder = Cast::enter(&rig, "gone");
        assert_eq!(rig.get("/agents/default").await.data()["agent_provider"], "pi");
        rig.stop().await;
    }
}

#[tokio::test]
async fn one_that_hangs_is_not_waited_for() {
    let folder = tempfile::tempdir().unwrap();
    let cast = Cast::new(folder.path());
    let hanging = cast.agent(&cast.resolve(Some("gemini")).unwrap());
    // The time does not matter: it never answers.
    let health = ask(&hanging, Duration::from_millis(50)).await;
    assert_eq!(health.message.as_deref(), Some("no answer within 50ms"), "{health:?}");
    assert_eq!((health.status, health.version), (Wellness::Unhealthy, None));
}

//! `validate`: whether an agent could run, and which version it is.
#![expect(clippy::unwrap_used, reason = "tests fail by panicking")]

use std::{fs, os::unix::fs::PermissionsExt, path::Path};

use ostler_core::{
    CliAgent, Host, HostConfig,
    agent::{AGENTS, AgentSpec},
    registry::Agent as _,
};

fn agent(spec: &'static AgentSpec, dir: &Path) -> CliAgent {
    let environment = [("PATH", dir.join("bin")), ("HOME", dir.into()), ("TMPDIR", dir.into())];
    let environment = environment.into_iter().map(|(k, v)| (k.into(), v.into())).collect();
    CliAgent::new(spec, Host::new(HostConfig::from_environment(environment)))
}

fn install(spec: &AgentSpec, dir: &Path, script: &str) {
    fs::create_dir_all(dir.join("bin")).unwrap();
    let path = dir.join("bin").join(&*spec.program);
    fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
}

#[tokio::test]
async fn an_agent_in_path_is_found_with_its_version_and_asked_only_once() {
    for spec in AGENTS {
        let dir = tempfile::tempdir().unwrap();
        let asked = dir.path().join("asked");
        let script = format!("echo x >> '{}'; touch \"$HOME/mess\"; echo 7.8.9", asked.display());
        install(spec, dir.path(), &script);
        let agent = agent(spec, dir.path());
        for _ in 0..2 {
            let health = agent.validate().await.unwrap();
            assert_eq!(health.path, dir.path().join("bin").join(&*spec.program));
            assert_eq!((health.version.as_deref(), health.warning), (Some("7.8.9"), None));
        }
        assert_eq!(fs::read_to_string(asked).unwrap(), "x\n");
        assert!(!dir.path().join("mess").exists(), "the user's home is left alone");
    }
}

#[tokio::test]
async fn an_unreadable_version_is_a_warning_and_the_agent_is_there_all_the_same() {
    for spec in AGENTS {
        let dir = tempfile::tempdir().unwrap();
        install(spec, dir.path(), "echo nonsense; exit 3");
        let health = agent(spec, dir.path()).validate().await.unwrap();
        assert_eq!(health.version, None);
        assert!(health.warning.unwrap().contains("could not be read"));
    }
}

#[tokio::test]
async fn an_agent_that_is_not_installed_is_named_with_what_to_do() {
    for spec in AGENTS {
        let dir = tempfile::tempdir().unwrap();
        let error = agent(spec, dir.path()).validate().await.unwrap_err().to_string();
        assert!(error.starts_with(&*spec.name) && error.contains("npm install"), "{error}");
    }
}

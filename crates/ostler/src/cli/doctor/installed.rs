//! The doctor's look at each agent: its program, its version, the Node it runs
//! on and whether it has a login, as far as that can be seen from outside.

use std::{
    ffi::OsStr,
    fs::File,
    io::Read,
    path::{Path, PathBuf},
};

use ostler_core::{
    Host,
    agent::AgentSpec,
    binary::{self, BinaryError},
    environment::Variables,
    failure::chain,
    version::{self, Health},
};

use super::{
    facts::{self, Facts},
    finding::{Area, Finding, Level},
};
use crate::cli::agents::{Look, Standing, numbers};

/// Says all that can be said of an agent without running a turn.
pub(crate) async fn check(look: &Look, host: &Host, is_chosen: bool) -> Vec<Finding> {
    let spec = look.spec();
    let health = match &look.found {
        Ok(health) => health,
        Err(error) => return vec![not_found(spec, error, is_chosen)],
    };
    let mut findings = vec![
        Finding::ok(Area::Binary, format!("{} can be run", health.path.display())),
        version_of(spec, health),
    ];
    if let Some(facts) = facts::of(&spec.name) {
        findings.extend(node(spec, facts, &health.path, host).await);
        findings.push(login(spec, facts, host.environment()));
    }
    findings.into_iter().map(|finding| finding.about(&spec.name)).collect()
}

fn not_found(spec: &AgentSpec, error: &BinaryError, is_chosen: bool) -> Finding {
    // An agent of the operator's own is expected to be there.
    let is_expected = is_chosen || spec.custom.is_some();
    let (level, fix) = match error {
        BinaryError::NotInPath { .. } if is_expected => (Level::Error, spec.install_hint),
        BinaryError::NotInPath { .. } => (Level::Info, spec.install_hint),
        BinaryError::Missing { .. } => (Level::Error, "name a program that exists"),
        BinaryError::NotRunnable { .. } => (Level::Error, "make it executable or name another"),
    };
    let message = match error {
        BinaryError::NotInPath { program, .. } => format!("`{program}` is not installed"),
        BinaryError::Missing { path, .. } => format!("{} does not exist", path.display()),
        BinaryError::NotRunnable { path, why, .. } => format!("{} {why}", path.display()),
    };
    Finding::new(level, Area::Binary, message).about(&spec.name).fix(fix)
}

fn version_of(spec: &AgentSpec, health: &Health) -> Finding {
    let tested = spec.tested_versions.join(", ");
    let installed = health.version.as_deref();
    let version = installed.unwrap_or_default();
    let say = |level, text: String| Finding::new(level, Area::Version, text);
    match Standing::of(installed, spec.tested_versions) {
        Standing::Tested => say(Level::Ok, format!("{version} is tested")),
        Standing::Newer => {
            say(Level::Warning, format!("{version} is newer than what was tested ({tested})"))
                .fix("`ostler doctor --live` shows whether it still works; else pin a tested one")
        }
        Standing::Older => {
            say(Level::Warning, format!("{version} is older than what was tested ({tested})"))
                .fix(format!("install a tested one: {}", spec.install_hint))
        }
        Standing::Between => {
            say(Level::Info, format!("{version} was not tested, but older and newer ones were"))
                .fix("`ostler doctor --live` shows whether it works")
        }
        Standing::Untested => say(Level::Info, format!("{version}, as its `version` command says")),
        Standing::Unknown if spec.custom.as_ref().is_some_and(|own| own.version.is_none()) => {
            say(Level::Info, "its version is not known, for it has no `version` command".to_owned())
        }
        Standing::Unknown => {
            let why = health.warning.clone();
            say(Level::Warning, why.unwrap_or_else(|| format!("{version} cannot be judged")))
                .fix(format!("run `{}` to see why", version_command(spec, health)))
        }
    }
}

fn version_command(spec: &AgentSpec, health: &Health) -> String {
    match spec.custom.as_ref().and_then(|own| own.version.as_ref()) {
        Some(words) => words.join(" "),
        None => format!("{} --version", health.path.display()),
    }
}

/// Says whether a script of Node's finds a Node that it can run on.
async fn node(spec: &AgentSpec, facts: &Facts, program: &Path, host: &Host) -> Option<Finding> {
    let named = node_of(&first_bytes(program)?)?;
    let path_variable = host.environment().get(OsStr::new("PATH"));
    let node = if named.is_absolute() {
        Some(named)
    } else {
        binary::search(&named, path_variable.map(|path| path.as_os_str()))
    };
    let needs = facts.needs_node;
    let wanted = needs.map_or("Node".to_owned(), |(major, minor)| format!("Node {major}.{minor}"));
    let Some(node) = node else {
        let message = format!("it runs on Node, and there is no `node` in PATH for {}", spec.title);
        let finding = Finding::new(Level::Error, Area::Node, message);
        return Some(finding.fix(format!("install {wanted} or newer")));
    };
    Some(match version::read(host, node).await {
        Ok(health) => judge_node(needs, &wanted, &health),
        Err(error) => Finding::new(Level::Error, Area::Node, chain(&error))
            .fix(format!("install {wanted} or newer")),
    })
}

fn judge_node(needs: Option<(u64, u64)>, wanted: &str, health: &Health) -> Finding {
    let Some(version) = &health.version else {
        let text = health.warning.clone().unwrap_or_default();
        return Finding::new(Level::Warning, Area::Node, text)
            .fix(format!("make sure that it is {wanted} or newer"));
    };
    let at = health.path.display();
    match needs {
        Some((major, minor)) if numbers(version) < vec![major, minor] => {
            let message = format!("Node {version} ({at}) is too old for it");
            let fix = format!("put {wanted} or newer first in PATH");
            Finding::new(Level::Error, Area::Node, message).fix(fix)
        }
        Some(_) => {
            Finding::ok(Area::Node, format!("Node {version} ({at}) is new enough: {wanted}"))
        }
        None => Finding::ok(Area::Node, format!("it runs on Node {version} ({at})")),
    }
}

fn first_bytes(program: &Path) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    File::open(program).ok()?.take(256).read_to_end(&mut bytes).ok()?;
    Some(bytes)
}

/// Returns the Node that a script's first line names: a path, or a bare name.
fn node_of(start: &[u8]) -> Option<PathBuf> {
    let line = start.strip_prefix(b"#!")?.split(|byte| *byte == b'\n').next()?;
    let line = std::str::from_utf8(line).ok()?;
    let mut words = line.split_whitespace();
    let interpreter = Path::new(words.next()?);
    let node = if interpreter.file_name()? == "env" {
        Path::new(words.find(|word| !word.starts_with('-') && !word.contains('='))?)
    } else {
        interpreter
    };
    (node.file_name()? == "node").then(|| node.to_owned())
}

/// Says whether there seems to be a login. No file is opened, no value shown.
fn login(spec: &AgentSpec, facts: &Facts, environment: &Variables) -> Finding {
    let set = |name: &str| environment.get(OsStr::new(name)).filter(|value| !value.is_empty());
    // A variable that is not passed on is no login of this agent.
    let is_variable = |name: &&&str| spec.env.contains(name) && set(name).is_some();
    if let Some(name) = facts.variables.iter().find(is_variable) {
        return Finding::ok(Area::Login, format!("{name} is set"));
    }
    let place = |file: &facts::File| {
        let folder = set(file.variable).map(PathBuf::from);
        let folder = folder.or_else(|| Some(Path::new(set("HOME")?).join(file.folder)))?;
        Some(folder.join(file.path))
    };
    if let Some(path) = facts.files.iter().filter_map(place).find(|path| path.exists()) {
        return Finding::ok(Area::Login, format!("{} exists", path.display()));
    }
    let message = "no login was seen (a keychain cannot be looked into)";
    Finding::new(Level::Warning, Area::Login, message).fix(facts.log_in)
}

#[cfg(test)]
mod tests {
    use ostler_core::agent::AGENTS;

    use super::*;

    #[test]
    fn a_script_of_nodes_is_known_by_its_first_line() {
        for (start, expected) in [
            ("#!/usr/bin/env node\nx", Some("node")),
            ("#!/usr/bin/env -S node --no-warnings\n", Some("node")),
            ("#!/opt/node/bin/node --flag\n", Some("/opt/node/bin/node")),
            ("#!/bin/sh\nnode", None),
            ("#!/usr/bin/env nodejs-not\n", None),
            ("\u{7f}ELF", None),
            ("#!", None),
            ("", None),
        ] {
            let found = node_of(start.as_bytes());
            assert_eq!(found.as_deref(), expected.map(Path::new), "{start:?}");
        }
    }

    #[test]
    fn an_old_node_is_an_error_that_names_both_versions() {
        let health = |version: &str| Health {
            path: "/usr/bin/node".into(),
            version: Some(version.to_owned()),
            warning: None,
        };
        let judge = |version: &str| judge_node(Some((22, 19)), "Node 22.19", &health(version));
        let old = judge("20.20.2");
        assert_eq!(old.level, Level::Error);
        assert!(old.message.contains("20.20.2"), "{}", old.message);
        assert!(old.fix.unwrap().contains("22.19"));
        assert_eq!(judge("22.18.9").level, Level::Error);
        assert_eq!(judge("22.19.0").level, Level::Ok);
        assert_eq!(judge("24.0.1").level, Level::Ok);
    }

    #[test]
    fn a_login_is_seen_by_name_and_never_shown() {
        let home = tempfile::tempdir().unwrap();
        for spec in AGENTS {
            let facts = facts::of(&spec.name).unwrap();
            let mut environment = Variables::new();
            environment.insert("HOME".into(), home.path().into());
            assert_eq!(login(spec, facts, &environment).level, Level::Warning, "{}", spec.name);
            let name = facts.variables.iter().find(|name| spec.env.contains(name)).unwrap();
            environment.insert(name.into(), "secret-value".into());
            let found = login(spec, facts, &environment);
            assert_eq!((found.level, found.message), (Level::Ok, format!("{name} is set")));
            environment.insert(name.into(), "".into());
            let file = facts.files.first().unwrap();
            let path = home.path().join(file.folder).join(file.path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(&path, "secret-value").unwrap();
            let found = login(spec, facts, &environment);
            assert_eq!(found.message, format!("{} exists", path.display()));
        }
    }
}

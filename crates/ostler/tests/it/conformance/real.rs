//! A real CLI and the simulated model, for a gateway that people reach by a chat.

use std::path::PathBuf;

use ostler_sim::model;
use serde_json::{Value, json};

use super::{Facts, warm::leaders_in};
use crate::support::{Model, Place};

/// An agent that a gateway can be told to run.
pub(super) struct RealAgent {
    facts: &'static Facts,
    /// The folder of installed CLIs.
    clis: PathBuf,
    model: Model,
}

impl RealAgent {
    /// Finds one; `None`, with a word about it, where the CLIs are not installed.
    pub(super) fn find(facts: &'static Facts) -> Option<Self> {
        let Some(clis) = std::env::var_os("OSTLER_TEST_CLIS") else {
            eprintln!("skipped: OSTLER_TEST_CLIS does not say where the real CLIs are");
            return None;
        };
        Some(Self { facts, clis: clis.into(), model: Model::start() })
    }

    /// Lets it be the agent of a gateway with these settings.
    pub(super) fn configure(&self, place: &Place, permissions: &str, settings: &mut Value) {
        let own = model::settings(self.facts.agent, &self.model.url()).unwrap();
        settings["agent"] = json!({
            "default": self.facts.agent,
            "path": self.program(place, &own),
            "permissions": permissions,
        });
        if let Some(name) = own.model {
            settings["agent"]["model"] = json!(name);
        }
    }

    /// Writes a program that is the CLI, and knows where the model is.
    fn program(&self, place: &Place, settings: &model::Settings) -> PathBuf {
        settings.write_files(&place.path("home")).unwrap();
        let quoted = |text: &str| format!("'{}'", text.replace('\'', r"'\''"));
        let path = format!("{}:/usr/bin:/bin", self.clis.join("node_modules/.bin").display());
        let mut script = format!("#!/bin/sh\nexport IS_SANDBOX=1 PATH={}\n", quoted(&path));
        for (name, value) in &settings.environment {
            script.push_str(&format!("export {name}={}\n", quoted(value)));
        }
        let arguments: Vec<String> = settings.arguments.iter().map(|it| quoted(it)).collect();
        let program = self.clis.join(self.facts.program);
        let program = quoted(program.to_str().unwrap());
        script.push_str(&format!("exec {program} {} \"$@\"\n", arguments.join(" ")));
        place.program(self.facts.agent, &script)
    }
}

/// Asserts that a gateway started no process since. One that only says its version may
/// have ended.
pub(super) fn assert_kept(place: &Place, before: &[u32]) {
    let now = leaders_in(place);
    let is_kept = !now.is_empty() && now.iter().all(|pid| before.contains(pid));
    assert!(is_kept, "the process was replaced: {before:?}, {now:?}");
}

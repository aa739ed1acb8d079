//! The environment of git in one repository: its settings are looked at first, so
//! that none of them names a program.

use std::time::Duration;

use ostler_core::{
    agent::Stdin,
    environment::Variables,
    failure::{Failure, FailureKind},
};

use super::Program;
use crate::{
    command::{Command, End, Excess},
    program::git,
};

/// How long it may take to list settings, and how much that may be.
const LIMIT: Duration = Duration::from_secs(30);
const LONGEST: usize = 256 * 1024;

pub(super) async fn environment(base: &Variables, program: &Program) -> Result<Variables, Failure> {
    let not_run =
        |why: String| Failure::new(FailureKind::SpawnFailed, format!("git is not run here: {why}"));
    let mut env = git::variables(base, &program.cwd).map_err(not_run)?;
    let settings = settings(&env, program).await.map_err(not_run)?;
    settings.add_to(&mut env);
    Ok(env)
}

async fn settings(env: &Variables, program: &Program) -> Result<git::Settings, String> {
    let Some(directory) = program.cwd.to_str() else {
        return Err("the name of the folder is not UTF-8".to_owned());
    };
    let words = git::listing(directory);
    let (stdin, keep, excess) = (Stdin::Null, LONGEST, Excess::Ends);
    let listed = Command { words: &words, env, stdin, keep, excess, limit: LIMIT }.run().await;
    let listed = listed.map_err(|error| error.to_string())?;
    if listed.is_more || listed.end == End::Cut {
        return Err("the repository has too many settings".to_owned());
    }
    if listed.end != End::Code(0) {
        let said = listed.complaint.unwrap_or_else(|| "git does not say why".to_owned());
        return Err(format!("the settings of the repository cannot be read: {said}"));
    }
    let settings = git::Settings::read(&listed.stdout)
        .map_err(|name| format!("the repository sets {name}, which leads elsewhere"))?;
    if !settings.is_repository && git::needs_repository(&program.words) {
        return Err("there is no git repository".to_owned());
    }
    Ok(settings)
}

//! What can only be checked when all is read: names of agents, what belongs
//! together, and paths that are seen from the file they are in.

use std::{
    ffi::OsStr,
    path::{Path, PathBuf},
};

use ostler_core::agent::{
    Roster,
    http::{Login, ServerAddress},
};

use super::{
    inbound::Reply,
    load::Loaded,
    problem::{Problem, Source},
    secret::settle_program,
};

/// Finishes a configuration, of which something may be wrong already; returns
/// what else is wrong with it.
pub(super) fn finish(loaded: &mut Loaded, sections: &[String]) -> Vec<Problem> {
    settle(loaded);
    let mut problems = roster(loaded);
    for key in ["agent.default", "agent.project_default"] {
        problems.extend(agent(loaded, key, sections));
    }
    problems.extend(server(loaded));
    problems.extend(reply(loaded));
    let transcribe = loaded.config.media.transcribe.wrong();
    problems.extend(transcribe.map(|why| problem(loaded, "media.transcribe.command", why)));
    if *loaded.source("agent.default") == Source::Variable("AGENT_BACKEND")
        && loaded.config.agent.permissions.is_none()
    {
        loaded.notes.push(
            "AGENT_BACKEND is set and PERMISSION_MODE is not: agents ask before they act, or only \
             look; PERMISSION_MODE=bypassPermissions lets them do everything, as it used to be"
                .to_owned(),
        );
    }
    problems
}

fn problem(loaded: &Loaded, key: &str, why: impl ToString) -> Problem {
    Problem { source: loaded.source(key).clone(), key: key.to_owned(), why: why.to_string() }
}

/// Takes relative paths as seen from the file that has them, and `~/` as the home.
fn settle(loaded: &mut Loaded) {
    let home = loaded.environment.get(OsStr::new("HOME")).map(PathBuf::from);
    let folder_of = |key: &str| {
        let folder = loaded.sources.get(key)?.folder()?;
        std::path::absolute(if folder.as_os_str().is_empty() { Path::new(".") } else { folder })
            .ok()
    };
    let config = &mut loaded.config;
    let roots = config.api.roots.iter_mut().map(|root| ("api.roots", Some(root)));
    let sources = config.media.send_from.iter_mut().map(|folder| ("media.send_from", Some(folder)));
    for (key, path) in [
        ("gateway.data_dir", config.gateway.data_dir.as_mut()),
        ("prompt.dir", config.prompt.dir.as_mut()),
        ("inbound.reply.cwd", config.inbound.reply.as_mut().and_then(|reply| reply.cwd.as_mut())),
        ("outbound.dir", config.outbound.dir.as_mut()),
        ("archive.dir", config.archive.dir.as_mut()),
        // A bare name is looked up in PATH.
        ("agent.path", config.agent.path.as_mut().filter(|path| path.components().count() > 1)),
    ]
    .into_iter()
    .chain(roots)
    .chain(sources)
    {
        let Some(path) = path else { continue };
        match (path.strip_prefix("~"), &home, folder_of(key)) {
            (Ok(rest), Some(home), _) => *path = home.join(rest),
            (_, _, Some(folder)) => *path = folder.join(&*path),
            (_, _, None) => {}
        }
    }
    for (key, secret) in [
        ("gateway.database_url", &mut config.gateway.database_url),
        ("opencode.password", &mut config.opencode.password),
        ("discord.token", &mut config.discord.token),
        ("twilio.auth_token", &mut config.twilio.auth_token),
        ("twilio.api_secret", &mut config.twilio.api_secret),
    ] {
        if let (Some(secret), Some(folder)) = (secret, folder_of(key)) {
            secret.settle_in(&folder, home.as_deref());
        }
    }
    let command = config.inbound.reply.as_mut().and_then(|reply| reply.command.as_mut());
    for (key, command) in [
        ("inbound.reply.command", command),
        ("media.transcribe.command", config.media.transcribe.command.as_mut()),
    ] {
        let program = command.and_then(|command| command.first_mut());
        if let (Some(program), Some(folder)) = (program, folder_of(key)) {
            settle_program(program, &folder);
        }
    }
    let file = config.inbound.reply.as_mut().and_then(|reply| reply.media_url.as_mut());
    if let (Some(file), Some(folder)) = (file, folder_of("inbound.reply.mediaUrl"))
        && !file.is_empty()
        && !file.contains("://")
    {
        let path = match (file.strip_prefix("~/"), &home) {
            (Some(rest), Some(home)) => home.join(rest),
            (_, _) => folder.join(&*file),
        };
        *file = path.to_string_lossy().into_owned();
    }
    if let Some(found) = &loaded.file {
        let path = std::path::absolute(&found.path).unwrap_or_else(|_| found.path.clone());
        let folder = path.parent().unwrap_or(Path::new("/"));
        config.agents.settle_in(folder);
        config.hooks.settle_in(folder);
        if found.is_local {
            config.agents.run_only_when_named();
        }
    }
}

/// Adds the agents of the operator's own to those there are.
fn roster(loaded: &mut Loaded) -> Vec<Problem> {
    let mut roster = Roster::default();
    let mut problems = Vec::new();
    for agent in loaded.config.agents.iter() {
        match agent.clone().spec() {
            Ok(spec) => roster.add(spec),
            Err(error) => {
                problems.push(problem(loaded, &format!("agents.{}.command", agent.name), error));
            }
        }
    }
    loaded.roster = roster;
    problems
}

/// Replaces the name of an agent by the one that it goes by.
fn agent(loaded: &mut Loaded, key: &str, sections: &[String]) -> Option<Problem> {
    let config = &loaded.config.agent;
    let name = if key == "agent.default" { &config.default } else { &config.project_default };
    // One that is there, but not as it should be, was told before.
    let is_there = sections.contains(&format!("agents.{name}"));
    let name = match loaded.roster.resolve(name) {
        Ok(spec) => String::from(&spec.name),
        Err(error) => return (!is_there).then(|| problem(loaded, key, error)),
    };
    let config = &mut loaded.config.agent;
    *(if key == "agent.default" { &mut config.default } else { &mut config.project_default }) =
        name;
    None
}

/// Checks the server that is the agent `opencode`.
fn server(loaded: &mut Loaded) -> Option<Problem> {
    let opencode = &loaded.config.opencode;
    if !opencode.enabled {
        return None;
    }
    // What the password is does not matter here, only that there is one.
    let user = opencode.username.clone();
    let login = opencode.password.as_ref().map(|_| Login { user, password: "x".to_owned() });
    let is_user = login.as_ref().is_some_and(|login| login.user.contains(':'));
    match ServerAddress::new(&opencode.url, login) {
        Err(error) => {
            let key = if is_user { "opencode.username" } else { "opencode.url" };
            Some(problem(loaded, key, error))
        }
        Ok(server) => {
            if server.is_exposed() {
                let place = loaded.source("opencode.url");
                let url = server.url();
                let warning = format!(
                    "{place}: whoever is on the way to {url} can read the password; use https"
                );
                loaded.warnings.push(warning);
            }
            None
        }
    }
}

fn reply(loaded: &Loaded) -> Vec<Problem> {
    let reply = loaded.config.inbound.reply.iter();
    reply.flat_map(Reply::wrong).map(|(key, why)| problem(loaded, key, why)).collect()
}

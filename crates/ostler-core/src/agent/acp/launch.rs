//! Makes the command line: the operator's own, word by word.

use std::ffi::OsString;

use crate::{
    agent::{
        AgentSpec, CommandLine, Launch, LaunchError, Stdin, WarmLaunch,
        command_line::{push, warn_if, warn_if_asking},
    },
    request::Options,
};

/// What leads to the user's own files, and is not set for an agent with
/// another home.
const HOME_VARIABLES: &[&str] =
    &["HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_CACHE_HOME", "XDG_STATE_HOME"];

/// Makes the command line of a process for one turn.
pub(super) fn one_shot(launch: &Launch<'_>) -> Result<CommandLine, LaunchError> {
    if launch.options.template.is_some() {
        let why = "an agent that speaks ACP has its own command line only".to_owned();
        return Err(LaunchError::BadTemplate { why });
    }
    let mut line = line(launch.spec, launch.options);
    warn_if_asking(&mut line.warnings, launch.options);
    Ok(line)
}

/// Makes the command line of a process that is kept.
pub(super) fn kept(launch: &WarmLaunch<'_>) -> Result<CommandLine, LaunchError> {
    Ok(line(launch.spec, launch.options))
}

fn line(spec: &AgentSpec, options: &Options) -> CommandLine {
    let mut line = CommandLine { stdin: Stdin::Open, ..CommandLine::default() };
    if let Some(custom) = &spec.custom {
        push(&mut line.args, &custom.args);
        let is_kept = |name: &str| options.home.is_none() || !HOME_VARIABLES.contains(&name);
        let variables = custom.env.iter().filter(|(name, _)| is_kept(name));
        line.env
            .extend(variables.map(|(name, value)| (OsString::from(name), OsString::from(value))));
    }
    push(&mut line.args, &options.extra_args);
    let name = &spec.name;
    warn_if(
        &mut line.warnings,
        options.allowed_tools.is_some(),
        &format!("{name} cannot be told which tools to use; the list of tools is ignored"),
    );
    warn_if(
        &mut line.warnings,
        options.max_turns.is_some(),
        &format!("{name} cannot be told how often to ask its model; the limit is ignored"),
    );
    line
}

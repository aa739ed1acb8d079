//! Makes the command line of a `pi --mode rpc`. Pure: nothing is read or started here.
//!
//! The default form of one turn without its prompt, for the operator's own line
//! runs once. The model is part of it although the protocol could change it:
//! there it has to be exact, known to the CLI and have a key, while here a part
//! of its name is enough, a new one is passed on, and a missing key is told as
//! such. Nothing depends on the version, which may become known between two
//! turns that are to share a process.

use crate::{
    agent::{
        CommandLine, LaunchError, Stdin, WarmLaunch,
        command_line::{Form, push, warn_if},
        pi::launch::{add_options, environment, model},
    },
    request::Permissions,
};

/// Makes the command line.
pub(super) fn launch(launch: &WarmLaunch<'_>) -> Result<CommandLine, LaunchError> {
    let options = launch.options;
    let mut line = CommandLine { stdin: Stdin::Open, ..CommandLine::default() };
    push(&mut line.args, ["--mode", "rpc"]);
    // Before the other options, of which the last one of a kind counts.
    push(&mut line.args, &options.extra_args);
    push(&mut line.args, model(options));
    if let Some(memo) = launch.open.memo() {
        push(&mut line.args, ["--session", &memo.id]);
    }
    add_options(&launch.as_launch(), Form::Default, &mut line);
    line.env = environment(options);
    warn_if(
        &mut line.warnings,
        options.permissions == Permissions::Ask,
        "pi asks nobody before it runs a tool; running read-only",
    );
    Ok(line)
}

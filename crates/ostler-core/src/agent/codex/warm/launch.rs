//! Makes the command line of one `codex app-server`.
//!
//! Only what holds for the whole process: the operator's settings, and those
//! that keep the user safe. Directory, model, permissions and instructions are
//! given with each thread.

use crate::agent::{
    CommandLine, LaunchError, Stdin, WarmLaunch,
    codex::launch::{UNREADABLE_DIRECTORY, home, lacks, push_quiet, push_retry_bounds},
    command_line::{push, push_pair, warn_if},
};

/// The variable with a key that only `codex exec` reads by itself.
const KEY_VARIABLE: &str = "CODEX_API_KEY";

/// Keeps a key that the process is told in its memory. Otherwise it would be
/// written into the user's home, over the login that is there.
const KEY_IN_MEMORY: &str = "cli_auth_credentials_store=\"ephemeral\"";

/// A thread that nobody listens to is unloaded at once. Until then no other
/// process can go on with the session, and the CLI would wait half an hour.
const UNLOAD_AT_ONCE: &str = "thread_unload_delay_secs=0";

/// Makes the command line.
pub(super) fn launch(launch: &WarmLaunch<'_>) -> Result<CommandLine, LaunchError> {
    let options = launch.options;
    let mut args = vec!["app-server".into()];
    push_quiet(&mut args, options);
    push_pair(&mut args, "-c", UNLOAD_AT_ONCE);
    if api_key(launch).is_some() {
        push_pair(&mut args, "-c", KEY_IN_MEMORY);
    }
    push(&mut args, &options.extra_args);
    push_retry_bounds(&mut args, &options.extra_args);
    let mut warnings = lacks(options);
    warn_if(&mut warnings, options.cwd.to_str().is_none(), UNREADABLE_DIRECTORY);
    let env = home(options);
    Ok(CommandLine { args, env, stdin: Stdin::Open, warnings, ..CommandLine::default() })
}

/// Returns the key that the process has to be told, because it does not look
/// for it where `codex exec` does.
pub(super) fn api_key<'a>(launch: &WarmLaunch<'a>) -> Option<&'a str> {
    launch.variable(KEY_VARIABLE)
}

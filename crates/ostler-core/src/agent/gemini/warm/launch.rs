//! Makes the command line of one `gemini --acp`.
//!
//! Only what holds for the whole process. The model is chosen per session, and
//! what the agent may do is said by rules alone: an approval mode other than
//! the default one needs a trusted directory. And a directory must not be
//! trusted for that: for each new session the CLI would read the directory's
//! settings, and start the programs that they name.

use crate::{
    agent::{
        CommandLine, LaunchError, Stdin, WarmLaunch,
        command_line::{push, push_pair, push_variables, warn_if},
        gemini::{
            home,
            launch::{LESS_THINKING, thinks_less},
            policy::Policy,
        },
    },
    request::ProjectSettings,
};

/// Where requests go when nothing else is said. Without it, or a kind of login
/// in the settings, a key alone opens new sessions but no former ones.
const BASE_URL: (&str, &str) =
    ("GOOGLE_GEMINI_BASE_URL", "https://generativelanguage.googleapis.com");

/// Keeps every directory from being trusted, whatever the user's own list says.
const NO_TRUST: (&str, &str) = ("GEMINI_CLI_TRUST_WORKSPACE", "false");

/// Makes the command line.
pub(super) fn launch(launch: &WarmLaunch<'_>) -> Result<CommandLine, LaunchError> {
    let options = launch.options;
    let policy = Policy::of_kept(options);
    let mut line = CommandLine {
        args: vec!["--acp".into()],
        env: home::environment(options),
        home_files: home::files(options),
        stdin: Stdin::Open,
        warnings: policy.warnings,
        ..CommandLine::default()
    };
    push_pair(&mut line.args, "--approval-mode", "default");
    if let Some(rules) = policy.rules {
        let path = launch.run_dir.join("policy.toml");
        push_pair(&mut line.args, "--policy", &path);
        line.files.push((path, rules.into_bytes()));
    }
    push(&mut line.args, &options.extra_args);
    if options.project_settings == ProjectSettings::Ignored {
        push_variables(&mut line.env, &[NO_TRUST]);
    }
    let is_set = |name: &str| launch.variable(name).is_some();
    if is_set("GEMINI_API_KEY") && !is_set(BASE_URL.0) && !is_set("GOOGLE_GENAI_USE_VERTEXAI") {
        push_variables(&mut line.env, &[BASE_URL]);
    }
    warn_if(&mut line.warnings, thinks_less(options), LESS_THINKING);
    warn_if(
        &mut line.warnings,
        options.max_turns.is_some(),
        "gemini does not tell its model calls apart when it is kept running; \
         their number is not limited",
    );
    Ok(line)
}

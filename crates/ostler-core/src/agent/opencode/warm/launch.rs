//! Makes the command line of one `opencode serve`. Pure.
//!
//! Permissions are the process's: rules that are given with a session do not
//! hold for the sessions of its helpers, those in the settings do.

use serde_json::{Value, json};

use crate::{
    agent::{
        CommandLine, LaunchError, Stdin, WarmLaunch,
        command_line::{push, warn_if},
        http::Login,
        opencode::{
            launch::{carry, warn_of_thinking},
            settings::{self, AGENT, Carrier, Settings},
            variables,
        },
    },
    request::{Format, Options, PromptCommands},
};

/// The variables with which the server is told who may call it.
const PASSWORD: &str = "OPENCODE_SERVER_PASSWORD";
const USER: &str = "OPENCODE_SERVER_USERNAME";

/// Makes the command line.
pub(super) fn launch(launch: &WarmLaunch<'_>) -> Result<CommandLine, LaunchError> {
    let options = launch.options;
    let mut settings = process_settings(launch);
    let permission = match &settings.rules {
        Some(rules) => Value::Object(rules.clone()),
        // A question would wait for an answer for ever, like everything that the
        // CLI asks about by itself.
        None => json!({ "*": "allow", "question": "deny" }),
    };
    let mut line = CommandLine { stdin: Stdin::Open, ..CommandLine::default() };
    line.args = ["serve", "--hostname", "127.0.0.1", "--port", "0"].map(Into::into).to_vec();
    push(&mut line.args, &options.extra_args);
    line.env = variables::environment(options, Some(&permission));
    // Different for each process, and the same for all in keys.
    line.env.push((PASSWORD.into(), launch.new_id.into()));
    line.warnings = warnings(launch, &mut settings);
    let carrier = Carrier::of(options);
    carry(&launch.as_launch(), &settings, carrier, &mut line);
    Ok(line)
}

/// Returns as whom the server is called.
pub(super) fn login(launch: &WarmLaunch<'_>) -> Login {
    let user = launch.variable(USER).unwrap_or("opencode").to_owned();
    let password = launch.variable(PASSWORD).unwrap_or_default().to_owned();
    Login { user, password }
}

/// Returns the agent that has to run a turn, when it may not do everything.
pub(super) fn agent(options: &Options) -> Option<&'static str> {
    let is_free = options.permissions == crate::request::Permissions::Bypass
        && options.allowed_tools.is_none();
    (!is_free && Carrier::of(options) != Carrier::None).then_some(AGENT)
}

/// The settings without the system prompt, which goes with each prompt.
fn process_settings(launch: &WarmLaunch<'_>) -> Settings {
    let options = Options { system_prompt: None, ..launch.options.clone() };
    let launch = WarmLaunch { options: &options, ..*launch };
    settings::settings(&launch.as_launch())
}

fn warnings(launch: &WarmLaunch<'_>, settings: &mut Settings) -> Vec<String> {
    let options = launch.options;
    let mut warnings = std::mem::take(&mut settings.warnings);
    warn_of_any_server(&mut warnings, options);
    warn_if(
        &mut warnings,
        settings.rules.is_some() && Carrier::of(options) == Carrier::None,
        "OPENCODE_CONFIG and OPENCODE_CONFIG_CONTENT are both yours, so permissions of an agent \
         in your settings count more than those of this turn",
    );
    warnings
}

/// Warns of what no server can be told, whoever runs it.
pub(super) fn warn_of_any_server(warnings: &mut Vec<String>, options: &Options) {
    warn_of_thinking(warnings, options);
    warn_if(
        warnings,
        options.prompt_commands == PromptCommands::On,
        "opencode's server knows no slash commands and no @file; the prompt is sent as typed",
    );
    warn_if(
        warnings,
        options.format == Format::Text || options.template.is_some(),
        "format and template are for processes; opencode's server is spoken to in its own way",
    );
}

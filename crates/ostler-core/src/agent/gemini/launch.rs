//! Makes Gemini's command line. Pure: nothing is read, written or started here.
//!
//! Two forms. The usual one has the prompt on standard input, where nothing can
//! mistake it for an option, and asks for events as they happen. The literal
//! one (`format=json` with everything allowed) is the line that existing
//! deployments rely on, with the one flag without which the CLI does not run.

use std::{ffi::OsString, path::Path};

use super::{
    home,
    policy::Policy,
    prompt::{self, is_safe_argument},
};
use crate::{
    agent::{
        CommandLine, Launch, LaunchError, Stdin, Stdout,
        command_line::{push, push_pair, warn_if, warn_if_asking},
    },
    memo,
    request::{Format, Options, Permissions, ProjectSettings, Template, Thinking},
    template::{self, TemplateFacts},
};

/// What an operator's own command line is filled in with.
const TEMPLATE: TemplateFacts = TemplateFacts {
    program: "gemini",
    subcommand: None,
    spellings: &[
        &["--output-format", "-o"],
        &["--approval-mode", "--yolo", "-y"],
        &["--model", "-m"],
    ],
    setting: None,
    session_new: &[],
    session_resume: &["--resume", "{{SessionId}}"],
    body_on_stdin: &[],
    misreads: |prompt| !is_safe_argument(prompt),
    plain: prompt::as_plain_text,
};

/// What is said when a session has had another system prompt.
pub(super) const LATE_SYSTEM_PROMPT: &str =
    "gemini gets a system prompt only when a session begins; this one is ignored";

/// What is said when less thinking was asked for.
pub(super) const LESS_THINKING: &str =
    "gemini cannot be told to think less; the thinking level is ignored";

/// Returns whether less thinking was asked for.
pub(super) fn thinks_less(options: &Options) -> bool {
    matches!(options.thinking, Some(Thinking::Off | Thinking::Minimal))
}

/// Makes the command line of a one-shot turn.
pub(super) fn launch(launch: &Launch<'_>) -> Result<CommandLine, LaunchError> {
    let options = launch.options;
    let policy = Policy::of(options);
    let policy_path = launch.run_dir.join("policy.toml");
    let flags = flags(options, policy.rules.as_ref().map(|_| policy_path.as_path()));
    let mut line = match &options.template {
        Some(template) => from_template(launch, template, &flags)?,
        None => own(launch, &flags),
    };
    // It ends without waiting until a pipe has taken what it printed.
    line.stdout = Stdout::File;
    line.env = home::environment(options);
    line.home_files = home::files(options);
    line.warnings = policy.warnings;
    warn_if_asking(&mut line.warnings, options);
    warn_if(&mut line.warnings, thinks_less(options), LESS_THINKING);
    if let (Some(text), Some(memo)) = (&options.system_prompt, launch.open.memo()) {
        warn_if(
            &mut line.warnings,
            memo.system_sent && memo.system_hash.as_ref() != Some(&memo::hash(text)),
            LATE_SYSTEM_PROMPT,
        );
    }
    if let Some(rules) = policy.rules {
        line.files.push((policy_path, rules.into_bytes()));
    }
    Ok(line)
}

/// The flags of every form, a flag with its value each.
fn flags(options: &Options, policy: Option<&Path>) -> Vec<Vec<OsString>> {
    let mut flags: Vec<Vec<OsString>> = Vec::new();
    let asked = match &options.template {
        Some(template) => template.format,
        None => Some(options.format),
    };
    let mode = match options.permissions {
        Permissions::Bypass => "yolo",
        Permissions::Ask | Permissions::ReadOnly => "plan",
    };
    if let Some(format) = asked {
        let format = match format {
            Format::StreamJson => "stream-json",
            Format::Json => "json",
            Format::Text => "text",
        };
        flags.push(vec!["--output-format".into(), format.into()]);
    }
    flags.push(vec!["--approval-mode".into(), mode.into()]);
    if options.project_settings == ProjectSettings::Ignored {
        // Without trust the CLI does not run at all. Trust by this flag comes
        // after the settings were read, so those of the directory do not count.
        flags.push(vec!["--skip-trust".into()]);
    }
    if let Some(policy) = policy {
        flags.push(vec!["--policy".into(), policy.into()]);
    }
    if let Some(model) = &options.model {
        flags.push(vec!["--model".into(), model.into()]);
    }
    flags
}

fn own(launch: &Launch<'_>, flags: &[Vec<OsString>]) -> CommandLine {
    let options = launch.options;
    let mut line = CommandLine::default();
    let prompt = prompt::text(launch);
    if options.is_literal() && is_safe_argument(&prompt) {
        line.args.push(prompt.into());
    } else {
        line.stdin = Stdin::Bytes(prompt.into_bytes());
    }
    line.args.extend(flags.iter().flatten().cloned());
    push(&mut line.args, &options.extra_args);
    if let Some(memo) = launch.open.memo() {
        push_pair(&mut line.args, "--resume", &memo.id);
    }
    line
}

/// The operator's own line, with what it lacks.
fn from_template(
    launch: &Launch<'_>,
    template: &Template,
    flags: &[Vec<OsString>],
) -> Result<CommandLine, LaunchError> {
    let program = template.command.first().map(Path::new);
    let is_gemini = program.is_some_and(|path| path.file_name().is_some_and(|n| n == "gemini"));
    let prompt = if is_gemini { prompt::text(launch) } else { launch.prompt.to_owned() };
    let extra: Vec<OsString> = launch.options.extra_args.iter().map(OsString::from).collect();
    let flags: Vec<_> = flags.iter().cloned().chain(template::groups(&extra)).collect();
    template::fill(&TEMPLATE, template, launch.open, &prompt, prompt.as_bytes(), &flags)
}

//! Makes the command line of one `pi -p`. Pure: nothing is read or started here.
//!
//! Two forms. The literal one (`format=json` with everything allowed) has the
//! arguments that existing deployments rely on and adds only what the operator
//! asked for. The default form adds what keeps the prompt plain text and the
//! working directory's settings out. The prompt travels on standard input,
//! where nothing but its leading slash can mean anything to the CLI.

use std::{
    ffi::OsString,
    path::{Path, PathBuf},
};

use super::tool::Selection;
use crate::{
    agent::{
        CommandLine, Launch, LaunchError, Stdin,
        command_line::{Form, push, push_variables, warn_if, warn_if_asking},
    },
    request::{Format, Options, Permissions, ProjectSettings, PromptCommands, Template, Thinking},
    template::{self, MAX_ARGUMENT_BYTES, TemplateFacts},
};

/// The variables that every run gets; one that the operator names wins.
const ENV: &[(&str, &str)] = &[
    // No look for models, packages and search tools on the network at the start.
    ("PI_OFFLINE", "1"),
    ("PI_SKIP_VERSION_CHECK", "1"),
    ("PI_TELEMETRY", "0"),
];

/// Where the CLI keeps everything, seen from a home.
const AGENT_DIR: &str = ".pi/agent";
const AGENT_DIR_VARIABLE: &str = "PI_CODING_AGENT_DIR";

/// Without these, a prompt with a slash at its start runs a command of an
/// extension or is replaced by a template or a skill.
const PLAIN_PROMPT: [&str; 3] = ["--no-extensions", "--no-prompt-templates", "--no-skills"];

/// A command of an extension that is built in, which `--no-extensions` leaves
/// alone before 1.5. The CLI swallows the prompt and exits 0.
const BUILT_IN_COMMAND: &str = "/llama";

/// What an operator's own command line is filled in with.
const TEMPLATE: TemplateFacts = TemplateFacts {
    program: "pi",
    subcommand: None,
    spellings: &[
        &["-p", "--print"],
        &["--provider", "--model", "--models"],
        &["--tools", "-t", "--no-tools", "-nt"],
        &["--no-approve", "-na", "--approve", "-a"],
        &["--no-context-files", "-nc"],
        &["--no-extensions", "-ne"],
        &["--no-prompt-templates", "-np"],
        &["--no-skills", "-ns"],
    ],
    setting: None,
    // `--session` with an id that does not exist yet is an error.
    session_new: &["--session-id", "{{SessionId}}"],
    session_resume: &["--session", "{{SessionId}}"],
    body_on_stdin: &[],
    misreads: |prompt| {
        prompt.starts_with(['-', '@', '/'])
            || prompt.contains('\0')
            || prompt.len() > MAX_ARGUMENT_BYTES
    },
    plain: str::to_owned,
};

/// Makes the command line.
pub(super) fn launch(launch: &Launch<'_>) -> Result<CommandLine, LaunchError> {
    let options = launch.options;
    let mut line = match &options.template {
        Some(template) => from_template(launch, template)?,
        None => own_line(launch),
    };
    line.env = environment(options);
    warn_if_asking(&mut line.warnings, options);
    warn_if(
        &mut line.warnings,
        options.max_turns.is_some() && options.wire_format() == Format::Text,
        "pi's plain text does not tell its model calls apart; max turns is ignored",
    );
    Ok(line)
}

fn own_line(launch: &Launch<'_>) -> CommandLine {
    let options = launch.options;
    let form = Form::of(options);
    let mut line = CommandLine::default();
    push(&mut line.args, ["-p"]);
    if options.format != Format::Text {
        push(&mut line.args, ["--mode", "json"]);
    }
    // Before the other options, of which the last one of a kind counts.
    push(&mut line.args, &options.extra_args);
    push(&mut line.args, model(options));
    if let Some(memo) = launch.open.memo() {
        push(&mut line.args, ["--session", &memo.id, "--continue"]);
    }
    add_options(launch, form, &mut line);
    add_prompt(launch, form, &mut line);
    line
}

/// Adds thinking, system prompt, tools and protection.
pub(super) fn add_options(launch: &Launch<'_>, form: Form, line: &mut CommandLine) {
    let options = launch.options;
    if let Some(level) = options.thinking {
        push(&mut line.args, ["--thinking", thinking(level)]);
    }
    if let Some(text) = &options.system_prompt {
        // As a file: a text that is the name of one would be replaced by it,
        // and an argument has a limit and shows in the list of processes.
        let path = launch.run_dir.join("system-prompt.md");
        push(&mut line.args, [Path::new("--append-system-prompt"), &path]);
        line.files.push((path, text.as_bytes().to_vec()));
    }
    let asked = Selection::of(launch, extensions(options, form));
    push(&mut line.args, asked.arguments());
    line.warnings.extend(asked.warnings);
    if form == Form::Default {
        push(&mut line.args, protection(options));
    }
}

/// The operator's own line, with what it lacks.
fn from_template(launch: &Launch<'_>, template: &Template) -> Result<CommandLine, LaunchError> {
    let options = launch.options;
    let mut own = CommandLine::default();
    push(&mut own.args, ["-p"]);
    match template.format {
        None => {}
        Some(Format::StreamJson | Format::Json) => push(&mut own.args, ["--mode", "json"]),
        Some(Format::Text) => push(&mut own.args, ["--mode", "text"]),
    }
    let mut flags = template::groups(&own.args);
    own.args.clear();
    // Provider and model belong together: a template that has one names its own.
    let model: Vec<OsString> = model(options).into_iter().map(OsString::from).collect();
    flags.extend((!model.is_empty()).then_some(model));
    push(&mut own.args, &options.extra_args);
    add_options(launch, Form::Default, &mut own);
    flags.extend(template::groups(&own.args));
    let input = launch.prompt.as_bytes();
    let line = template::fill(&TEMPLATE, template, launch.open, launch.prompt, input, &flags)?;
    Ok(CommandLine { files: own.files, warnings: own.warnings, ..line })
}

/// Whether extensions are loaded, which can bring tools of any name.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Extensions {
    Loaded,
    Off,
}

pub(super) fn extensions(options: &Options, form: Form) -> Extensions {
    let asked_for = form == Form::Literal || options.prompt_commands == PromptCommands::On;
    match options.permissions {
        Permissions::Bypass if asked_for => Extensions::Loaded,
        // They are programs, and can do whatever a tool could.
        Permissions::Bypass | Permissions::Ask | Permissions::ReadOnly => Extensions::Off,
    }
}

/// The arguments that keep commands out of prompts and a repository's settings
/// out of the turn.
fn protection(options: &Options) -> Vec<&'static str> {
    let mut flags = Vec::new();
    match options.prompt_commands {
        PromptCommands::Off => flags.extend(PLAIN_PROMPT),
        PromptCommands::On if extensions(options, Form::Default) == Extensions::Off => {
            flags.push("--no-extensions");
        }
        PromptCommands::On => {}
    }
    match options.project_settings {
        // Left unsaid, a directory that was trusted in a terminal once stays so,
        // and AGENTS.md is read whether anybody trusts the directory or not.
        ProjectSettings::Ignored => flags.extend(["--no-context-files", "--no-approve"]),
        ProjectSettings::Trusted => flags.push("--approve"),
    }
    flags
}

/// Splits `provider/model`: alone, the name is matched loosely over all providers.
pub(super) fn model(options: &Options) -> Vec<String> {
    match options.model.as_deref().map(|name| name.split_once('/').ok_or(name)) {
        None => Vec::new(),
        Some(Ok((provider, model))) if !provider.is_empty() && !model.is_empty() => {
            words(["--provider", provider, "--model", model])
        }
        Some(Ok(_)) => words(["--model", options.model.as_deref().unwrap_or_default()]),
        Some(Err(name)) => words(["--model", name]),
    }
}

fn thinking(level: Thinking) -> &'static str {
    match level {
        Thinking::Off => "off",
        Thinking::Minimal => "minimal",
        Thinking::Low => "low",
        Thinking::Medium => "medium",
        Thinking::High => "high",
    }
}

/// Puts the prompt where the CLI takes it as it is.
fn add_prompt(launch: &Launch<'_>, form: Form, line: &mut CommandLine) {
    let prompt = launch.prompt;
    let without_start = prompt.trim_start_matches(is_trimmed);
    if would_be_command(without_start, launch.options.prompt_commands, form) {
        if prompt.len() < MAX_ARGUMENT_BYTES && !prompt.contains('\0') {
            // Only a slash in the very first place counts. Standard input is
            // trimmed, an argument is not; the model sees the white space.
            let before = if without_start.len() == prompt.len() { " " } else { "" };
            push(&mut line.args, [format!("{before}{prompt}")]);
            return;
        }
        let text = "the prompt is too long to be kept from being read as a slash command";
        line.warnings.push(text.to_owned());
    } else if without_start.len() != prompt.len() {
        let text = "pi drops white space at the start of a prompt";
        line.warnings.push(text.to_owned());
    }
    // What follows on standard input is trimmed; an argument is put right
    // behind it and is not. White space alone can be mistaken for nothing.
    let body = prompt.trim_end_matches(is_trimmed);
    let end = prompt.get(body.len()..).unwrap_or_default();
    if !body.is_empty() && !end.is_empty() && end.len() < MAX_ARGUMENT_BYTES {
        push(&mut line.args, [end]);
    }
    line.stdin = Stdin::Bytes(body.as_bytes().to_vec());
}

/// Whether the CLI would take a prompt for a command in spite of the arguments.
pub(super) fn would_be_command(prompt: &str, commands: PromptCommands, form: Form) -> bool {
    let is_built_in = || {
        let command = prompt.split(' ').next();
        command == Some(BUILT_IN_COMMAND)
    };
    commands == PromptCommands::Off
        && prompt.starts_with('/')
        && (form == Form::Literal || is_built_in())
}

/// What the CLI's language takes for white space at the ends of a text.
fn is_trimmed(c: char) -> bool {
    (c.is_whitespace() && c != '\u{85}') || c == '\u{feff}'
}

pub(super) fn environment(options: &Options) -> Vec<(OsString, OsString)> {
    let mut env = Vec::new();
    push_variables(&mut env, ENV);
    match &options.home {
        Some(home) => {
            env.push((AGENT_DIR_VARIABLE.into(), home.join(AGENT_DIR).into()));
            let cache = home.join(".cache/node-compile-cache");
            env.push(("NODE_COMPILE_CACHE".into(), cache.into()));
        }
        // It would fill the run folder with megabytes that no other turn can use.
        None => env.push(("NODE_DISABLE_COMPILE_CACHE".into(), "1".into())),
    }
    if let (ProjectSettings::Ignored, Some(folder)) =
        (options.project_settings, session_folder(options))
    {
        env.push(("PI_CODING_AGENT_SESSION_DIR".into(), folder.into()));
    }
    env
}

/// The folder in which the CLI keeps the sessions of a directory by default.
///
/// Said aloud for two reasons. A repository's settings can name another one,
/// and that setting alone is obeyed before anybody is asked whether to trust
/// the repository. And when the folder is left unsaid, the CLI looks for a
/// session in all of them, finds it in another directory's, and reads the first
/// line of the prompt as the answer to whether to copy it.
fn session_folder(options: &Options) -> Option<PathBuf> {
    let named = options.env.iter().rfind(|(name, _)| name == AGENT_DIR_VARIABLE);
    let base = match (named, &options.home) {
        (Some((_, Some(folder))), _) => PathBuf::from(folder),
        // Passed on from Ostler's own environment, which is not known here.
        (Some((_, None)), _) => return None,
        (None, Some(home)) => home.join(AGENT_DIR),
        // The CLI knows what a tilde means.
        (None, None) => Path::new("~").join(AGENT_DIR),
    };
    let cwd = options.cwd.to_string_lossy();
    let cwd = cwd.strip_prefix('/').unwrap_or(&cwd);
    Some(base.join("sessions").join(format!("--{}--", cwd.replace(['/', '\\', ':'], "-"))))
}

fn words<const N: usize>(words: [&str; N]) -> Vec<String> {
    words.map(str::to_owned).to_vec()
}

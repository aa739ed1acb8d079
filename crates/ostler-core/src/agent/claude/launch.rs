//! Makes Claude's command line. Pure: nothing is read, written or started here.
//!
//! There are two forms. The usual one talks JSON lines both ways: the prompt
//! goes in as one message on standard input, where nothing can mistake it for
//! an option, and everything that happens comes out as it happens; a process
//! that is kept gets the same. The plain one is the literal line that existing
//! deployments rely on.

use std::{
    ffi::OsString,
    path::{Path, PathBuf},
};

use super::{
    prompt::{self, is_safe_argument, plain_input, user_message},
    reach::add_tools,
};
use crate::{
    agent::{
        CommandLine, Launch, LaunchError, Stdin, WarmLaunch,
        command_line::{push, push_variables, warn_if, warn_if_asking},
    },
    event::Mode,
    request::{Format, Open, Permissions, ProjectSettings, PromptCommands, Template, Thinking},
    template::{self, TemplateFacts, is_agent},
};

/// The limit of model calls in the literal line when none was asked for.
const DEFAULT_MAX_TURNS: u32 = 25;

/// The variables that every run gets; one that the operator names wins.
const ENV: &[(&str, &str)] = &[
    // Alone it stops every foreign connection; the next three say so piece by
    // piece for versions that do not know it.
    ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1"),
    ("DISABLE_AUTOUPDATER", "1"),
    ("DISABLE_ERROR_REPORTING", "1"),
    ("DISABLE_TELEMETRY", "1"),
    // Retries wait 0.5, 1, 2, 4, 8, … s, each with up to a quarter more. Three
    // of them: 0.5 + 1 + 2 = 3.5 s, 4.4 s at most, and twice that when a broken
    // stream falls back to a plain request with retries of its own. Four could
    // take 2 × 9.4 s, too near to the 20 s within which an error must surface.
    ("CLAUDE_CODE_MAX_RETRIES", "3"),
    // Failures at the start are told in the output format too.
    ("CLAUDE_CODE_STARTUP_FAILURE_RESULTS", "1"),
];

/// The variables of a process of one turn: a background task would keep it alive
/// after its answer.
const ONE_SHOT_ENV: &[(&str, &str)] = &[("CLAUDE_CODE_DISABLE_BACKGROUND_TASKS", "1")];

/// What an operator's own command line is filled in with.
const TEMPLATE: TemplateFacts = TemplateFacts {
    program: "claude",
    subcommand: None,
    spellings: &[
        &["-p", "--print"],
        // 2.1.325 takes both; older versions refuse to start with them.
        &["--append-system-prompt-file", "--append-system-prompt"],
        &["--tools", "--dangerously-skip-permissions", "--permission-mode"],
        &["--dangerously-skip-permissions", "--permission-mode", "--tools"],
    ],
    setting: None,
    session_new: &["--session-id", "{{SessionId}}"],
    session_resume: &["--resume", "{{SessionId}}"],
    body_on_stdin: &[],
    misreads: |prompt| !is_safe_argument(prompt),
    plain: prompt::without_slash,
};

/// Makes the command line of a one-shot turn.
pub(super) fn launch(launch: &Launch<'_>) -> Result<CommandLine, LaunchError> {
    let options = launch.options;
    let mut line = match (&options.template, options.format) {
        (Some(template), _) => from_template(launch, template)?,
        (None, Format::StreamJson) => streaming(launch),
        (None, Format::Json) => plain(launch, "json"),
        (None, Format::Text) => plain(launch, "text"),
    };
    line.env = environment(launch);
    warn_if_asking(&mut line.warnings, options);
    Ok(line)
}

/// Makes the command line of a process that is kept. What can be changed in it
/// later, such as the model, is not here.
pub(super) fn warm(launch: &WarmLaunch<'_>) -> Result<CommandLine, LaunchError> {
    let one = launch.as_launch();
    let mut line = stream_line(&one);
    if one.options.permissions == Permissions::Ask {
        push(&mut line.args, ["--permission-prompt-tool", "stdio"]);
    }
    match launch.open {
        Open::Resume(memo) => push(&mut line.args, ["--resume", &memo.id]),
        Open::New => push(&mut line.args, ["--session-id", launch.new_id]),
    }
    line.stdin = Stdin::Open;
    line.env = environment(&one);
    Ok(line)
}

fn streaming(launch: &Launch<'_>) -> CommandLine {
    let mut line = stream_line(launch);
    add_session(launch, &mut line);
    line.stdin = Stdin::Bytes(user_message(launch.prompt, launch.options, None));
    line
}

/// What speaks JSON lines both ways.
fn stream_line(launch: &Launch<'_>) -> CommandLine {
    let options = launch.options;
    let mut line = CommandLine::default();
    let args = &mut line.args;
    push(args, ["-p", "--input-format", "stream-json"]);
    push(args, ["--output-format", "stream-json", "--verbose"]);
    push(args, ["--include-partial-messages"]);
    if options.permissions == Permissions::Bypass {
        push(args, ["--dangerously-skip-permissions"]);
    }
    if options.system_prompt.is_some() {
        add_system_prompt(launch, &mut line);
    }
    if let Some(max_turns) = options.max_turns {
        push(&mut line.args, ["--max-turns", &max_turns.to_string()]);
    }
    add_common(launch, &mut line);
    line
}

/// The literal line: `-p <prompt> --output-format json …`.
fn plain(launch: &Launch<'_>, format: &str) -> CommandLine {
    let options = launch.options;
    let mut line = CommandLine::default();
    push(&mut line.args, ["-p"]);
    // Directly after `-p` no flag with several values can swallow the prompt.
    let literal = options.format == Format::Json;
    if literal && is_safe_argument(launch.prompt) {
        push(&mut line.args, [launch.prompt]);
    } else {
        line.stdin = Stdin::Bytes(plain_input(launch));
    }
    push(&mut line.args, ["--output-format", format]);
    if options.permissions == Permissions::Bypass {
        push(&mut line.args, ["--dangerously-skip-permissions"]);
    }
    if literal || options.system_prompt.is_some() {
        add_system_prompt(launch, &mut line);
    }
    let max_turns = options.max_turns.or(literal.then_some(DEFAULT_MAX_TURNS));
    if let Some(max_turns) = max_turns {
        push(&mut line.args, ["--max-turns", &max_turns.to_string()]);
    }
    add_common(launch, &mut line);
    add_session(launch, &mut line);
    line
}

/// The operator's own line, with what it lacks.
fn from_template(launch: &Launch<'_>, template: &Template) -> Result<CommandLine, LaunchError> {
    let options = launch.options;
    let mut own = CommandLine::default();
    match template.format {
        None => {}
        Some(Format::StreamJson) => {
            push(&mut own.args, ["--output-format", "stream-json", "--verbose"]);
        }
        Some(Format::Json) => push(&mut own.args, ["--output-format", "json"]),
        Some(Format::Text) => push(&mut own.args, ["--output-format", "text"]),
    }
    if options.permissions == Permissions::Bypass {
        push(&mut own.args, ["--dangerously-skip-permissions"]);
    }
    if options.system_prompt.is_some() {
        add_system_prompt(launch, &mut own);
    }
    if let Some(max_turns) = options.max_turns {
        push(&mut own.args, ["--max-turns", &max_turns.to_string()]);
    }
    add_common(launch, &mut own);
    // Last, so that no flag with several values swallows a prompt behind it.
    push(&mut own.args, ["-p"]);
    let flags = template::groups(&own.args);
    let input = plain_input(launch);
    let line = template::fill(&TEMPLATE, template, launch.open, launch.prompt, &input, &flags)?;
    let is_agent = template.command.first().is_some_and(|word| is_agent(TEMPLATE.program, word));
    let is_given = |(path, _): &(PathBuf, _)| line.args.iter().any(|word| word == path.as_os_str());
    warn_if(
        &mut own.warnings,
        is_agent && !own.files.iter().all(is_given),
        "the command line has a system prompt of its own; the configured one is not given",
    );
    Ok(CommandLine { files: own.files, warnings: own.warnings, ..line })
}

/// Adds what all forms share: tools, model, thinking, isolation, the
/// operator's own arguments.
fn add_common(launch: &Launch<'_>, line: &mut CommandLine) {
    let options = launch.options;
    add_tools(launch, line);
    let args = &mut line.args;
    if let (Some(model), Mode::OneShot) = (&options.model, launch.mode) {
        push(args, ["--model", model]);
    }
    match options.thinking {
        None => {}
        Some(Thinking::Off) => push(args, ["--thinking", "disabled"]),
        Some(Thinking::Minimal | Thinking::Low) => push(args, ["--effort", "low"]),
        Some(Thinking::Medium) => push(args, ["--effort", "medium"]),
        Some(Thinking::High) => push(args, ["--effort", "high"]),
    }
    renew_system_prompt(launch, line);
    let args = &mut line.args;
    // Settings in a repository start programs and can send the API key
    // elsewhere. The literal line has no flags against that; with every
    // permission granted the repository's code runs anyway.
    let is_literal = options.is_literal() && launch.mode == Mode::OneShot;
    if options.project_settings == ProjectSettings::Ignored && !is_literal {
        push(args, ["--setting-sources", "user", "--strict-mcp-config"]);
    }
    push(args, &options.extra_args);
}

/// Adds the session that goes on; a new one has no flag.
fn add_session(launch: &Launch<'_>, line: &mut CommandLine) {
    if let Some(memo) = launch.open.memo() {
        push(&mut line.args, ["--resume", &memo.id]);
    }
}

/// Adds the system prompt as a file, which is empty when there is none.
fn add_system_prompt(launch: &Launch<'_>, line: &mut CommandLine) {
    let path = launch.run_dir.join("system-prompt.md");
    push(&mut line.args, [Path::new("--append-system-prompt-file"), &path]);
    let text = launch.options.system_prompt.as_deref();
    line.files.push((path, text.unwrap_or_default().as_bytes().to_vec()));
}

/// Makes a system prompt count that is not the first one of its session.
fn renew_system_prompt(launch: &Launch<'_>, line: &mut CommandLine) {
    if launch.options.system_prompt.is_none() || launch.open.memo().is_none() {
        return;
    }
    match system_prompt_snapshot(launch) {
        Snapshot::None => {}
        Snapshot::CanBeOff => push(&mut line.args, ["--system-prompt-snapshot", "off"]),
        Snapshot::Unknown => line.warnings.push(
            "this version of the CLI may keep the system prompt of the session's first turn"
                .to_owned(),
        ),
    }
}

/// Whether the CLI records the system prompt of a session's first turn and
/// ignores any later one.
enum Snapshot {
    /// It does not, and does not know the flag.
    None,
    /// It does, and can be told not to.
    CanBeOff,
    /// Nobody looked.
    Unknown,
}

fn system_prompt_snapshot(launch: &Launch<'_>) -> Snapshot {
    let remembered = launch.open.memo().and_then(|memo| memo.version.as_deref());
    match launch.version.or(remembered).and_then(parse_version) {
        Some(version) if version >= [2, 1, 325] => Snapshot::CanBeOff,
        Some(version) if version <= [2, 1, 197] => Snapshot::None,
        Some(_) | None => Snapshot::Unknown,
    }
}

/// Reads the first three numbers of `2.1.325 (Claude Code)`.
fn parse_version(text: &str) -> Option<[u32; 3]> {
    let word =
        text.split_whitespace().find(|word| word.starts_with(|c: char| c.is_ascii_digit()))?;
    let mut numbers = word.split(|c: char| !c.is_ascii_digit()).map(|number| number.parse().ok());
    let mut next = || numbers.next().flatten();
    Some([next()?, next()?, next()?])
}

fn environment(launch: &Launch<'_>) -> Vec<(OsString, OsString)> {
    let options = launch.options;
    let mut env = Vec::new();
    push_variables(&mut env, ENV);
    if launch.mode == Mode::OneShot {
        push_variables(&mut env, ONE_SHOT_ENV);
    }
    if options.prompt_commands == PromptCommands::Off {
        // Else `@file` anywhere in a prompt is replaced by that file.
        env.push(("CLAUDE_CODE_DISABLE_FILE_MENTIONS".into(), "1".into()));
    }
    if let Some(home) = &options.home {
        // The user's own setting would otherwise lead out of that home again.
        env.push(("CLAUDE_CONFIG_DIR".into(), home.join(".claude").into()));
    }
    env
}

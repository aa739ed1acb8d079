//! Makes the command line of one `opencode run`. Pure.
//!
//! Two forms. The literal one (`format=json` with everything allowed) has the
//! arguments that existing deployments rely on and adds only what the operator
//! asked for. The default one adds what tells more and costs less. What keeps
//! the user safe and errors quick is in variables, and so in both.

use std::ffi::OsString;

use serde_json::{Value, json};

use super::{
    settings::{self, AGENT, Carrier, Settings, names},
    variables,
};
use crate::{
    agent::{
        CommandLine, Launch, LaunchError, Stdin, Stdout,
        command_line::{Form, push, push_pair, warn_if, warn_if_asking},
    },
    memo::Memo,
    request::{Format, Options, Permissions, PromptCommands, Template, Thinking},
    template::{self, MAX_ARGUMENT_BYTES, TemplateFacts},
};

/// What an operator's own command line is filled in with. There are no session
/// arguments for a new session: the CLI takes no id that it did not make.
const TEMPLATE: TemplateFacts = TemplateFacts {
    program: "opencode",
    subcommand: Some("run"),
    spellings: &[&["--model", "-m"], &["--auto", "--yolo", "--dangerously-skip-permissions"]],
    setting: None,
    session_new: &[],
    session_resume: &["--session", "{{SessionId}}"],
    body_on_stdin: &[],
    misreads: |prompt| !is_safe_argument(prompt),
    plain: str::to_owned,
};

/// Makes the command line of a one-shot turn.
pub(super) fn launch(launch: &Launch<'_>) -> Result<CommandLine, LaunchError> {
    let options = launch.options;
    let mut settings = settings::settings(launch);
    let plan = Plan::of(options, &settings);
    let prompt = prompt(launch, &settings, plan.carrier);
    let mut line = match &options.template {
        Some(template) => from_template(launch, template, &plan, &prompt)?,
        None => run(launch, &plan, prompt),
    };
    // It ends without waiting until a pipe has taken a long answer: of two
    // megabytes in one line the rest was missing.
    line.stdout = Stdout::File;
    line.env = variables::environment(options, plan.permission.as_ref());
    line.warnings = warnings(launch, &plan, &mut settings);
    carry(launch, &settings, plan.carrier, &mut line);
    Ok(line)
}

/// What was decided before any word is written.
struct Plan {
    form: Form,
    carrier: Carrier,
    /// Whether our own agent runs the turn.
    uses_agent: bool,
    /// The value of `OPENCODE_PERMISSION`, which counts for every agent, also
    /// for those that the agent starts.
    permission: Option<Value>,
}

impl Plan {
    fn of(options: &Options, settings: &Settings) -> Self {
        let carrier = Carrier::of(options);
        let uses_agent = settings.rules.is_some() && carrier != Carrier::None;
        let form = Form::of(options);
        let permission = match &settings.rules {
            Some(rules) => Some(Value::Object(rules.clone())),
            // The literal line has no flag for it.
            None if form == Form::Literal => Some(json!({ "*": "allow" })),
            None => None,
        };
        Self { form, carrier, uses_agent, permission }
    }
}

fn run(launch: &Launch<'_>, plan: &Plan, prompt: String) -> CommandLine {
    let options = launch.options;
    let mut line = CommandLine::default();
    let mut args = vec!["run".into()];
    if plan.form == Form::Literal && is_safe_argument(&prompt) {
        args.push(prompt.into());
        // An open pipe would be read to its end, and the turn never begin.
        line.stdin = Stdin::Null;
    } else {
        line.stdin = Stdin::Bytes(prompt.into_bytes());
    }
    match options.format {
        Format::StreamJson | Format::Json => push_pair(&mut args, "--format", "json"),
        Format::Text => push_pair(&mut args, "--format", "default"),
    }
    if plan.form == Form::Default {
        if options.format != Format::Text {
            push(&mut args, ["--thinking"]);
        }
        if options.permissions == Permissions::Bypass {
            push(&mut args, ["--auto"]);
        }
        if launch.open.memo().is_none() {
            // The start of the prompt becomes the title. Without this another
            // call of the model is made for it, which no figure shows.
            push_pair(&mut args, "--title", "");
        }
    }
    if plan.uses_agent {
        push_pair(&mut args, "--agent", AGENT);
    }
    if let Some(level) = options.thinking {
        push_pair(&mut args, "--variant", variant(level));
    }
    push(&mut args, &options.extra_args);
    if let Some(memo) = launch.open.memo() {
        push_pair(&mut args, "--session", &memo.id);
        push(&mut args, ["--continue"]);
    }
    if let Some(model) = &options.model {
        push_pair(&mut args, "--model", model);
    }
    if let Some(memo) = launch.open.memo() {
        push_pair(&mut args, "--dir", session_directory(memo, options));
    }
    line.args = args;
    line
}

/// The operator's own line, with what it lacks.
fn from_template(
    launch: &Launch<'_>,
    template: &Template,
    plan: &Plan,
    prompt: &str,
) -> Result<CommandLine, LaunchError> {
    let options = launch.options;
    let mut flags = Vec::new();
    match template.format {
        None => {}
        Some(Format::StreamJson | Format::Json) => push_pair(&mut flags, "--format", "json"),
        Some(Format::Text) => push_pair(&mut flags, "--format", "default"),
    }
    if options.permissions == Permissions::Bypass {
        push(&mut flags, ["--auto"]);
    }
    if plan.uses_agent {
        push_pair(&mut flags, "--agent", AGENT);
    }
    if let Some(level) = options.thinking {
        push_pair(&mut flags, "--variant", variant(level));
    }
    if let Some(model) = &options.model {
        push_pair(&mut flags, "--model", model);
    }
    if let Some(memo) = launch.open.memo() {
        push_pair(&mut flags, "--dir", session_directory(memo, options));
    }
    push(&mut flags, &options.extra_args);
    let flags = template::groups(&flags);
    template::fill(&TEMPLATE, template, launch.open, prompt, prompt.as_bytes(), &flags)
}

/// A turn runs where its session began. Told another directory, the CLI runs it
/// there all the same, but waits for ever for news of it.
fn session_directory(memo: &Memo, options: &Options) -> OsString {
    memo.cwd.as_ref().unwrap_or(&options.cwd).into()
}

/// The CLI passes over a variant that the model does not have.
pub(super) fn variant(level: Thinking) -> &'static str {
    match level {
        Thinking::Off => "none",
        Thinking::Minimal => "minimal",
        Thinking::Low => "low",
        Thinking::Medium => "medium",
        Thinking::High => "high",
    }
}

/// Whether `run` takes the text as it is. An argument with a space in it is
/// wrapped in quotes, one that begins with a dash is an option, and a number
/// may come out written in another way.
fn is_safe_argument(prompt: &str) -> bool {
    prompt.len() <= MAX_ARGUMENT_BYTES
        && !prompt.is_empty()
        && !prompt.starts_with('-')
        && !prompt.starts_with(|c: char| c.is_ascii_digit() || c == '.' || c == '+')
        && !prompt.chars().any(|c| c.is_whitespace() || c.is_control())
}

/// Puts the settings where the CLI finds them.
pub(super) fn carry(
    launch: &Launch<'_>,
    settings: &Settings,
    carrier: Carrier,
    line: &mut CommandLine,
) {
    if settings.content.is_empty() || carrier == Carrier::None {
        return;
    }
    if let Some(text) = &settings.system_prompt {
        line.files.push((settings::system_prompt_path(launch).into(), text.as_bytes().to_vec()));
    }
    if carrier == Carrier::Content {
        let content = settings::text(&settings.content);
        line.env.push(("OPENCODE_CONFIG_CONTENT".into(), content.into()));
        return;
    }
    let path = launch.run_dir.join("opencode.json");
    let mut content = settings.content.clone();
    // Without this the CLI would write it into the file.
    content.insert("$schema".to_owned(), json!("https://opencode.ai/config.json"));
    line.env.push(("OPENCODE_CONFIG".into(), path.clone().into()));
    line.files.push((path, settings::text(&content).into_bytes()));
}

/// The prompt, and before it the system prompt where nothing else can carry it.
fn prompt(launch: &Launch<'_>, settings: &Settings, carrier: Carrier) -> String {
    let was_sent = launch.open.memo().is_some_and(|memo| memo.system_sent);
    match &settings.system_prompt {
        Some(text) if carrier == Carrier::None && !was_sent => {
            format!("{text}\n\n{}", launch.prompt)
        }
        Some(_) | None => launch.prompt.to_owned(),
    }
}

pub(super) fn warn_of_thinking(warnings: &mut Vec<String>, options: &Options) {
    warn_if(
        warnings,
        options.thinking == Some(Thinking::Off),
        "opencode cannot switch thinking off for every model; asking for the variant `none`",
    );
}

fn warnings(launch: &Launch<'_>, plan: &Plan, settings: &mut Settings) -> Vec<String> {
    let options = launch.options;
    let mut warnings = std::mem::take(&mut settings.warnings);
    warn_if_asking(&mut warnings, options);
    warn_of_thinking(&mut warnings, options);
    let mut warn = |applies: bool, text: &str| warn_if(&mut warnings, applies, text);
    warn(
        options.prompt_commands == PromptCommands::On,
        "opencode run knows no slash commands and no @file; the prompt is sent as typed",
    );
    warn(
        options.format == Format::Text && options.template.is_none(),
        "with format=text opencode does not tell its session; the turn cannot be resumed",
    );
    warn(
        options.model.as_deref().is_some_and(|model| !model.contains('/')),
        "opencode's models are named provider/model; this one names no provider",
    );
    warn(
        plan.carrier == Carrier::None && settings.system_prompt.is_some(),
        "OPENCODE_CONFIG and OPENCODE_CONFIG_CONTENT are both yours, so the system prompt goes \
         before the prompt",
    );
    let is_unguarded = settings.rules.is_some() && !plan.uses_agent;
    warn(
        is_unguarded && !names(options, "OPENCODE_PERMISSION"),
        "OPENCODE_CONFIG and OPENCODE_CONFIG_CONTENT are both yours, so permissions of an agent \
         in your settings count more than those of this turn",
    );
    warn(
        is_unguarded && names(options, "OPENCODE_PERMISSION"),
        "OPENCODE_CONFIG, OPENCODE_CONFIG_CONTENT and OPENCODE_PERMISSION are all yours, so \
         nothing of Ostler's restricts this turn",
    );
    let elsewhere = launch.open.memo().and_then(|memo| memo.cwd.as_ref());
    if let Some(directory) = elsewhere.filter(|directory| **directory != options.cwd) {
        let directory = directory.display();
        warnings.push(format!("opencode goes on in {directory}, where the session began"));
    }
    warnings
}

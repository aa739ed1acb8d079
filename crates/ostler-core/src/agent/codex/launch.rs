//! Makes the command line of one `codex exec`.
//!
//! Two forms. The literal one (`format=json` with everything allowed) has the
//! flags that existing deployments rely on and adds only what the operator
//! asked for. The default form adds what keeps the user safe and errors quick.

use std::ffi::OsString;

use super::config::{defined_provider, toml_string};
use crate::{
    agent::{
        CommandLine, Launch, LaunchError, Stdin,
        command_line::{Form, push, push_pair, warn_if, warn_if_asking},
    },
    memo::{self, Memo},
    request::{
        Format, Open, Options, Permissions, ProjectSettings, PromptCommands, Template, Thinking,
    },
    template::{self, MAX_ARGUMENT_BYTES, TemplateFacts},
};

/// The kernel takes 128 KiB for one argument, key and encoding included.
const MAX_SETTING: usize = 120 * 1024;
/// Words that `exec` takes for a subcommand when they stand where a prompt would.
const SUBCOMMANDS: &[&str] = &["resume", "fork", "review", "help"];

/// Settings of the default form, whoever's home it is.
const SAFE_SETTINGS: &[&str] = &[
    // Without this a refused connection is retried for ever. As a setting and not as
    // `--disable`, which stops a CLI that does not know the word.
    "features.unbounded_connection_retries=false",
    // Tools otherwise inherit the key the agent runs on. This hides every variable
    // whose name holds KEY, SECRET or TOKEN.
    "shell_environment_policy.ignore_default_excludes=false",
    "analytics.enabled=false",
    "check_for_update_on_startup=false",
];

/// How often a request and a stream are tried again, for a provider that can be told.
const RETRY_BOUNDS: &[(&str, u32)] = &[("request_max_retries", 2), ("stream_max_retries", 2)];

/// What an operator's own command line is filled in with.
const TEMPLATE: TemplateFacts = TemplateFacts {
    program: "codex",
    subcommand: Some("exec"),
    spellings: &[
        &["--model", "-m"],
        &["--cd", "-C"],
        &["--json", "--experimental-json"],
        &["--sandbox", "-s", "--dangerously-bypass-approvals-and-sandbox", "--yolo"],
        &["--dangerously-bypass-approvals-and-sandbox", "--yolo", "--sandbox", "-s"],
    ],
    setting: Some("-c"),
    session_new: &[],
    session_resume: &["resume", "{{SessionId}}"],
    body_on_stdin: &["-"],
    misreads: |prompt| !is_safe_argument(prompt),
    plain: str::to_owned,
};

/// Makes the command line.
pub(super) fn launch(launch: &Launch<'_>) -> Result<CommandLine, LaunchError> {
    let options = launch.options;
    if let Some(template) = &options.template {
        return from_template(launch, template);
    }
    let form = Form::of(options);
    let system = SystemPrompt::of(launch);
    let mut args = vec!["exec".into()];
    args.extend(flags(options, form, Some(options.format), &system));
    if let Open::Resume(memo) = launch.open {
        push_pair(&mut args, "resume", &memo.id);
    }
    let prompt = system.before(launch.prompt);
    let stdin = if form == Form::Literal && is_safe_argument(&prompt) {
        args.push(prompt.into());
        // With an open pipe on standard input the CLI would wait for its end for ever.
        Stdin::Null
    } else {
        push(&mut args, ["-"]);
        Stdin::Bytes(prompt.into_bytes())
    };
    let (env, warnings) = (home(options), warnings(launch, form));
    Ok(CommandLine { args, env, stdin, warnings, ..CommandLine::default() })
}

/// Everything between the subcommand and the session.
fn flags(
    options: &Options,
    form: Form,
    format: Option<Format>,
    system: &SystemPrompt,
) -> Vec<OsString> {
    let mut args = Vec::new();
    match format {
        Some(Format::StreamJson | Format::Json) => push(&mut args, ["--json"]),
        // The session id stands in a header that colours would make unreadable.
        Some(Format::Text) | None => push_pair(&mut args, "--color", "never"),
    }
    push(&mut args, ["--skip-git-repo-check"]);
    match options.permissions {
        Permissions::Bypass => push(&mut args, ["--dangerously-bypass-approvals-and-sandbox"]),
        Permissions::Ask | Permissions::ReadOnly => push_pair(&mut args, "--sandbox", "read-only"),
    }
    push_pair(&mut args, "--cd", &options.cwd);
    if let Some(model) = &options.model {
        push_pair(&mut args, "--model", model);
    }
    if let SystemPrompt::Setting(setting) = system {
        push_pair(&mut args, "-c", setting);
    }
    if let Some(level) = options.thinking {
        let effort = toml_string(effort(level));
        push_pair(&mut args, "-c", format!("model_reasoning_effort={effort}"));
    }
    if form == Form::Default {
        push_quiet(&mut args, options);
        push_trust(&mut args, options);
    }
    push(&mut args, &options.extra_args);
    if form == Form::Default {
        push_retry_bounds(&mut args, &options.extra_args);
    }
    args
}

/// The operator's own line, with what it lacks.
fn from_template(launch: &Launch<'_>, template: &Template) -> Result<CommandLine, LaunchError> {
    let options = launch.options;
    let system = SystemPrompt::of(launch);
    let flags = template::groups(&flags(options, Form::Default, template.format, &system));
    let prompt = system.before(launch.prompt);
    let line =
        template::fill(&TEMPLATE, template, launch.open, &prompt, prompt.as_bytes(), &flags)?;
    let (env, warnings) = (home(options), warnings(launch, Form::Default));
    Ok(CommandLine { env, warnings, ..line })
}

/// Adds what keeps the user safe and the CLI quiet, wherever it works.
pub(super) fn push_quiet(args: &mut Vec<OsString>, options: &Options) {
    for setting in SAFE_SETTINGS {
        push_pair(args, "-c", *setting);
    }
    if options.home.is_some() {
        // Plugins look for updates on the network at every start. In the user's own home
        // that is the user's decision.
        push_pair(args, "-c", "features.plugins=false");
    }
}

/// Adds what the directory's own settings are worth.
///
/// Left unsaid, running without a sandbox makes the CLI trust the directory at
/// once, start the programs that its .codex/config.toml names, and write the
/// trust into the user's own configuration.
fn push_trust(args: &mut Vec<OsString>, options: &Options) {
    let trust = trust_level(options.project_settings);
    if options.project_settings == ProjectSettings::Ignored {
        // The parents' settings would count as well, up to the root of the repository.
        push_pair(args, "-c", "project_root_markers=[]");
    }
    let directory = toml_string(&options.cwd.to_string_lossy());
    push_pair(args, "-c", format!("projects={{{directory}={{trust_level=\"{trust}\"}}}}"));
}

/// Returns the CLI's word for how far a directory is trusted.
pub(super) fn trust_level(settings: ProjectSettings) -> &'static str {
    match settings {
        ProjectSettings::Trusted => "trusted",
        ProjectSettings::Ignored => "untrusted",
    }
}

/// Goes after the operator's own arguments: a table that defines the
/// provider would wipe out what was set before it.
pub(super) fn push_retry_bounds(args: &mut Vec<OsString>, extra_args: &[String]) {
    let Some(provider) = defined_provider(extra_args) else {
        return;
    };
    for (key, times) in RETRY_BOUNDS {
        if !extra_args.iter().any(|arg| arg.contains(key)) {
            push_pair(args, "-c", format!("model_providers.{provider}.{key}={times}"));
        }
    }
}

/// How the system prompt reaches the agent.
enum SystemPrompt {
    None,
    Setting(String),
    BeforePrompt(String),
}

impl SystemPrompt {
    /// Returns the prompt, after the system prompt where that goes before it.
    fn before(&self, prompt: &str) -> String {
        match self {
            Self::BeforePrompt(text) => format!("{text}\n\n{prompt}"),
            Self::None | Self::Setting(_) => prompt.to_owned(),
        }
    }

    fn of(launch: &Launch<'_>) -> Self {
        let (Some(text), Open::New) = (&launch.options.system_prompt, launch.open) else {
            return Self::None;
        };
        let setting = format!("developer_instructions={}", toml_string(text));
        if setting.len() > MAX_SETTING {
            Self::BeforePrompt(text.clone())
        } else {
            Self::Setting(setting)
        }
    }
}

/// The CLI passes any word on, but no model of its catalogue takes less than `low`.
pub(super) fn effort(level: Thinking) -> &'static str {
    match level {
        Thinking::Off | Thinking::Minimal | Thinking::Low => "low",
        Thinking::Medium => "medium",
        Thinking::High => "high",
    }
}

/// Whether `exec` takes the text for a prompt and for nothing else.
fn is_safe_argument(prompt: &str) -> bool {
    prompt.len() <= MAX_ARGUMENT_BYTES
        && !prompt.starts_with('-')
        && !prompt.contains('\0')
        && !SUBCOMMANDS.contains(&prompt)
}

/// A home of its own holds everything: a `CODEX_HOME` must exist, its parent would not do.
pub(super) fn home(options: &Options) -> Vec<(OsString, OsString)> {
    let Some(home) = &options.home else {
        return Vec::new();
    };
    vec![
        ("HOME".into(), home.into()),
        ("CODEX_HOME".into(), home.into()),
        ("CODEX_SQLITE_HOME".into(), home.into()),
    ]
}

fn warnings(launch: &Launch<'_>, form: Form) -> Vec<String> {
    let options = launch.options;
    let mut warnings = lacks(options);
    warn_if_asking(&mut warnings, options);
    warnings.extend(ignored_system_prompt(launch.open, options).map(str::to_owned));
    let mut warn = |applies: bool, text: &str| warn_if(&mut warnings, applies, text);
    warn(
        matches!(SystemPrompt::of(launch), SystemPrompt::BeforePrompt(_)),
        "the system prompt is too long for an argument; it goes before the prompt",
    );
    warn(form == Form::Default && options.cwd.to_str().is_none(), UNREADABLE_DIRECTORY);
    warnings
}

/// Said of a directory that cannot be named in settings.
pub(super) const UNREADABLE_DIRECTORY: &str = "the name of the working directory is not UTF-8, \
    so codex cannot be told whether to obey its settings";

/// Tells what the CLI cannot do as asked, however it is run.
pub(super) fn lacks(options: &Options) -> Vec<String> {
    let mut warnings = Vec::new();
    let mut warn = |applies: bool, text: &str| warn_if(&mut warnings, applies, text);
    warn(
        options.allowed_tools.is_some(),
        "codex cannot restrict tools by name; allowed tools are ignored",
    );
    warn(
        options.max_turns.is_some(),
        "codex cannot limit the number of model calls; max turns is ignored",
    );
    warn(
        options.thinking == Some(Thinking::Off),
        "codex's models always think; using the lowest level",
    );
    warn(
        options.prompt_commands == PromptCommands::On,
        "codex takes no slash commands and no @file from here; the prompt is sent as typed",
    );
    warnings
}

/// Tells that a session began with another system prompt, which stays.
pub(super) fn ignored_system_prompt(open: &Open, options: &Options) -> Option<&'static str> {
    let hash = memo::hash(options.system_prompt.as_ref()?);
    let differs = |memo: &Memo| memo.system_hash.as_ref() != Some(&hash);
    open.memo()
        .is_some_and(differs)
        .then_some("codex takes a system prompt only when a session begins; this one is ignored")
}

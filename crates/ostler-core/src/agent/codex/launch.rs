//! Makes the command line of one `codex exec`.
//!
//! Two forms. The literal one (`format=json` with everything allowed) has the
//! flags that existing deployments rely on and adds only what the operator
//! asked for. The default form adds what keeps the user safe and errors quick.

use std::ffi::OsString;

use super::config::{defined_provider, toml_string};
use crate::{
    agent::{CommandLine, Launch, LaunchError, Stdin},
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
};

/// Makes the command line.
pub(super) fn launch(launch: &Launch<'_>) -> Result<CommandLine, LaunchError> {
    let options = launch.options;
    if let Some(template) = &options.template {
        return from_template(launch, template);
    }
    let form = Form::of(options);
    let system = SystemPrompt::of(launch);
    let mut args = Args(vec!["exec".into()]);
    args.0.extend(flags(options, form, Some(options.format), &system).0);
    if let Open::Resume(memo) = launch.open {
        args.pair("resume", &memo.id);
    }
    let prompt = system.before(launch.prompt);
    let stdin = if form == Form::Literal && is_safe_argument(&prompt) {
        args.0.push(prompt.into());
        // With an open pipe on standard input the CLI would wait for its end for ever.
        Stdin::Null
    } else {
        args.flag("-");
        Stdin::Bytes(prompt.into_bytes())
    };
    let (env, warnings) = (home(options), warnings(launch, form));
    Ok(CommandLine { args: args.0, env, stdin, warnings, ..CommandLine::default() })
}

/// Everything between the subcommand and the session.
fn flags(options: &Options, form: Form, format: Option<Format>, system: &SystemPrompt) -> Args {
    let mut args = Args(Vec::new());
    match format {
        Some(Format::StreamJson | Format::Json) => args.flag("--json"),
        // The session id stands in a header that colours would make unreadable.
        Some(Format::Text) | None => args.pair("--color", "never"),
    }
    args.flag("--skip-git-repo-check");
    match options.permissions {
        Permissions::Bypass => args.flag("--dangerously-bypass-approvals-and-sandbox"),
        Permissions::Ask | Permissions::ReadOnly => args.pair("--sandbox", "read-only"),
    }
    args.pair("--cd", &options.cwd);
    if let Some(model) = &options.model {
        args.pair("--model", model);
    }
    if let SystemPrompt::Setting(setting) = system {
        args.pair("-c", setting);
    }
    if let Some(level) = options.thinking {
        let effort = toml_string(effort(level));
        args.pair("-c", format!("model_reasoning_effort={effort}"));
    }
    if form == Form::Default {
        args.safety(options);
    }
    args.0.extend(options.extra_args.iter().map(OsString::from));
    if form == Form::Default {
        args.retry_bounds(&options.extra_args);
    }
    args
}

/// The operator's own line, with what it lacks.
fn from_template(launch: &Launch<'_>, template: &Template) -> Result<CommandLine, LaunchError> {
    let options = launch.options;
    let system = SystemPrompt::of(launch);
    let flags = template::groups(&flags(options, Form::Default, template.format, &system).0);
    let prompt = system.before(launch.prompt);
    let line =
        template::fill(&TEMPLATE, template, launch.open, &prompt, prompt.as_bytes(), &flags)?;
    let (env, warnings) = (home(options), warnings(launch, Form::Default));
    Ok(CommandLine { env, warnings, ..line })
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    Literal,
    Default,
}

impl Form {
    fn of(options: &Options) -> Self {
        if options.is_literal() { Self::Literal } else { Self::Default }
    }
}

struct Args(Vec<OsString>);

impl Args {
    fn flag(&mut self, flag: &str) {
        self.0.push(flag.into());
    }

    fn pair(&mut self, flag: &str, value: impl Into<OsString>) {
        self.0.push(flag.into());
        self.0.push(value.into());
    }

    fn safety(&mut self, options: &Options) {
        for setting in SAFE_SETTINGS {
            self.pair("-c", *setting);
        }
        if options.home.is_some() {
            // Plugins look for updates on the network at every start. In the user's own home
            // that is the user's decision.
            self.pair("-c", "features.plugins=false");
        }
        let trust = match options.project_settings {
            ProjectSettings::Trusted => "trusted",
            ProjectSettings::Ignored => {
                // The parents' settings would count as well, up to the root of the repository.
                self.pair("-c", "project_root_markers=[]");
                "untrusted"
            }
        };
        // Left unsaid, running without a sandbox makes the CLI trust the directory at once,
        // start the programs that its .codex/config.toml names, and write the trust into the
        // user's own configuration.
        let directory = toml_string(&options.cwd.to_string_lossy());
        self.pair("-c", format!("projects={{{directory}={{trust_level=\"{trust}\"}}}}"));
    }

    /// Goes after the operator's own arguments: a table that defines the
    /// provider would wipe out what was set before it.
    fn retry_bounds(&mut self, extra_args: &[String]) {
        let Some(provider) = defined_provider(extra_args) else {
            return;
        };
        for (key, times) in RETRY_BOUNDS {
            if !extra_args.iter().any(|arg| arg.contains(key)) {
                self.pair("-c", format!("model_providers.{provider}.{key}={times}"));
            }
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
fn effort(level: Thinking) -> &'static str {
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
fn home(options: &Options) -> Vec<(OsString, OsString)> {
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
    let mut warnings = Vec::new();
    let mut warn = |applies: bool, text: &str| {
        if applies {
            warnings.push(text.to_owned());
        }
    };
    warn(
        options.allowed_tools.is_some(),
        "codex cannot restrict tools by name; allowed tools are ignored",
    );
    warn(
        options.max_turns.is_some(),
        "codex cannot limit the number of model calls; max turns is ignored",
    );
    warn(
        options.permissions == Permissions::Ask,
        "nobody can be asked in a one-shot turn; running read-only",
    );
    warn(
        options.thinking == Some(Thinking::Off),
        "codex's models always think; using the lowest level",
    );
    warn(
        options.prompt_commands == PromptCommands::On,
        "codex exec knows no slash commands and no @file; the prompt is sent as typed",
    );
    if let Some(text) = &options.system_prompt {
        let hash = memo::hash(text);
        let differs = |memo: &Memo| memo.system_hash.as_ref() != Some(&hash);
        warn(
            launch.open.memo().is_some_and(differs),
            "codex takes a system prompt only when a session begins; this one is ignored",
        );
        warn(
            matches!(SystemPrompt::of(launch), SystemPrompt::BeforePrompt(_)),
            "the system prompt is too long for an argument; it goes before the prompt",
        );
    }
    warn(
        form == Form::Default && options.cwd.to_str().is_none(),
        "the name of the working directory is not UTF-8, so codex cannot be told \
         whether to obey its settings",
    );
    warnings
}

//! The settings that Ostler gives OpenCode for one turn, and the variable that
//! carries them.
//!
//! The CLI merges its settings from many places, the later over the earlier:
//! the user's own file, `OPENCODE_CONFIG`, the project's files, then
//! `OPENCODE_CONFIG_CONTENT`. Lists of instructions add up, so a system prompt
//! disturbs nobody. Permissions do not hold against an agent's own rules, which
//! always come last; only an agent of our own is as strict as it looks.

use serde_json::{Map, Value, json};

use crate::{
    agent::{Launch, command_line::warn_if_refused},
    event::Mode,
    request::{Options, Permissions},
};

/// The agent that has the rules of a turn which may not do everything.
pub(super) const AGENT: &str = "ostler";

/// The tools that look but do not touch.
const READ_ONLY_TOOLS: &[&str] = &["read", "grep", "glob", "list", "todowrite"];

/// The names that a permission has beside those of other agents for the same.
/// Everything that changes a file is one permission.
const TOOL_NAMES: &[(&str, &str)] = &[
    ("bash", "bash"),
    ("shell", "bash"),
    ("read", "read"),
    ("edit", "edit"),
    ("write", "edit"),
    ("multiedit", "edit"),
    ("patch", "edit"),
    ("apply_patch", "edit"),
    ("grep", "grep"),
    ("glob", "glob"),
    ("list", "list"),
    ("ls", "list"),
    ("webfetch", "webfetch"),
    ("websearch", "websearch"),
    ("task", "task"),
    ("skill", "skill"),
    ("todowrite", "todowrite"),
];

/// What the CLI is to be told.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Settings {
    /// The settings, empty when there is nothing to say.
    pub(super) content: Map<String, Value>,
    /// The text for the system prompt, as a file in the run folder.
    pub(super) system_prompt: Option<String>,
    /// The rules of our own agent, when the turn needs one.
    pub(super) rules: Option<Map<String, Value>>,
    /// What could not be done as asked.
    pub(super) warnings: Vec<String>,
}

/// How the settings reach the CLI. A variable that the operator names is the
/// operator's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Carrier {
    /// `OPENCODE_CONFIG_CONTENT`.
    Content,
    /// A file in the run folder, named by `OPENCODE_CONFIG`.
    File,
    /// Neither is free.
    None,
}

impl Carrier {
    pub(super) fn of(options: &Options) -> Self {
        if !names(options, "OPENCODE_CONFIG_CONTENT") {
            Self::Content
        } else if !names(options, "OPENCODE_CONFIG") {
            Self::File
        } else {
            Self::None
        }
    }
}

/// Whether the operator says something about a variable.
pub(super) fn names(options: &Options, variable: &str) -> bool {
    options.env.iter().any(|(name, _)| name == variable)
}

/// Makes the settings of a turn.
pub(super) fn settings(launch: &Launch<'_>) -> Settings {
    let options = launch.options;
    let mut warnings = Vec::new();
    let rules = rules(options, launch.mode, &mut warnings);
    let mut content = Map::new();
    let system_prompt = options.system_prompt.clone().filter(|text| !text.is_empty());
    if system_prompt.is_some() {
        let path = system_prompt_path(launch);
        content.insert("instructions".to_owned(), json!([path]));
    }
    if let Some(rules) = &rules {
        let agent = json!({ AGENT: { "mode": "primary", "permission": rules } });
        content.insert("agent".to_owned(), agent);
    }
    if is_offline_without_model(options) {
        content.insert("disabled_providers".to_owned(), json!(["opencode"]));
    }
    Settings { content, system_prompt, rules, warnings }
}

/// Where the file with the system prompt lies.
pub(super) fn system_prompt_path(launch: &Launch<'_>) -> String {
    launch.run_dir.join("system-prompt.md").to_string_lossy().into_owned()
}

/// Writes the settings down so that nothing in them is replaced.
///
/// The CLI looks for `{env:NAME}` and `{file:path}` in the text before it reads
/// it as JSON. In JSON a brace is followed by those words inside a string only.
pub(super) fn text(content: &Map<String, Value>) -> String {
    let text = Value::Object(content.clone()).to_string();
    text.replace("{env:", "\\u007benv:").replace("{file:", "\\u007bfile:")
}

/// With a home of its own and no other provider the CLI would send the prompt
/// to a hosted service, unasked. Who names that service or its key asks for it.
fn is_offline_without_model(options: &Options) -> bool {
    let is_asked_for = options.model.as_deref().is_some_and(|model| model.starts_with("opencode/"))
        || names(options, "OPENCODE_API_KEY");
    options.home.is_some() && !is_asked_for
}

/// Returns the rules of a turn that may not use every tool.
///
/// The last rule that matches counts. The star sorts before every letter, so
/// the refusal of everything comes first. The known tools are refused by name as
/// well: merged into somebody else's rules, a name keeps its place and gets our
/// word, while theirs would stand behind our star.
fn rules(options: &Options, mode: Mode, warnings: &mut Vec<String>) -> Option<Map<String, Value>> {
    if options.permissions == Permissions::Ask && mode == Mode::Warm {
        return Some(asking_rules(options));
    }
    let is_bypass = options.permissions == Permissions::Bypass;
    if is_bypass && options.allowed_tools.is_none() {
        return None;
    }
    let mut rules = Map::new();
    rules.insert("*".to_owned(), json!("deny"));
    for (_, permission) in TOOL_NAMES {
        rules.insert((*permission).to_owned(), json!("deny"));
    }
    // A place outside of the directory, and a call that repeats itself, are
    // asked about on their own. An answer of no would end the turn; a rule lets
    // the model go on without.
    let aside = if is_bypass { "allow" } else { "deny" };
    for name in ["external_directory", "doom_loop"] {
        rules.insert(name.to_owned(), json!(aside));
    }
    match &options.allowed_tools {
        None => {
            for tool in READ_ONLY_TOOLS {
                rules.insert((*tool).to_owned(), json!("allow"));
            }
        }
        Some(tools) => {
            let mut refused = Vec::new();
            for rule in tools {
                let (name, pattern) = tool_and_pattern(rule);
                if is_bypass || READ_ONLY_TOOLS.contains(&name) {
                    allow(&mut rules, name, pattern);
                } else {
                    refused.push(rule.as_str());
                }
            }
            warn_if_refused(warnings, &refused);
        }
    }
    if !is_bypass && rules.get("read").is_some_and(|action| action == "allow") {
        // The CLI would ask before it reads a file of secrets.
        let secrets = json!({
            "*": "allow", "*.env": "deny", "*.env.*": "deny", "*.env.example": "allow",
        });
        rules.insert("read".to_owned(), secrets);
    }
    Some(rules)
}

/// Returns the rules of a turn in which somebody is asked about everything that
/// does more than look. What is not among the tools that the operator names is
/// refused without asking.
fn asking_rules(options: &Options) -> Map<String, Value> {
    let mut rules = Map::new();
    let otherwise = if options.allowed_tools.is_some() { "deny" } else { "ask" };
    rules.insert("*".to_owned(), json!(otherwise));
    for (_, permission) in TOOL_NAMES {
        rules.insert((*permission).to_owned(), json!(otherwise));
    }
    for name in ["external_directory", "doom_loop"] {
        rules.insert(name.to_owned(), json!("ask"));
    }
    let action = |name: &str| if READ_ONLY_TOOLS.contains(&name) { "allow" } else { "ask" };
    match &options.allowed_tools {
        None => {
            for tool in READ_ONLY_TOOLS {
                rules.insert((*tool).to_owned(), json!("allow"));
            }
            rules.insert("question".to_owned(), json!("allow"));
        }
        Some(tools) => {
            for rule in tools {
                let (name, pattern) = tool_and_pattern(rule);
                permit(&mut rules, name, pattern, action(name));
            }
        }
    }
    if rules.get("read").is_some_and(|action| action == "allow") {
        let secrets = json!({
            "*": "allow", "*.env": "ask", "*.env.*": "ask", "*.env.example": "allow",
        });
        rules.insert("read".to_owned(), secrets);
    }
    rules
}

fn allow(rules: &mut Map<String, Value>, name: &str, pattern: Option<String>) {
    permit(rules, name, pattern, "allow");
}

fn permit(rules: &mut Map<String, Value>, name: &str, pattern: Option<String>, how: &str) {
    let Some(pattern) = pattern else {
        rules.insert(name.to_owned(), json!(how));
        return;
    };
    match rules.get_mut(name) {
        Some(Value::String(action)) if action == how => {}
        Some(Value::Object(patterns)) => {
            patterns.insert(pattern, json!(how));
        }
        _ => {
            rules.insert(name.to_owned(), json!({ "*": "deny", pattern: how }));
        }
    }
}

/// Splits `Bash(git:*)` into the permission and its pattern, `git *`. A name
/// that is not known, such as that of an MCP tool, stays as it is.
fn tool_and_pattern(rule: &str) -> (&str, Option<String>) {
    let (name, pattern) = match rule.split_once('(') {
        Some((name, rest)) => (name, Some(rest.strip_suffix(')').unwrap_or(rest))),
        None => (rule, None),
    };
    let known = TOOL_NAMES.iter().find(|(word, _)| name.eq_ignore_ascii_case(word));
    let name = known.map_or(name, |(_, permission)| permission);
    (name, pattern.map(|pattern| pattern.replace(":*", " *")))
}

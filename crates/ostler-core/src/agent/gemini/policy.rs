//! Which tools are allowed: a file of rules for the CLI's policy engine.
//!
//! The approval mode alone does not hold. In plan mode, with nobody to ask, the
//! model may write a plan, leave the mode by itself, and may then do anything;
//! and a repository's own rules count for more than the mode's. Rules of a file
//! that is named on the command line count for more than both, and a tool that
//! is denied there is not even offered.

use std::fmt::Write as _;

use crate::{
    agent::command_line::warn_if_refused,
    request::{Options, Permissions},
};

/// The tools that look but do not touch. The last one only names what the
/// agent is about.
const READ_ONLY_TOOLS: &[&str] =
    &["list_directory", "read_file", "read_many_files", "grep_search", "glob", "update_topic"];

/// The one tool whose rules can name the start of a command.
const SHELL: &str = "run_shell_command";

/// The rules for a run, and what could not be done as asked.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Policy {
    /// The file; none when everything is allowed.
    pub(super) rules: Option<String>,
    pub(super) warnings: Vec<String>,
}

impl Policy {
    pub(super) fn of(options: &Options) -> Self {
        let read_only = options.permissions != Permissions::Bypass;
        let mut warnings = Vec::new();
        let allowed: Vec<&str> = match &options.allowed_tools {
            None if read_only => READ_ONLY_TOOLS.to_vec(),
            None => return Self::default(),
            Some(asked) => {
                let (allowed, refused): (Vec<&str>, Vec<&str>) = asked
                    .iter()
                    .map(String::as_str)
                    .partition(|rule| !read_only || READ_ONLY_TOOLS.contains(rule));
                warn_if_refused(&mut warnings, &refused);
                allowed
            }
        };
        let mut rules = rule("*", None, "deny", 998);
        for asked in allowed {
            let (name, argument) = split(asked);
            let prefix = argument.filter(|_| name == SHELL);
            if argument.is_some() && prefix.is_none() {
                warnings.push(format!("{asked}: the whole tool is allowed"));
            }
            rules.push('\n');
            rules.push_str(&rule(name, prefix, "allow", 999));
        }
        Self { rules: Some(rules), warnings }
    }
}

impl Policy {
    /// The rules for a process that is kept, which asks by itself unless a rule
    /// says otherwise. So *everything* and *ask* have to be said here.
    pub(super) fn of_kept(options: &Options) -> Self {
        match (options.permissions, &options.allowed_tools) {
            (Permissions::Bypass, None) => {
                let all = rule("*", None, "allow", 999) + "allowRedirection = true\n";
                Self { rules: Some(all), warnings: Vec::new() }
            }
            (Permissions::Ask, None) => Self::default(),
            (Permissions::Ask, Some(asked)) => {
                let mut rules = rule("*", None, "deny", 998);
                for one in asked {
                    let (name, argument) = split(one);
                    let is_quiet = READ_ONLY_TOOLS.contains(&name);
                    let decision = if is_quiet { "allow" } else { "ask_user" };
                    rules.push('\n');
                    let prefix = argument.filter(|_| name == SHELL);
                    rules.push_str(&rule(name, prefix, decision, 999));
                }
                Self { rules: Some(rules), warnings: Vec::new() }
            }
            (Permissions::Bypass | Permissions::ReadOnly, _) => Self::of(options),
        }
    }
}

/// Splits `run_shell_command(git status)` into the tool and what is in brackets.
fn split(rule: &str) -> (&str, Option<&str>) {
    match rule.strip_suffix(')').and_then(|rule| rule.split_once('(')) {
        Some((name, argument)) => (name, Some(argument)),
        None => (rule, None),
    }
}

fn rule(tool: &str, prefix: Option<&str>, decision: &str, priority: u32) -> String {
    let mut text = format!("[[rule]]\ntoolName = {}\n", toml_string(tool));
    if let Some(prefix) = prefix {
        // Writing to a string cannot fail.
        writeln!(text, "commandPrefix = {}", toml_string(prefix)).ok();
    }
    writeln!(text, "decision = \"{decision}\"\npriority = {priority}").ok();
    text
}

/// Encodes text as a TOML string. JSON's strings are TOML's, except that TOML
/// does not take a bare DEL.
fn toml_string(text: &str) -> String {
    serde_json::Value::from(text).to_string().replace('\u{7f}', "\\u007F")
}

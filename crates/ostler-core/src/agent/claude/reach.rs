//! How far Claude's tools reach: which there are, and which are approved.

use crate::{
    agent::{
        CommandLine, Launch,
        command_line::{push, warn_if_refused},
    },
    event::Mode,
    request::Permissions,
};

/// The tools that look but do not touch. They stay inside the working directory:
/// reading elsewhere needs an approval, which nobody gives.
const READ_ONLY_TOOLS: [&str; 3] = ["Read", "Grep", "Glob"];

/// What the tools may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reach {
    /// Everything, unasked.
    All,
    /// What somebody allows, each time.
    Asked,
    /// Look.
    ReadOnly,
}

impl Reach {
    /// Only a process that is kept can ask.
    fn of(launch: &Launch<'_>) -> Self {
        match (launch.options.permissions, launch.mode) {
            (Permissions::Bypass, _) => Self::All,
            (Permissions::Ask, Mode::Warm) => Self::Asked,
            (Permissions::Ask, Mode::OneShot) | (Permissions::ReadOnly, _) => Self::ReadOnly,
        }
    }
}

/// Restricts the tools. `--allowedTools` alone would only approve them. Nothing is
/// approved beforehand where somebody is asked, nor where a turn may only look: a
/// rule such as `Read(//**)` would open everything outside the working directory.
pub(super) fn add_tools(launch: &Launch<'_>, line: &mut CommandLine) {
    let reach = Reach::of(launch);
    let Some(asked) = &launch.options.allowed_tools else {
        if reach == Reach::ReadOnly {
            push(&mut line.args, ["--tools", &READ_ONLY_TOOLS.join(",")]);
        }
        return;
    };
    let (allowed, refused): (Vec<&str>, Vec<&str>) = asked
        .iter()
        .map(String::as_str)
        .partition(|rule| reach != Reach::ReadOnly || READ_ONLY_TOOLS.contains(&tool_name(rule)));
    warn_if_refused(&mut line.warnings, &refused);
    for rule in allowed.iter().filter(|_| reach == Reach::All) {
        push(&mut line.args, ["--allowedTools", rule]);
    }
    // A rule such as `Bash(git:*)` is no tool name and would remove the tool.
    let mut names: Vec<&str> = allowed.iter().map(|rule| tool_name(rule)).collect();
    names.dedup();
    push(&mut line.args, ["--tools", &names.join(",")]);
    let weaker = match reach {
        Reach::All => Some("permissions are bypassed, so the whole tool is allowed"),
        Reach::ReadOnly => Some("the whole tool is allowed, inside the working directory"),
        Reach::Asked => None,
    };
    if let Some(rule) = allowed.iter().find(|rule| tool_name(rule) != **rule)
        && let Some(weaker) = weaker
    {
        line.warnings.push(format!("{rule}: {weaker}"));
    }
}

fn tool_name(rule: &str) -> &str {
    rule.split_once('(').map_or(rule, |(name, _)| name)
}

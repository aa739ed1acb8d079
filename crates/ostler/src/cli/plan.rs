//! `--dry-run`: what would be run, without running it.

use std::ffi::OsStr;

use ostler_core::{
    agent::{Stdin, StopStep, http::ServerAddress},
    cli_agent::{CliAgent, Plan, ProcessPlan, StartError},
    request::TurnRequest,
};
use serde_json::{Value, json};

use super::{Exit, turn_args::OutputArg};
use crate::ui::Ui;

/// Prints the plan for a request.
pub(crate) fn print(
    agent: &CliAgent,
    request: &TurnRequest,
    output: OutputArg,
    ui: &mut Ui,
) -> Exit {
    let plan = match agent.plan(request) {
        Ok(plan) => plan,
        Err(error) => {
            ui.notice(&format!("ostler: {error}"));
            return match error {
                StartError::Binary(_) | StartError::Server(_) => Exit::NotRunnable,
                StartError::Request(_)
                | StartError::Launch(_)
                | StartError::Transcript { .. }
                | StartError::ShuttingDown => Exit::Usage,
            };
        }
    };
    let (value, for_people) = match &plan {
        Plan::Process(process) => {
            let value = describe(agent, request, process);
            let text = for_people(&value);
            (value, text)
        }
        Plan::Server { server, prompt, warnings } => {
            let value = describe_server(agent, request, server, prompt, warnings);
            let text = server_for_people(&value);
            (value, text)
        }
    };
    let text = match output {
        OutputArg::Json | OutputArg::StreamJson => value.to_string(),
        OutputArg::Text => for_people,
    };
    match ui.line(&text) {
        Ok(()) => Exit::Answered,
        Err(_) => Exit::Failed,
    }
}

/// Describes a plan. Values of variables are left out: some are secret.
fn describe(agent: &CliAgent, request: &TurnRequest, plan: &ProcessPlan) -> Value {
    let text = |word: &OsStr| word.to_string_lossy().into_owned();
    let argv: Vec<_> = std::iter::once(text(plan.program.as_os_str()))
        .chain(plan.line.args.iter().map(|word| text(word)))
        .collect();
    let names: Vec<_> = plan.environment.iter().map(|(name, _)| text(name)).collect();
    let files: Vec<_> = plan
        .line
        .files
        .iter()
        .map(|(path, content)| {
            json!({ "path": path.display().to_string(), "text": String::from_utf8_lossy(content) })
        })
        .collect();
    let stdin = match &plan.line.stdin {
        Stdin::Null | Stdin::Open => Value::Null,
        Stdin::Bytes(bytes) => String::from_utf8_lossy(bytes).into_owned().into(),
    };
    let stop: Vec<_> = agent
        .spec()
        .stop
        .iter()
        .map(|step| match step {
            StopStep::CloseStdin { wait } => format!("close stdin {wait:?}"),
            StopStep::Signal { signal, wait } => format!("{} {wait:?}", signal.name()),
        })
        .chain(["kill the process tree".to_owned()])
        .collect();
    json!({
        "agent": agent.spec().name,
        "argv": argv,
        "cwd": request.options.cwd.display().to_string(),
        "environment": names,
        "files": files,
        "stdin": stdin,
        "stop": stop,
        "warnings": plan.line.warnings,
    })
}

/// Describes a turn at a server that somebody else runs. There is no process, so
/// there is nothing of one. The password is left out.
fn describe_server(
    agent: &CliAgent,
    request: &TurnRequest,
    server: &ServerAddress,
    prompt: &str,
    warnings: &[String],
) -> Value {
    json!({
        "agent": agent.spec().name,
        "server": server.url(),
        "user": server.login().map(|login| login.user.as_str()),
        "argv": [],
        "cwd": request.options.cwd.display().to_string(),
        "environment": [],
        "files": [],
        "stdin": null,
        "prompt": prompt,
        "stop": ["abort the turn; the server is left alone"],
        "warnings": warnings,
    })
}

fn server_for_people(value: &Value) -> String {
    let text = |key: &str| value.get(key).and_then(Value::as_str).unwrap_or_default();
    let user = value.get("user").and_then(Value::as_str).unwrap_or("(nobody)");
    let mut lines = vec![
        format!("server       {}", text("server")),
        format!("user         {user}"),
        format!("directory    {}", text("cwd")),
        format!("prompt       {}", text("prompt").trim_end()),
        format!("stop         {}", words(value, "stop").join(", then ")),
    ];
    lines.extend(words(value, "warnings").into_iter().map(|text| format!("warning      {text}")));
    lines.join("\n")
}

fn words<'a>(value: &'a Value, key: &str) -> Vec<&'a str> {
    let list = value.get(key).and_then(Value::as_array);
    list.into_iter().flatten().filter_map(Value::as_str).collect()
}

fn for_people(value: &Value) -> String {
    let words = |key: &str| words(value, key);
    let argv: Vec<_> = words("argv").into_iter().map(quote).collect();
    let stdin = match value.get("stdin").and_then(Value::as_str) {
        Some(text) => text.trim_end().to_owned(),
        None => "(nothing)".to_owned(),
    };
    let mut lines = vec![
        format!("command      {}", argv.join(" ")),
        format!("directory    {}", value.get("cwd").and_then(Value::as_str).unwrap_or_default()),
        format!("environment  {}", words("environment").join(" ")),
        format!("stdin        {stdin}"),
    ];
    for file in value.get("files").and_then(Value::as_array).into_iter().flatten() {
        let part = |key: &str| file.get(key).and_then(Value::as_str).unwrap_or_default();
        lines.push(format!("file         {}: {}", part("path"), part("text").trim_end()));
    }
    lines.push(format!("stop         {}", words("stop").join(", then ")));
    lines.extend(words("warnings").into_iter().map(|text| format!("warning      {text}")));
    lines.join("\n")
}

/// Quotes a word for a POSIX shell, where that is needed.
fn quote(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./=:,@%+".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_quoted_so_that_a_shell_reads_them_back() {
        for (word, quoted) in
            [("--model", "--model"), ("a b", "'a b'"), ("it's", r"'it'\''s'"), ("", "''")]
        {
            assert_eq!(quote(word), quoted);
        }
    }
}

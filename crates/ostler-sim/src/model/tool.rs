//! The CLIs' own tools: which one runs a command or writes a file, and how it
//! wants to be called.
//!
//! The tables are in order of preference; the first tool that the request
//! offers is taken.

use serde_json::{Value, json};

use super::conversation::Tool;
use super::reply::{ToolCall, ToolInput};

/// What the model wants done.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Task<'a> {
    Shell(&'a str),
    /// A command that needs more than a sandbox allows.
    Escalated(&'a str),
    Read(&'a str),
    Write {
        path: &'a str,
        content: &'a str,
    },
}

/// Returns the call that does `task` with the tools on offer, if one can.
pub(crate) fn call(offered: &[Tool], task: Task<'_>) -> Option<ToolCall> {
    match task {
        Task::Shell(command) => {
            let shell = SHELLS.iter().find(|shell| is_offered(offered, shell.tool, shell.takes))?;
            Some(ToolCall { name: shell.tool.to_owned(), input: (shell.input)(command) })
        }
        Task::Escalated(command) => {
            let mut shell = call(offered, Task::Shell(command))?;
            // Only Codex has a word for it; elsewhere whoever is asked decides anyway.
            if let ToolInput::Json(Value::Object(fields)) = &mut shell.input
                && is_offered(offered, &shell.name, "sandbox_permissions")
            {
                fields.insert("sandbox_permissions".to_owned(), json!("require_escalated"));
                fields
                    .insert("justification".to_owned(), json!("It writes outside the workspace."));
            }
            Some(shell)
        }
        Task::Read(path) => {
            let reader = READERS.iter().find(|(tool, takes)| is_offered(offered, tool, takes));
            match reader {
                Some((tool, takes)) => {
                    Some(ToolCall { name: (*tool).to_owned(), input: fields(&[(*takes, path)]) })
                }
                None => call(offered, Task::Shell(&format!("cat {path}"))),
            }
        }
        Task::Write { path, content } => {
            let writer =
                WRITERS.iter().find(|writer| is_offered(offered, writer.tool, writer.takes))?;
            Some(ToolCall { name: writer.tool.to_owned(), input: (writer.input)(path, content) })
        }
    }
}

/// Returns the call that waits on, when `result` says that a command still runs.
pub(crate) fn wait_on(result: &str) -> Option<ToolCall> {
    RUNNING.iter().find_map(|running| {
        let (_, rest) = result.split_once(running.mark)?;
        let id = rest.split_whitespace().next()?;
        Some(ToolCall {
            name: running.tool.to_owned(),
            input: ToolInput::Json((running.input)(id)),
        })
    })
}

/// Returns a call of a tool that no CLI has.
pub(crate) fn unknown() -> ToolCall {
    ToolCall { name: "no_such_tool".to_owned(), input: ToolInput::Json(json!({})) }
}

/// Two CLIs may have tools of the same name, so a parameter must fit as well,
/// as far as the offer tells them.
fn is_offered(offered: &[Tool], name: &str, takes: &str) -> bool {
    offered.iter().any(|tool| {
        tool.name == name
            && (tool.parameters.is_empty()
                || tool.parameters.iter().any(|parameter| parameter == takes))
    })
}

fn fields(fields: &[(&str, &str)]) -> ToolInput {
    let fields = fields.iter().map(|(name, value)| ((*name).to_owned(), json!(value)));
    ToolInput::Json(Value::Object(fields.collect()))
}

struct Shell {
    tool: &'static str,
    /// A parameter by which the tool is known from others of its name.
    takes: &'static str,
    input: fn(&str) -> ToolInput,
}

const SHELLS: &[Shell] = &[
    // Claude. Without the longest time limit it would end a command after two
    // minutes.
    Shell {
        tool: "Bash",
        takes: "command",
        input: |command| {
            ToolInput::Json(json!({
                "command": command,
                "description": DESCRIPTION,
                "timeout": 600_000,
            }))
        },
    },
    // Codex with a classic model. Without the longest yield time a command of
    // more than ten seconds would come back as a running session.
    Shell {
        tool: "exec_command",
        takes: "cmd",
        input: |command| ToolInput::Json(json!({ "cmd": command, "yield_time_ms": YIELD_MS })),
    },
    // Codex with a code-mode model: one tool that runs JavaScript.
    Shell {
        tool: "exec",
        takes: "input",
        input: |command| {
            let arguments = json!({ "cmd": command, "yield_time_ms": YIELD_MS });
            ToolInput::Text(format!(
                "let run = await tools.exec_command({arguments});\n\
                 let output = run.output;\n\
                 while (run.session_id != null) {{\n\
                 \x20 run = await tools.write_stdin({{session_id: run.session_id, yield_time_ms: {YIELD_MS}}});\n\
                 \x20 output += run.output;\n\
                 }}\n\
                 text(output + `exit code ${{run.exit_code}}`);\n"
            ))
        },
    },
    // Gemini
    Shell {
        tool: "run_shell_command",
        takes: "command",
        input: |command| fields(&[("command", command), ("description", DESCRIPTION)]),
    },
    // OpenCode. Without a time limit of its own it would end a command after
    // two minutes.
    Shell {
        tool: "bash",
        takes: "workdir",
        input: |command| {
            ToolInput::Json(json!({
                "command": command, "description": DESCRIPTION, "timeout": 600_000,
            }))
        },
    },
    // Pi
    Shell { tool: "bash", takes: "command", input: |command| fields(&[("command", command)]) },
];

/// The reading tools and the parameter that takes the path: of Claude, Gemini,
/// OpenCode and Pi. Some are there too when commands may not be run; Codex reads
/// with its shell.
const READERS: &[(&str, &str)] =
    &[("Read", "file_path"), ("read_file", "file_path"), ("read", "filePath"), ("read", "path")];

struct Writer {
    tool: &'static str,
    takes: &'static str,
    input: fn(&str, &str) -> ToolInput,
}

const WRITERS: &[Writer] = &[
    // Claude
    Writer {
        tool: "Write",
        takes: "file_path",
        input: |path, content| fields(&[("file_path", path), ("content", content)]),
    },
    // Codex with a classic model
    Writer {
        tool: "apply_patch",
        takes: "input",
        input: |path, content| ToolInput::Text(patch(path, content)),
    },
    // Codex with a code-mode model
    Writer {
        tool: "exec",
        takes: "input",
        input: |path, content| {
            let patch = Value::String(patch(path, content));
            ToolInput::Text(format!("text(await tools.apply_patch({patch}));\n"))
        },
    },
    // Gemini
    Writer {
        tool: "write_file",
        takes: "file_path",
        input: |path, content| fields(&[("file_path", path), ("content", content)]),
    },
    // OpenCode
    Writer {
        tool: "write",
        takes: "filePath",
        input: |path, content| fields(&[("filePath", path), ("content", content)]),
    },
    // Pi
    Writer {
        tool: "write",
        takes: "path",
        input: |path, content| fields(&[("path", path), ("content", content)]),
    },
];

struct Running {
    mark: &'static str,
    tool: &'static str,
    input: fn(&str) -> Value,
}

const RUNNING: &[Running] = &[
    Running {
        mark: "Process running with session ID ",
        tool: "write_stdin",
        input: |id| json!({ "session_id": id.parse::<u64>().ok(), "yield_time_ms": YIELD_MS }),
    },
    Running {
        mark: "Script running with cell ID ",
        tool: "wait",
        input: |id| json!({ "cell_id": id, "yield_time_ms": YIELD_MS }),
    },
];

/// The longest time that Codex waits for a command before it hands control back.
const YIELD_MS: u64 = 30_000;

const DESCRIPTION: &str = "Simulated command";

fn patch(path: &str, content: &str) -> String {
    let lines: String = content.lines().map(|line| format!("+{line}\n")).collect();
    format!("*** Begin Patch\n*** Add File: {path}\n{lines}*** End Patch\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn offered(names: &[&str]) -> Vec<Tool> {
        let tool = |name: &&str| Tool { name: (*name).to_owned(), parameters: Vec::new() };
        names.iter().map(tool).collect()
    }

    #[test]
    fn each_cli_gets_its_own_shell_tool() {
        let shell = |names| call(&offered(names), Task::Shell("echo 'hi'"));
        let claude = shell(&["Agent", "Bash", "Write"]).expect("a call");
        assert_eq!(claude.name, "Bash");
        let codex = shell(&["exec_command", "apply_patch"]).expect("a call");
        assert_eq!(
            codex.input,
            ToolInput::Json(json!({ "cmd": "echo 'hi'", "yield_time_ms": 30_000 }))
        );
        let code_mode = shell(&["exec", "wait"]).expect("a call");
        let ToolInput::Text(script) = code_mode.input else { panic!("JavaScript is text") };
        assert!(script.contains(r#"tools.exec_command({"cmd":"echo 'hi'""#), "{script}");
        assert_eq!(shell(&["Read"]), None);
    }

    #[test]
    fn a_file_is_read_with_the_reading_tool_or_else_with_the_shell() {
        let read = |names| call(&offered(names), Task::Read("a.txt")).expect("a call");
        assert_eq!(read(&["Bash", "Read"]).input, ToolInput::Json(json!({ "file_path": "a.txt" })));
        assert_eq!(read(&["exec_command"]).name, "exec_command");
        assert_eq!(read(&["bash", "grep"]).name, "bash");
        assert_eq!(call(&offered(&["Grep"]), Task::Read("a.txt")), None);
    }

    #[test]
    fn tools_of_the_same_name_are_told_apart_by_a_parameter() {
        let offer = |name: &str, parameters: &[&str]| Tool {
            name: name.to_owned(),
            parameters: parameters.iter().map(|&name| name.to_owned()).collect(),
        };
        let opencode = [
            offer("bash", &["command", "timeout", "workdir"]),
            offer("read", &["filePath", "limit"]),
            offer("write", &["content", "filePath"]),
        ];
        let pi = [
            offer("bash", &["command", "timeout"]),
            offer("read", &["limit", "path"]),
            offer("write", &["content", "path"]),
        ];
        let json = |offered: &[Tool], task| match call(offered, task).expect("a call").input {
            ToolInput::Json(value) => value,
            ToolInput::Text(text) => panic!("no JSON: {text}"),
        };
        assert_eq!(json(&opencode, Task::Shell("ls"))["timeout"], 600_000);
        assert_eq!(json(&pi, Task::Shell("ls")), json!({ "command": "ls" }));
        assert_eq!(json(&opencode, Task::Read("/a")), json!({ "filePath": "/a" }));
        assert_eq!(json(&pi, Task::Read("/a")), json!({ "path": "/a" }));
        let write = Task::Write { path: "/a", content: "x" };
        assert_eq!(json(&opencode, write), json!({ "filePath": "/a", "content": "x" }));
        assert_eq!(json(&pi, write), json!({ "path": "/a", "content": "x" }));
    }

    #[test]
    fn a_command_that_still_runs_is_waited_for() {
        let call = wait_on("Wall time: 30\nProcess running with session ID 417\nOutput:\n");
        let call = call.expect("a call");
        assert_eq!(call.name, "write_stdin");
        assert_eq!(
            call.input,
            ToolInput::Json(json!({ "session_id": 417, "yield_time_ms": 30_000 }))
        );
        assert_eq!(wait_on("Process exited with code 0\n"), None);
    }

    #[test]
    fn a_patch_adds_every_line() {
        let call =
            call(&offered(&["apply_patch"]), Task::Write { path: "a.txt", content: "one\ntwo\n" });
        assert_eq!(
            call.expect("a call").input,
            ToolInput::Text(
                "*** Begin Patch\n*** Add File: a.txt\n+one\n+two\n*** End Patch\n".to_owned()
            )
        );
    }
}

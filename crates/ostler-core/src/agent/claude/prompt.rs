//! Claude's prompts, put so that they are text and nothing else.

use serde_json::json;

use crate::{
    agent::Launch,
    request::{Options, PromptCommands},
    template::MAX_ARGUMENT_BYTES,
};

/// The prompt as one line of input. The CLI reads a leading slash as a command
/// of its own; a message marked as composed by a client is only text. The mark
/// also leaves out context that the CLI attaches, so only those prompts carry
/// it that need it. A message with an id is answered by results that name it.
pub(super) fn user_message(prompt: &str, options: &Options, id: Option<&str>) -> Vec<u8> {
    let mut message = json!({
        "type": "user",
        "message": {"role": "user", "content": prompt},
        "parent_tool_use_id": null,
    });
    if let Some(fields) = message.as_object_mut() {
        if is_slash_command(prompt, options) {
            fields.insert("client_composed".to_owned(), json!(true));
        }
        if let Some(id) = id {
            fields.insert("uuid".to_owned(), json!(id));
        }
    }
    format!("{message}\n").into_bytes()
}

/// The prompt as plain text. There is no mark here, but a line break before the
/// slash keeps it from being a command; the model sees that line break.
pub(super) fn plain_input(launch: &Launch<'_>) -> Vec<u8> {
    match launch.options.prompt_commands {
        PromptCommands::Off => without_slash(launch.prompt).into_bytes(),
        PromptCommands::On => launch.prompt.as_bytes().to_vec(),
    }
}

/// Returns a text that does not begin with a slash.
pub(super) fn without_slash(text: &str) -> String {
    let before = if text.starts_with('/') { "\n" } else { "" };
    format!("{before}{text}")
}

/// Only a slash in the very first place counts: white space before it is enough.
fn is_slash_command(prompt: &str, options: &Options) -> bool {
    options.prompt_commands == PromptCommands::Off && prompt.starts_with('/')
}

/// Words such as `doctor` are safe: after `-p` they are no subcommands.
pub(super) fn is_safe_argument(prompt: &str) -> bool {
    prompt.len() <= MAX_ARGUMENT_BYTES
        && !prompt.is_empty()
        && !prompt.starts_with(['-', '@', '/'])
        && !prompt.contains('\0')
}

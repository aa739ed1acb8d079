//! Claude's prompts, put so that they are text and nothing else.

use serde_json::json;

use crate::{agent::Launch, request::PromptCommands, template::MAX_ARGUMENT_BYTES};

/// The prompt as the one line of input. The CLI reads a leading slash as a
/// command of its own; a message marked as composed by a client is only text.
/// The mark also leaves out context that the CLI attaches, so only those
/// prompts carry it that need it.
pub(super) fn user_message(launch: &Launch<'_>) -> Vec<u8> {
    let mut message = json!({
        "type": "user",
        "message": {"role": "user", "content": launch.prompt},
        "parent_tool_use_id": null,
    });
    if let (true, Some(fields)) = (is_slash_command(launch), message.as_object_mut()) {
        fields.insert("client_composed".to_owned(), json!(true));
    }
    format!("{message}\n").into_bytes()
}

/// The prompt as plain text. There is no mark here, but a line break before the
/// slash keeps it from being a command; the model sees that line break.
pub(super) fn plain_input(launch: &Launch<'_>) -> Vec<u8> {
    let before = if is_slash_command(launch) { "\n" } else { "" };
    format!("{before}{}", launch.prompt).into_bytes()
}

/// Only a slash in the very first place counts: white space before it is enough.
fn is_slash_command(launch: &Launch<'_>) -> bool {
    launch.options.prompt_commands == PromptCommands::Off && launch.prompt.starts_with('/')
}

/// Words such as `doctor` are safe: after `-p` they are no subcommands.
pub(super) fn is_safe_argument(prompt: &str) -> bool {
    prompt.len() <= MAX_ARGUMENT_BYTES
        && !prompt.is_empty()
        && !prompt.starts_with(['-', '@', '/'])
        && !prompt.contains('\0')
}

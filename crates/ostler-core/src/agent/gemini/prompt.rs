//! What is sent as the prompt.
//!
//! The CLI has no flag for a system prompt and none for a thinking level, so
//! both are words around the prompt. And it reads commands and references into
//! a prompt wherever it comes from; what stops that is visible to the model:
//! one blank before a leading slash, one backslash before an `@`.

use crate::{
    agent::{
        Launch,
        prompt::{with_words, without_command},
    },
    request::{Options, PromptCommands},
    template::MAX_ARGUMENT_BYTES,
};

/// Words that the CLI takes for one of its subcommands.
const SUBCOMMANDS: &[&str] =
    &["mcp", "extensions", "extension", "skills", "skill", "hooks", "hook", "gemma"];

/// What cannot stand in a reference to a file.
const NOT_IN_A_PATH: &[char] =
    &[' ', '\t', '\n', '\r', ',', ';', '!', '?', '(', ')', '[', ']', '{', '}'];

/// Returns the whole text that the CLI gets.
pub(super) fn text(launch: &Launch<'_>) -> String {
    let options = launch.options;
    let was_sent = launch.open.memo().is_some_and(|memo| memo.system_sent);
    let text = with_words(launch.prompt, options, was_sent);
    match options.prompt_commands {
        PromptCommands::On => text,
        PromptCommands::Off => as_plain_text(&text),
    }
}

/// Returns the whole text that the CLI gets when it is kept running. It reads no
/// references then, but commands with a dollar as well, and blanks before them
/// do not count; a blank without a width does.
pub(super) fn for_chat(prompt: &str, options: &Options, was_sent: bool) -> String {
    without_command(with_words(prompt, options, was_sent), options, &['/', '$'])
}

/// Returns the text so that nothing in it is a command or a reference.
///
/// A reference need not name a file: for want of one, the first file whose name
/// holds the word is taken, and a folder is read whole.
pub(super) fn as_plain_text(text: &str) -> String {
    let mut result = String::with_capacity(text.len() + 1);
    if text.starts_with('/') {
        result.push(' ');
    }
    let mut before = None;
    for (at, c) in text.char_indices() {
        if c == '@' && before != Some('\\') && begins_path(text.get(at + 1..).unwrap_or_default()) {
            result.push('\\');
        }
        result.push(c);
        before = Some(c);
    }
    result
}

/// Returns whether the CLI would read on after an `@`: a dot counts only when
/// it does not end the sentence.
fn begins_path(rest: &str) -> bool {
    let mut chars = rest.chars();
    match chars.next() {
        None => false,
        Some('.') => !matches!(chars.next(), None | Some(' ' | '\t' | '\n' | '\r')),
        Some(c) => !NOT_IN_A_PATH.contains(&c),
    }
}

/// Returns whether the CLI takes the text for a prompt when it stands among the
/// arguments: numbers are rewritten there, quotes stripped, and a lone word may
/// be a subcommand.
pub(super) fn is_safe_argument(prompt: &str) -> bool {
    prompt.len() <= MAX_ARGUMENT_BYTES
        && prompt.starts_with(char::is_alphabetic)
        && !prompt.contains('\0')
        && !SUBCOMMANDS.contains(&prompt)
}

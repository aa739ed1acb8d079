//! What is put around a prompt for agents that have no other place for it.

use crate::request::{Options, PromptCommands, Thinking};

/// Returns a prompt with the words that belong to it: before it the system
/// prompt, unless the session got it already, and behind it those that ask for
/// a level of thinking.
pub(crate) fn with_words(prompt: &str, options: &Options, was_sent: bool) -> String {
    let system = options.system_prompt.as_deref().filter(|text| !was_sent && !text.is_empty());
    let cue = options.thinking.and_then(cue);
    let parts: Vec<&str> = system.into_iter().chain([prompt]).chain(cue).collect();
    parts.join("\n\n")
}

/// Returns a text so that it does not begin like a command: where it does, with
/// a blank without a width before it, which agents do not strip as others.
pub(crate) fn without_command(text: String, options: &Options, signs: &[char]) -> String {
    let is_blank = |c: char| c.is_whitespace() || c == '\u{feff}';
    let is_command = text.trim_start_matches(is_blank).starts_with(signs);
    match options.prompt_commands {
        PromptCommands::Off if is_command => format!("\u{200b}{text}"),
        PromptCommands::Off | PromptCommands::On => text,
    }
}

/// Returns the words that ask for a level of thinking; there are none for less.
fn cue(level: Thinking) -> Option<&'static str> {
    match level {
        Thinking::Off | Thinking::Minimal => None,
        Thinking::Low => Some("Think before you answer."),
        Thinking::Medium => Some("Think hard before you answer."),
        Thinking::High => Some("Think very hard before you answer."),
    }
}

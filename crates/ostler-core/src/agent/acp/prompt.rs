//! What is sent as the prompt.
//!
//! The protocol has no place for a system prompt, so it goes before the first
//! prompt of a session. And agents take commands in prompts, some of which
//! change what they may do: what begins like one gets a blank without a width
//! before it, which they do not strip.

use crate::request::{Options, PromptCommands, Thinking};

/// The signs with which commands begin.
const SIGNS: &[char] = &['/', '!', '$'];

/// Returns the whole text that the agent gets.
pub(super) fn text(prompt: &str, options: &Options, was_sent: bool) -> String {
    let system = options.system_prompt.as_deref().filter(|text| !was_sent && !text.is_empty());
    let cue = options.thinking.and_then(cue);
    let parts: Vec<&str> = system.into_iter().chain([prompt]).chain(cue).collect();
    let text = parts.join("\n\n");
    let is_blank = |c: char| c.is_whitespace() || c == '\u{feff}';
    let is_command = text.trim_start_matches(is_blank).starts_with(SIGNS);
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

//! What is sent as the prompt.
//!
//! The protocol has no place for a system prompt, so it goes before the first
//! prompt of a session. And agents take commands in prompts, some of which
//! change what they may do: what begins like one gets a blank without a width
//! before it, which they do not strip.

use crate::{
    agent::prompt::{with_words, without_command},
    request::Options,
};

/// The signs with which commands begin.
const SIGNS: &[char] = &['/', '!', '$'];

/// Returns the whole text that the agent gets.
pub(super) fn text(prompt: &str, options: &Options, was_sent: bool) -> String {
    without_command(with_words(prompt, options, was_sent), options, SIGNS)
}

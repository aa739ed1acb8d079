//! What a played agent answers: a pure function of the prompt and of how many
//! there were. The text always says that no model was behind it.

use super::agent::Agent;
use super::fault::Faults;
use super::opencode;

/// What a turn consists of; each agent dresses it in its own format.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Answer {
    pub(super) tool: Option<Tool>,
    pub(super) text: String,
    /// What is to go wrong on the way.
    pub(super) faults: Faults,
}

impl Answer {
    /// A tool costs a model call of its own.
    pub(super) fn n_model_calls(&self) -> u64 {
        if self.tool.is_some() { 2 } else { 1 }
    }

    /// What is said instead when somebody did not allow the tool.
    pub(super) fn denied_text(&self) -> String {
        self.text.replace(PRETENDED, DENIED)
    }
}

/// A shell command that is only told of; nothing is run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Tool {
    pub(super) command: &'static str,
    pub(super) description: &'static str,
    pub(super) output: &'static str,
}

const PRETENDED: &str = " It pretended to run `echo hi`; nothing was executed.";
const DENIED: &str = " It was not allowed to run `echo hi`.";

const ECHO: Tool = Tool { command: "echo hi", description: "Say hi", output: "hi" };

/// Follows the words `sim:tool`, `sim:history` and `sim:echo=` anywhere in the
/// prompt, and those of faults.
pub(super) fn answer(agent: &str, prompt: &str, n_prompts: usize) -> Answer {
    let mut text = format!("This is Ostler's scripted agent playing {agent}; no model was asked.");
    let mut tool = None;
    let mut faults = Faults::default();
    for word in prompt.split_whitespace() {
        let word = word.trim_end_matches(|char: char| !char.is_alphanumeric());
        match word.strip_prefix("sim:") {
            Some("tool") => {
                tool = Some(ECHO);
                text.push_str(PRETENDED);
            }
            Some("history") => {
                text.push_str(&format!(" Prompts in this session so far: {n_prompts}."));
            }
            Some("text") | None => {}
            Some(word) if word.starts_with("echo=") => {
                text.push_str(&format!(" You said {}.", word.trim_start_matches("echo=")));
            }
            Some(word) if faults.take(word) => {}
            Some(word) if agent == Agent::OpenCode.name() && opencode::is_word(word) => {}
            Some(other) => text.push_str(&format!(" It cannot play `sim:{other}`.")),
        }
    }
    text.push_str(&format!(" Your prompt has {} characters.", prompt.chars().count()));
    Answer { tool, text, faults }
}

/// Cuts a text into the pieces in which it is streamed; together they are the
/// text again.
pub(super) fn pieces(text: &str) -> Vec<&str> {
    const WORDS_A_PIECE: usize = 4;
    let mut pieces = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        let end = rest.match_indices(' ').nth(WORDS_A_PIECE - 1).map(|(index, _)| index + 1);
        let (piece, left) = rest.split_at(end.unwrap_or(rest.len()));
        pieces.push(piece);
        rest = left;
    }
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_answer_says_that_it_is_scripted() {
        let answer = answer("claude", "hé", 1);
        let expected = "This is Ostler's scripted agent playing claude; no model was asked. \
                        Your prompt has 2 characters.";
        assert_eq!(answer, Answer { tool: None, text: expected.into(), faults: Faults::default() });
    }

    #[test]
    fn words_in_the_prompt_choose_what_is_played() {
        let both = answer("codex", "do sim:tool, then sim:history.", 3);
        assert_eq!(both.tool, Some(ECHO));
        assert_eq!(both.n_model_calls(), 2);
        assert!(both.text.contains("so far: 3."), "{}", both.text);
        let unknown = answer("codex", "sim:flood", 1);
        assert!(unknown.text.contains("cannot play `sim:flood`"), "{}", unknown.text);
        assert_eq!(answer("codex", "xsim:tool sim :tool", 1).tool, None);
        let echoed = answer("pi", "sim:echo=c3-17, sim:echo=b", 1);
        assert!(echoed.text.contains(" You said c3-17. You said b."), "{}", echoed.text);
    }

    #[test]
    fn the_pieces_of_a_text_are_the_text() {
        for text in ["", "one", "one two three four five", "  é  ü   x y z ", "a b c d "] {
            assert_eq!(pieces(text).concat(), text);
        }
        assert_eq!(pieces("one two three four five"), ["one two three four ", "five"]);
    }
}

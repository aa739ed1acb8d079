//! A request in wire-neutral form, and the rule for what the user typed in it.
//!
//! CLIs put a lot under the user's role that no user typed: reminders, the
//! environment, project instructions, notes that ask the model to go on. Every
//! text block under that role counts as a prompt unless it has the shape of one
//! of the [`ADDED`] texts. One block is one prompt, not one message, because
//! Claude merges neighbouring user messages when a turn before them failed.

use std::collections::BTreeMap;

use serde_json::Value;

/// A request as a wire hands it to [`Conversation`]'s readers.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Incoming<'a> {
    /// The path without its query.
    pub(crate) path: &'a str,
    pub(crate) headers: &'a BTreeMap<String, String>,
    pub(crate) body: &'a Value,
}

/// Everything that a behaviour may look at.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Conversation {
    /// The CLI's own name for the conversation; empty when it sent none.
    pub(crate) session: String,
    pub(crate) model: String,
    pub(crate) stream: bool,
    /// Whether a stream shall end with what it used; see [`super::wire::Exchange`].
    pub(crate) include_usage: bool,
    /// System and developer instructions, block by block.
    pub(crate) system: Vec<String>,
    pub(crate) entries: Vec<Entry>,
    /// The tools that the CLI offers.
    pub(crate) tools: Vec<Tool>,
    /// Set when the CLI asks for itself and not for the user.
    pub(crate) aside: Option<Aside>,
}

/// A tool on offer.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Tool {
    pub(crate) name: String,
    /// The names of its parameters; empty when the offer does not tell.
    pub(crate) parameters: Vec<String>,
}

impl Tool {
    /// Reads an offer whose field `schema` describes the parameters.
    pub(crate) fn read(offer: &Value, schema: &str) -> Self {
        let properties = offer.get(schema).and_then(|schema| schema.get("properties"));
        Self {
            name: offer.get("name").and_then(Value::as_str).unwrap_or_default().to_owned(),
            parameters: properties
                .and_then(Value::as_object)
                .map(|properties| properties.keys().cloned().collect())
                .unwrap_or_default(),
        }
    }
}

/// A request that a CLI makes beside the turn. It gets an answer whatever the
/// prompt says, so that a word always meets the turn itself.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Aside {
    /// The answer must be JSON that fits this schema.
    Schema(Value),
    /// A title for the conversation.
    Title,
}

/// One text or tool result of the history, oldest first. What the model itself
/// said before does not matter to any behaviour and is left out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Entry {
    User(String),
    ToolResult(String),
}

impl Conversation {
    /// Returns what the user typed, oldest first.
    pub(crate) fn prompts(&self) -> Vec<&str> {
        self.entries.iter().filter_map(typed).collect()
    }

    /// Returns the newest prompt, exactly as it arrived.
    pub(crate) fn newest_prompt(&self) -> Option<&str> {
        self.entries.iter().rev().find_map(typed)
    }

    /// Returns the outputs of the tools that ran since the newest prompt.
    pub(crate) fn results(&self) -> Vec<&str> {
        let mut results: Vec<&str> = self
            .entries
            .iter()
            .rev()
            .take_while(|entry| typed(entry).is_none())
            .filter_map(|entry| match entry {
                Entry::ToolResult(output) => Some(output.as_str()),
                Entry::User(_) => None,
            })
            .collect();
        results.reverse();
        results
    }

    /// Returns the working directory that the CLI told the model about.
    pub(crate) fn working_directory(&self) -> Option<&str> {
        let users = self.entries.iter().filter_map(|entry| match entry {
            Entry::User(text) => Some(text),
            Entry::ToolResult(_) => None,
        });
        self.system.iter().chain(users).find_map(|text| {
            WORKING_DIRECTORY.iter().find_map(|(before, after)| {
                let (_, rest) = text.split_once(before)?;
                rest.split_once(after).map(|(directory, _)| directory.trim())
            })
        })
    }
}

fn typed(entry: &Entry) -> Option<&str> {
    match entry {
        Entry::User(text) if !is_added(text) => Some(text),
        Entry::User(_) | Entry::ToolResult(_) => None,
    }
}

fn is_added(text: &str) -> bool {
    let text = text.trim();
    ADDED.iter().any(|(start, end)| text.starts_with(start) && text.ends_with(end))
}

/// Where the CLIs name the working directory: the text before and after it.
const WORKING_DIRECTORY: &[(&str, &str)] =
    // Claude; Codex and Pi; OpenCode; Gemini.
    &[
        ("Primary working directory: ", "\n"),
        ("<cwd>", "</cwd>"),
        ("\n  Working directory: ", "\n"),
        ("**Workspace Directories:**\n  - ", "\n"),
    ];

/// How texts begin and end that a CLI adds under the user's role.
const ADDED: &[(&str, &str)] = &[
    // Claude: project instructions, reminders, notices of finished tasks.
    ("<system-reminder>", "</system-reminder>"),
    ("<task-notification>", "</task-notification>"),
    ("<local-command-caveat>", "</local-command-caveat>"),
    ("<local-command-stdout>", "</local-command-stdout>"),
    ("<command-name>", ">"),
    ("[Request interrupted by user", "]"),
    // Claude: asks the model to go on after a length stop, an empty answer, a
    // refusal; the behaviour of the prompt before it goes on as well.
    ("Output token limit hit", ""),
    ("Your response was cut off because it exceeded the output token limit", ""),
    ("[Your previous response had no visible output", "]"),
    ("Your response above was stopped by a safety classifier", ""),
    // Codex: environment, project instructions, an interrupted turn.
    ("<environment_context>", "</environment_context>"),
    ("# AGENTS.md instructions", "</INSTRUCTIONS>"),
    ("<user_instructions>", "</user_instructions>"),
    ("<turn_aborted>", "</turn_aborted>"),
    ("<user_shell_command>", "</user_shell_command>"),
    ("<subagent_notification>", "</subagent_notification>"),
    // Gemini: the environment and project instructions.
    ("<session_context>", "</session_context>"),
    // Gemini: asks the model to go on after an empty answer or a loop.
    ("[System: You ", "]"),
    ("System: Potential loop detected.", ""),
    ("Please continue.", "Please continue."),
    // OpenCode: what stands for history that was summed up, and what follows it.
    ("What did we do so far?", "What did we do so far?"),
    ("Continue if you have next steps, or stop and ask", ""),
    ("The previous request exceeded the provider's size limit", ""),
    ("Summarize the task tool output above", ""),
    ("The following tool was executed by the user", "executed by the user"),
    // Pi: the same.
    ("The conversation history before this point was compacted", "</summary>"),
    ("The following is a summary of a branch", "</summary>"),
];

#[cfg(test)]
mod tests {
    use super::*;

    fn user(text: &str) -> Entry {
        Entry::User(text.to_owned())
    }

    fn conversation(entries: Vec<Entry>) -> Conversation {
        Conversation { entries, ..Conversation::default() }
    }

    #[test]
    fn the_newest_typed_text_is_the_prompt_even_when_reminders_follow() {
        let talk = conversation(vec![
            user("first"),
            user("second \n"),
            user("<system-reminder>\nsim:huge\n</system-reminder>\n"),
        ]);
        assert_eq!(talk.newest_prompt(), Some("second \n"));
        assert_eq!(talk.prompts(), ["first", "second \n"]);
    }

    #[test]
    fn a_prompt_that_only_mentions_an_added_text_is_a_prompt() {
        let text = "<system-reminder> is what?";
        assert_eq!(conversation(vec![user(text)]).newest_prompt(), Some(text));
    }

    #[test]
    fn only_results_after_the_newest_prompt_count() {
        let talk = conversation(vec![
            user("one"),
            Entry::ToolResult("old".to_owned()),
            user("two"),
            Entry::ToolResult("new".to_owned()),
            user("<system-reminder>x</system-reminder>"),
            Entry::ToolResult("newer".to_owned()),
        ]);
        assert_eq!(talk.results(), ["new", "newer"]);
    }

    #[test]
    fn the_working_directory_is_read_from_every_cli() {
        let codex = conversation(vec![user(
            "<environment_context>\n  <cwd>/w</cwd>\n</environment_context>",
        )]);
        assert_eq!(codex.working_directory(), Some("/w"));
        let claude = Conversation {
            system: vec![" - Primary working directory: /w x\n - more".to_owned()],
            ..Conversation::default()
        };
        assert_eq!(claude.working_directory(), Some("/w x"));
        for (system, directory) in [
            ("<env>\n  Working directory: /w x\n  Workspace root folder: /\n</env>", "/w x"),
            ("rules\n\n<cwd>\n/w\n</cwd>", "/w"),
            ("<session_context>\n- **Workspace Directories:**\n  - /w\n- **Dir", "/w"),
        ] {
            let talk = Conversation { system: vec![system.to_owned()], ..Conversation::default() };
            assert_eq!(talk.working_directory(), Some(directory));
        }
    }
}

//! What the CLI asks before it runs a tool, and how it is answered.
//!
//! A tool may put several questions to the user at once. They are asked one
//! after the other, and answered together.

use serde_json::{Map, Value, json};

use super::{
    super::{field, tool},
    control::{allow, deny},
};
use crate::{
    agent::{Action, TurnKey},
    permission::{Permission, PermissionKind, Ruling},
};

/// The tool that asks the user something.
const QUESTION_TOOL: &str = "AskUserQuestion";

/// What tools do. Any other is of another kind.
const KINDS: &[(&str, PermissionKind)] = &[
    (QUESTION_TOOL, PermissionKind::Question),
    ("Bash", PermissionKind::Command),
    ("Edit", PermissionKind::Edit),
    ("Glob", PermissionKind::Read),
    ("Grep", PermissionKind::Read),
    ("MultiEdit", PermissionKind::Edit),
    ("NotebookEdit", PermissionKind::Edit),
    ("Read", PermissionKind::Read),
    ("WebFetch", PermissionKind::Network),
    ("WebSearch", PermissionKind::Network),
    ("Write", PermissionKind::Edit),
];

/// The requests that wait for an answer.
#[derive(Debug, Default)]
pub(super) struct Asked {
    open: Vec<Open>,
}

#[derive(Debug)]
struct Open {
    turn: TurnKey,
    /// The CLI's id for it.
    id: String,
    tool: String,
    input: Value,
    questions: Vec<Question>,
    answers: Map<String, Value>,
    /// How many of the questions were answered.
    n_answered: usize,
}

#[derive(Clone, Debug)]
struct Question {
    text: String,
    choices: Vec<String>,
}

impl Asked {
    /// Passes a request on to somebody who can decide it.
    pub(super) fn ask(
        &mut self,
        turn: TurnKey,
        id: &str,
        request: &mut Value,
        out: &mut Vec<Action>,
    ) {
        if self.open.iter().any(|open| open.id == id) {
            return;
        }
        let tool = field::take_text(request, "tool_name").unwrap_or_default();
        let input = request.get_mut("input").map(Value::take).unwrap_or_default();
        let open = Open {
            turn,
            id: id.to_owned(),
            questions: if tool == QUESTION_TOOL { questions(&input) } else { Vec::new() },
            tool,
            input,
            answers: Map::new(),
            n_answered: 0,
        };
        out.push(open.ask());
        self.open.push(open);
    }

    /// Tells the CLI what was decided, or asks the next question.
    pub(super) fn answer(&mut self, request: &str, ruling: &Ruling, out: &mut Vec<Action>) {
        let Some(at) = self.open.iter().position(|open| open.name() == request) else { return };
        match ruling {
            Ruling::Deny { why } => {
                let open = self.open.remove(at);
                deny(&open.id, why, out);
            }
            Ruling::Allow { text } => {
                let mut open = self.open.remove(at);
                open.answered(text.as_deref());
                if open.question().is_some() {
                    out.push(open.ask());
                    self.open.insert(at, open);
                } else {
                    let (id, input) = open.into_input();
                    allow(&id, input, out);
                }
            }
        }
    }

    /// The CLI does not wait any more.
    pub(super) fn withdraw(&mut self, id: &str, out: &mut Vec<Action>) {
        if let Some(at) = self.open.iter().position(|open| open.id == id) {
            let open = self.open.remove(at);
            out.push(Action::Withdraw { turn: open.turn, request: open.name() });
        }
    }

    /// Denies what a turn has left open: nobody can be asked any more.
    pub(super) fn end_turn(&mut self, turn: TurnKey, out: &mut Vec<Action>) {
        self.open.retain(|open| {
            if open.turn == turn {
                deny(&open.id, "the turn is over", out);
            }
            open.turn != turn
        });
    }
}

impl Open {
    /// The name of what is asked now: the request's own for the first question.
    fn name(&self) -> String {
        match self.n_answered {
            0 => self.id.clone(),
            n => format!("{}.{}", self.id, n + 1),
        }
    }

    fn question(&self) -> Option<&Question> {
        self.questions.get(self.n_answered)
    }

    fn ask(&self) -> Action {
        let known = KINDS.iter().find(|(name, _)| *name == self.tool);
        let (title, options) = match self.question() {
            Some(question) => (question.text.clone(), question.choices.clone()),
            None => {
                let subject = tool::subject(&self.tool, &self.input);
                (subject.unwrap_or(&self.tool).to_owned(), Permission::decisions())
            }
        };
        let permission = Permission {
            request: self.name(),
            kind: known.map_or(PermissionKind::Other, |(_, kind)| *kind),
            tool: self.tool.clone(),
            title,
            input: Some(self.input.clone()),
            options,
            expires_at: None,
        };
        Action::Ask { turn: self.turn, permission: Box::new(permission) }
    }

    /// Takes an answer. One that names a choice becomes that choice. To allow
    /// without a text is no answer: the question is left out, which the CLI
    /// tells the model.
    fn answered(&mut self, text: Option<&str>) {
        let text = text.map(str::trim).filter(|text| !text.is_empty());
        if let (Some(question), Some(text)) = (self.question().cloned(), text) {
            let is_it = |choice: &&String| choice.eq_ignore_ascii_case(text);
            let answer = question.choices.iter().find(is_it).map_or(text, String::as_str);
            self.answers.insert(question.text, json!(answer));
        }
        self.n_answered += 1;
    }

    /// Returns the id, and what the tool is to run with.
    fn into_input(mut self) -> (String, Value) {
        if let (false, Some(fields)) = (self.questions.is_empty(), self.input.as_object_mut()) {
            fields.insert("answers".to_owned(), Value::Object(self.answers));
        }
        (self.id, self.input)
    }
}

fn questions(input: &Value) -> Vec<Question> {
    let questions = input.get("questions").and_then(Value::as_array);
    let questions = questions.into_iter().flatten().filter_map(|question| {
        let choices = question.get("options").and_then(Value::as_array);
        let label = |choice: &Value| field::text(choice, "label").map(str::to_owned);
        Some(Question {
            text: field::text(question, "question")?.to_owned(),
            choices: choices.into_iter().flatten().filter_map(label).collect(),
        })
    });
    questions.collect()
}

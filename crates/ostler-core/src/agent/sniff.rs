//! Finds out whether a process prints JSON or plain text, where nobody said.
//!
//! A command line of the operator's own gets no output flag unless its format
//! is set, and a wrapper prints what it likes. So both dialects read along until
//! one line tells which of them is right.

use jiff::Timestamp;
use serde_json::Value;

use super::{Action, Dialect, Input, Launch};
use crate::{
    event::Stream,
    request::{Format, Options},
};

/// How many lines that are no JSON make it plain text.
const MAX_LINES: usize = 200;

/// Makes the agent's dialect, or both of them where the format is not known.
pub(crate) fn dialect(launch: &Launch<'_>) -> Box<dyn Dialect> {
    let is_unsaid = launch.options.template.as_ref().is_some_and(|t| t.format.is_none());
    if !is_unsaid {
        return (launch.spec.dialect)(launch);
    }
    let with = |format: Format| {
        let mut options: Options = launch.options.clone();
        if let Some(template) = &mut options.template {
            template.format = Some(format);
        }
        (launch.spec.dialect)(&Launch { options: &options, ..*launch })
    };
    Box::new(Sniff {
        json: Reader::new(with(Format::StreamJson)),
        text: Reader::new(with(Format::Text)),
        is: None,
        n_lines: 0,
    })
}

struct Sniff {
    json: Reader,
    text: Reader,
    /// Which of them is right, once that is known.
    is: Option<Which>,
    n_lines: usize,
}

#[derive(Clone, Copy)]
enum Which {
    Json,
    Text,
}

/// A dialect and what it would have done.
struct Reader {
    dialect: Box<dyn Dialect>,
    withheld: Vec<Action>,
}

impl Reader {
    fn new(dialect: Box<dyn Dialect>) -> Self {
        Self { dialect, withheld: Vec::new() }
    }
}

impl Dialect for Sniff {
    fn step(&mut self, now: Timestamp, input: Input<'_>, out: &mut Vec<Action>) {
        match self.is {
            Some(Which::Json) => return self.json.dialect.step(now, input, out),
            Some(Which::Text) => return self.text.dialect.step(now, input, out),
            None => {}
        }
        let decision = self.decide(&input);
        // Neither may hold back the end of a process that is to be stopped.
        if matches!(input, Input::Cancel { .. }) {
            out.push(Action::Stop);
            return;
        }
        for reader in [&mut self.json, &mut self.text] {
            reader.dialect.step(now, input.clone(), &mut reader.withheld);
        }
        self.is = decision;
        match decision {
            Some(Which::Json) => out.append(&mut self.json.withheld),
            Some(Which::Text) => out.append(&mut self.text.withheld),
            None => {}
        }
    }
}

impl Sniff {
    fn decide(&mut self, input: &Input<'_>) -> Option<Which> {
        match input {
            Input::Exited(_) => Some(Which::Text),
            Input::Line { from: Stream::Stdout, bytes, .. } => {
                self.n_lines += 1;
                let starts = bytes.trim_ascii_start().first();
                let may_be = matches!(starts, Some(b'{' | b'['));
                if may_be && serde_json::from_slice::<Value>(bytes).is_ok() {
                    return Some(Which::Json);
                }
                (self.n_lines > MAX_LINES).then_some(Which::Text)
            }
            Input::Line { .. }
            | Input::Cancel { .. }
            | Input::Timer(_)
            | Input::Heard(_)
            | Input::Order(_) => None,
        }
    }
}

//! Compares a live turn with what must come, and says what changed. Pure.

use ostler_core::{
    event::Usage,
    failure::{Failure, FailureKind},
};

use super::{
    finding::Level,
    seen::{Seen, cut},
};

/// How many different lines that were not understood are told of.
const MAX_TOLD: usize = 3;

/// What must come of a turn.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Expected<'a> {
    /// The prompt, which must end what reaches the model.
    pub(crate) prompt: &'a str,
    /// What the answer holds.
    pub(crate) answer: &'a str,
    /// What the output of the tool holds, for a turn that uses one.
    pub(crate) tool_output: Option<&'a str>,
    /// The session that is resumed.
    pub(crate) session: Option<&'a str>,
    /// In how many pieces a streamed answer comes at least.
    pub(crate) min_pieces: usize,
}

/// One thing that is not as it must be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Difference {
    pub(crate) level: Level,
    pub(crate) topic: Topic,
    pub(crate) what: String,
}

/// What a difference is about, so that a second turn does not tell it again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Topic {
    /// The turn as a whole.
    End,
    /// What reached the model.
    Model,
    Session,
    Tool,
    Answer,
    Usage,
    Lines,
}

impl Topic {
    pub(crate) fn error(self, what: impl Into<String>) -> Difference {
        Difference { level: Level::Error, topic: self, what: what.into() }
    }

    fn warning(self, what: impl Into<String>) -> Difference {
        Difference { level: Level::Warning, topic: self, what: what.into() }
    }
}

/// Returns all that differs, the cause before its effects.
pub(crate) fn compare(expected: &Expected<'_>, seen: &Seen) -> Vec<Difference> {
    let Some(report) = &seen.report else {
        return vec![Topic::End.error("the turn has no end")];
    };
    let mut found = Vec::new();
    match &report.error {
        Some(failure) => found.push(Topic::End.error(failed(failure, seen))),
        None => {
            found.extend(asked(expected, seen));
            found.extend(session(expected, report.session_id.as_deref()));
            found.extend(tools(expected, seen));
            found.extend(answer(expected, seen, report.response_text.as_deref()));
            found.extend(usage(&report.usage, seen));
        }
    }
    found.extend(unknown(&seen.unknown));
    found
}

/// Says why a turn failed, in words that lead to what changed.
fn failed(failure: &Failure, seen: &Seen) -> String {
    let mut said = cut(failure.response_text());
    if let Some(complaint) = seen.complaint.as_ref().filter(|text| !said.contains(*text)) {
        said.push_str(&format!(" (on standard error: {complaint})"));
    }
    if failure.kind == FailureKind::Timeout {
        let reached = if seen.calls.is_empty() { " and never asked the model" } else { "" };
        return format!("no end in time{reached} ({})", failure.message);
    }
    if !seen.calls.is_empty() {
        return format!("the turn failed ({}): {said}", failure.kind.code());
    }
    if [failure.response_text(), &failure.message, &said].into_iter().any(is_about_flags) {
        return format!("a flag was refused: {said}");
    }
    format!("it ended before it asked the model ({}): {said}", failure.kind.code())
}

/// Whether a text complains of the command line.
fn is_about_flags(text: &str) -> bool {
    let text = text.to_lowercase();
    let verbs = ["unknown", "unexpected", "unrecognized", "unrecognised", "invalid", "no such"];
    let nouns = ["option", "argument", "flag", "subcommand"];
    verbs.iter().any(|verb| nouns.iter().any(|noun| text.contains(&format!("{verb} {noun}"))))
}

fn asked(expected: &Expected<'_>, seen: &Seen) -> Option<Difference> {
    let mut prompts = seen.calls.iter().filter_map(|call| call.prompt.as_deref());
    if seen.calls.is_empty() {
        return Some(Topic::Model.error(
            "it answered without asking the simulated model: the address it was given has no effect",
        ));
    }
    if prompts.clone().any(|prompt| prompt.ends_with(expected.prompt)) {
        return None;
    }
    let arrived = prompts.next().map_or("no prompt at all".to_owned(), cut);
    Some(Topic::Model.error(format!("the prompt reached the model changed: {arrived}")))
}

fn session(expected: &Expected<'_>, told: Option<&str>) -> Option<Difference> {
    match (expected.session, told) {
        (_, None) => Some(Topic::Session.error("no session id")),
        (Some(wanted), Some(told)) if wanted != told => Some(
            Topic::Session.error(format!("it did not resume: session {told} instead of {wanted}")),
        ),
        (Some(_) | None, Some(_)) => None,
    }
}

fn tools(expected: &Expected<'_>, seen: &Seen) -> Vec<Difference> {
    let Some(output) = expected.tool_output else {
        return Vec::new();
    };
    let mut found = Vec::new();
    if seen.tool_uses.is_empty() {
        found.push(Topic::Tool.error("no tool_use event"));
    }
    match seen.tool_results.as_slice() {
        [] => found.push(Topic::Tool.error("no tool_result event")),
        results => {
            if !results.iter().any(|result| result.output.contains(output)) {
                let came = results.first().map(|result| cut(&result.output)).unwrap_or_default();
                found.push(
                    Topic::Tool.error(format!("tool_result without the tool's output: {came:?}")),
                );
            }
            let is_loose = |id: &String| !seen.tool_uses.contains(id);
            if results.iter().any(|result| is_loose(&result.id)) && !seen.tool_uses.is_empty() {
                found.push(Topic::Tool.error("tool_result with an id that no tool_use has"));
            }
        }
    }
    found
}

fn answer(expected: &Expected<'_>, seen: &Seen, told: Option<&str>) -> Vec<Difference> {
    let Some(told) = told.filter(|text| !text.is_empty()) else {
        return vec![Topic::Answer.error("no answer")];
    };
    let mut found = Vec::new();
    if !told.contains(expected.answer) {
        let what = match expected.session {
            Some(_) => "the resumed session has forgotten what was said",
            None => "the answer is not what the model said",
        };
        found.push(Topic::Answer.error(format!("{what}: {:?}", cut(told))));
    }
    let streamed = seen.streamed();
    if streamed.is_empty() {
        found.push(Topic::Answer.error("no output event"));
    } else if !streamed.ends_with(told) {
        found.push(Topic::Answer.error(format!(
            "the streamed text is not the answer: {:?} and {:?}",
            cut(&streamed),
            cut(told)
        )));
    } else if seen.n_pieces() < expected.min_pieces {
        let what = "the text no longer comes in pieces while the model writes";
        found.push(Topic::Answer.warning(what));
    }
    found
}

/// Compares the tokens with those of the calls that were answered.
fn usage(told: &Usage, seen: &Seen) -> Vec<Difference> {
    let charges: Vec<_> = seen.calls.iter().filter_map(|call| call.charge).collect();
    if charges.is_empty() {
        return Vec::new();
    }
    let sum = |part: fn(&ostler_sim::model::Charge) -> u64| charges.iter().map(part).sum::<u64>();
    let wanted = Usage::of_tokens(
        sum(|charge| charge.input),
        sum(|charge| charge.output),
        sum(|charge| charge.cached),
    );
    let pairs = [
        ("input_tokens", told.input_tokens, wanted.input_tokens),
        ("output_tokens", told.output_tokens, wanted.output_tokens),
        ("cached_tokens", told.cached_tokens, wanted.cached_tokens),
        ("total_tokens", told.total_tokens, wanted.total_tokens),
    ];
    let number = |count: Option<u64>| count.map_or("nothing".to_owned(), |n| n.to_string());
    pairs
        .into_iter()
        .filter(|(_, told, wanted)| told != wanted)
        .map(|(name, told, wanted)| {
            Topic::Usage.error(format!(
                "{name} is {} where the model said {}",
                number(told),
                number(wanted)
            ))
        })
        .collect()
}

/// Tells of lines that were not understood: new ones do no harm by themselves.
fn unknown(lines: &[String]) -> Vec<Difference> {
    let mut told: Vec<(&String, usize)> = Vec::new();
    for line in lines {
        match told.iter_mut().find(|(known, _)| kind(known) == kind(line)) {
            Some((_, count)) => *count += 1,
            None => told.push((line, 1)),
        }
    }
    let warn = |(line, count): &(&String, usize)| {
        let times = if *count > 1 { format!(" ({count} like it)") } else { String::new() };
        Topic::Lines.warning(format!("unknown line{times}: {line}"))
    };
    told.iter().take(MAX_TOLD).map(warn).collect()
}

/// Returns what lines of one kind have in common: the start, up to the first value that varies.
fn kind(line: &str) -> &str {
    const HEAD: usize = 30;
    line.char_indices().nth(HEAD).and_then(|(at, _)| line.get(..at)).unwrap_or(line)
}

#[cfg(test)]
mod tests;

//! `doctor --live`: one real turn with a tool, then a second one in the same
//! session, isolated and against the simulated model.

use std::{
    fs, io,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use ostler_core::{CliAgent, Memo, TurnRequest, agent::AgentSpec, registry::Agent as _};

use super::{
    compare::{Difference, Expected, Topic, compare},
    facts,
    finding::{Area, Finding, Level},
    seen::{Call, Seen},
};
use crate::cli::rehearsal::{NOTES, READ, REMEMBER, Stage};

/// What the simulated model says when it remembers both prompts.
const REMEMBERED: &str = "I remember 2 prompts";

/// A live check of one agent.
pub(crate) struct Live<'a> {
    pub(crate) agent: &'a CliAgent,
    pub(crate) stage: &'a Stage,
    /// How long one turn may take.
    pub(crate) timeout: Duration,
    /// Where the raw lines of a turn that differs are kept.
    pub(crate) keep: PathBuf,
}

impl Live<'_> {
    /// Runs both turns; says what differs, or that nothing does.
    pub(crate) async fn check(&self) -> Vec<Finding> {
        let spec = self.agent.spec();
        match self.stage.setting.model_request(spec, READ) {
            Ok(Some(_)) => {}
            Ok(None) => {
                let message = "not tried: it cannot be led to the simulated model";
                return vec![Finding::new(Level::Info, Area::Live, message).about(&spec.name)];
            }
            Err(error) => {
                let message = format!("not tried: its settings could not be written: {error}");
                return vec![Finding::new(Level::Error, Area::Live, message).about(&spec.name)];
            }
        }
        let began = Instant::now();
        let differences = self.both_turns().await;
        if differences.is_empty() {
            self.forget();
            let message = format!(
                "answered, used a tool and resumed its session, in {:.1} s",
                began.elapsed().as_secs_f64()
            );
            return vec![Finding::ok(Area::Live, message).about(&spec.name)];
        }
        let fix = self.fix();
        let finding = |difference: Difference| {
            Finding::new(difference.level, Area::Live, difference.what)
                .about(&spec.name)
                .fix(fix.clone())
        };
        differences.into_iter().map(finding).collect()
    }

    async fn both_turns(&self) -> Vec<Difference> {
        let pieces = if self.agent.spec().caps.supports_streaming { 2 } else { 0 };
        let facts = facts::of(&self.agent.spec().name);
        let shows_what_was_read = facts.is_none_or(|facts| facts.shows_what_was_read);
        let first = Expected {
            prompt: READ,
            answer: NOTES,
            // Of what was read, Gemini shows nothing.
            tool_output: Some(if shows_what_was_read { NOTES } else { "" }),
            session: None,
            min_pieces: pieces,
        };
        let (mut differences, memo) = self.turn(1, &first, None).await;
        let Some(memo) = memo else {
            return differences;
        };
        let id = memo.id.clone();
        let second = Expected {
            prompt: REMEMBER,
            answer: REMEMBERED,
            tool_output: None,
            session: Some(&id),
            min_pieces: pieces,
        };
        let (more, _) = self.turn(2, &second, Some(memo)).await;
        // What the first turn told need not be told again.
        let is_told = |topic| differences.iter().any(|told: &Difference| told.topic == topic);
        let resumed: Vec<_> = more
            .into_iter()
            .filter(|more| !is_told(more.topic))
            .map(|more| Difference { what: format!("in the second turn: {}", more.what), ..more })
            .collect();
        differences.extend(resumed);
        differences
    }

    /// Runs one turn; returns what differs, and what is needed to go on.
    async fn turn(
        &self,
        number: u32,
        expected: &Expected<'_>,
        memo: Option<Memo>,
    ) -> (Vec<Difference>, Option<Memo>) {
        let spec = self.agent.spec();
        let Ok(Some(mut request)) = self.stage.setting.model_request(spec, expected.prompt) else {
            return (Vec::new(), None);
        };
        if let Some(memo) = memo {
            request = request.resume(memo);
        }
        request.timeout = self.timeout;
        request.idle_timeout = self.timeout;
        request.transcript = Some(transcript(&self.stage.setting.folder, spec, number));
        let mut seen = match self.watch(request).await {
            Ok(seen) => seen,
            Err(what) => return (vec![Topic::End.error(what)], None),
        };
        let differences = compare(expected, &seen);
        let report = seen.report.take().filter(|report| report.error.is_none());
        (differences, report.and_then(|report| report.memo))
    }

    async fn watch(&self, request: TurnRequest) -> Result<Seen, String> {
        let before = self.stage.sim.requests().last().map_or(0, |request| request.number);
        let mut turn = self.agent.start(request).await.map_err(|error| error.to_string())?;
        let mut seen = Seen::default();
        while let Some(event) = turn.next().await {
            if event.parent.is_none() {
                seen.add(event.body);
            }
        }
        let requests = self.stage.sim.requests();
        let calls = requests.iter().filter(|request| request.number > before);
        seen.calls = calls.filter_map(|request| Call::of(request)).collect();
        Ok(seen)
    }

    /// Keeps the raw lines, and says what can be done.
    fn fix(&self) -> String {
        let spec = self.agent.spec();
        let tested = format!("use a tested version ({})", spec.tested_versions.join(", "));
        match self.keep_transcripts() {
            Ok(()) => format!(
                "{tested}, and report this with the raw lines, which are in {}",
                transcript(&self.keep, spec, 1).display()
            ),
            Err(error) => format!(
                "{tested}, and report this with `ostler run --agent {} --transcript FILE`; \
                 the raw lines could not be kept: {error}",
                spec.name
            ),
        }
    }

    fn keep_transcripts(&self) -> io::Result<()> {
        self.forget();
        fs::create_dir_all(&self.keep)?;
        for number in [1, 2] {
            let from = transcript(&self.stage.setting.folder, self.agent.spec(), number);
            match fs::copy(from, transcript(&self.keep, self.agent.spec(), number)) {
                // A second turn there only is after a first one that went well.
                Err(error) if error.kind() == io::ErrorKind::NotFound && number > 1 => {}
                other => drop(other?),
            }
        }
        Ok(())
    }

    /// Removes the raw lines of a former check, which are no longer true.
    fn forget(&self) {
        for number in [1, 2] {
            fs::remove_file(transcript(&self.keep, self.agent.spec(), number)).ok();
        }
    }
}

fn transcript(folder: &Path, spec: &AgentSpec, number: u32) -> PathBuf {
    folder.join(format!("{}-{number}.jsonl", spec.name))
}

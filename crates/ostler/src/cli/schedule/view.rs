//! Schedules as they are printed. The names are part of the contract.

use serde::Serialize;

use crate::{
    clock::Millis,
    id::{JobId, ScheduleId},
    schedule::cron::Timetable,
    store::schedules::{NewSchedule, Schedule},
    ui::printable,
};

/// How much of a text is shown in a list.
const SHOWN: usize = 60;

/// A schedule.
#[derive(Serialize)]
pub(super) struct Row {
    pub(super) id: ScheduleId,
    pub(super) name: String,
    pub(super) cron: String,
    pub(super) zone: String,
    pub(super) conversation: String,
    /// Where answers go, if it is not there.
    pub(super) to: Option<String>,
    pub(super) agent: Option<String>,
    pub(super) text: String,
    pub(super) missed: &'static str,
    pub(super) enabled: bool,
    /// The next time; null for one that is paused.
    pub(super) next: Option<Millis>,
    /// The same, as a clock in the zone shows it.
    pub(super) next_local: Option<String>,
    pub(super) last_run_at: Option<Millis>,
    /// The last run.
    pub(super) job: Option<JobId>,
    pub(super) runs: u64,
    pub(super) skipped: u64,
    pub(super) created_at: Millis,
}

/// All of them.
#[derive(Serialize)]
pub(super) struct List {
    pub(super) schedules: Vec<Row>,
}

/// What was changed.
#[derive(Serialize)]
pub(super) struct Changed {
    pub(super) outcome: &'static str,
    /// The run that was made.
    pub(super) job: Option<JobId>,
    pub(super) schedule: Row,
}

impl Row {
    pub(super) fn new(found: Schedule, now: Millis) -> Self {
        let Schedule { schedule, is_enabled, last_slot, job, last_run_at, n_runs, n_skipped } =
            found;
        let NewSchedule { id, name, cron, zone, conversation, to, agent, .. } = schedule;
        let times = Timetable::read(&cron, &zone).ok().filter(|_| is_enabled);
        let next = times.as_ref().and_then(|times| times.next_after(now.max(last_slot)));
        let local = times.as_ref().zip(next).map(|(times, next)| times.local(next));
        Self {
            id,
            name,
            cron,
            zone,
            conversation: conversation.to_string(),
            to: to.map(|to| to.to_string()),
            agent,
            text: schedule.prompt,
            missed: schedule.missed.as_str(),
            enabled: is_enabled,
            next,
            next_local: local,
            last_run_at,
            job,
            runs: n_runs,
            skipped: n_skipped,
            created_at: schedule.created_at,
        }
    }

    fn when(&self) -> &str {
        let never = if self.enabled { "cannot be followed" } else { "paused" };
        self.next_local.as_deref().unwrap_or(never)
    }
}

impl List {
    /// Returns it for people.
    pub(super) fn text(&self) -> String {
        if self.schedules.is_empty() {
            return "no schedules".to_owned();
        }
        let width = |of: fn(&Row) -> &str| {
            self.schedules.iter().map(|row| of(row).chars().count()).max().unwrap_or(0)
        };
        let (names, crons, times) =
            (width(|row| &row.name), width(|row| &row.cron), width(Row::when));
        let line = |row: &Row| {
            let first = row.text.lines().find(|line| !line.trim().is_empty()).unwrap_or_default();
            let mut text: String = first.chars().take(SHOWN).collect();
            if text.len() < row.text.trim_end().len() {
                text.push('…');
            }
            let to = row.to.as_ref().map(|to| format!(" > {to}")).unwrap_or_default();
            let (name, cron, when) = (&row.name, &row.cron, row.when());
            printable(&format!(
                "{name:names$}  {cron:crons$}  {when:times$}  {}{to}  {} runs, {} skipped  {text}",
                row.conversation, row.runs, row.skipped
            ))
        };
        self.schedules.iter().map(line).collect::<Vec<_>>().join("\n")
    }
}

impl Changed {
    pub(super) fn new(
        found: Schedule,
        outcome: &'static str,
        job: Option<JobId>,
        now: Millis,
    ) -> Self {
        Self { outcome, job, schedule: Row::new(found, now) }
    }

    /// Returns it for people.
    pub(super) fn text(&self) -> String {
        let Self { outcome, job, schedule } = self;
        let name = &schedule.name;
        let rest = match (job, *outcome) {
            (Some(job), _) => format!(" as {job}"),
            (None, "removed" | "paused") => String::new(),
            (None, _) => format!(", next {}", schedule.when()),
        };
        printable(&format!("{name}: {outcome}{rest}"))
    }
}

//! `ostler queue`: the jobs of the gateway, and replies that it could not
//! deliver. Works while it runs, and when it does not; one that runs is told
//! what was changed.

mod undelivered;

use std::path::Path;

use clap::{Args, Subcommand};
use serde::Serialize;

use super::{
    Exit,
    agents::FormArg,
    store::{failed, print, shown},
};
use crate::{
    clock::Millis,
    id::{JobId, OutboxId},
    queue::{CancelOutcome, Job, JobState, Queue, RetryOutcome, Stats},
    socket,
    store::{Location, Store, StoreError, Use},
    ui::{Ui, printable},
};

/// Why a job was cancelled that somebody cancelled here.
const REASON: &str = "cancelled by the operator";

#[derive(Args, Debug)]
pub(crate) struct QueueArgs {
    #[command(subcommand)]
    command: QueueCommand,
    /// What to print
    #[arg(long, value_enum, default_value = "text", global = true)]
    output: FormArg,
}

#[derive(Debug, Subcommand)]
enum QueueCommand {
    /// List jobs, newest first
    List {
        /// Only those that are waiting, ready, running, done, dead or cancelled
        #[arg(long)]
        state: Option<JobState>,
        /// Begin after this job
        #[arg(long, value_name = "JOB")]
        after: Option<JobId>,
        /// How many at most
        #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=1000))]
        limit: u32,
    },
    /// Show a job with all that is known of it
    Show { job: JobId },
    /// Cancel a job; one that runs is told to stop
    Cancel { job: JobId },
    /// Put a dead job back into its lane
    Retry { job: JobId },
    /// Count the jobs
    Stats,
    /// List replies that were given up, or try one again
    Undelivered {
        /// Try this one again
        #[arg(long, value_name = "ID", conflicts_with_all = ["after", "limit"])]
        retry: Option<OutboxId>,
        /// Begin after this one
        #[arg(long, value_name = "ID")]
        after: Option<OutboxId>,
        /// How many at most
        #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=1000))]
        limit: u32,
    },
}

impl QueueCommand {
    fn purpose(&self) -> Use {
        match self {
            Self::List { .. }
            | Self::Show { .. }
            | Self::Stats
            | Self::Undelivered { retry: None, .. } => Use::Look,
            Self::Cancel { .. } | Self::Retry { .. } | Self::Undelivered { retry: Some(_), .. } => {
                Use::Beside
            }
        }
    }
}

/// A page of jobs. Part of the contract.
#[derive(Serialize)]
struct Page {
    jobs: Vec<Job>,
    /// What to give as `--after` for more; null when there is no more.
    next: Option<JobId>,
}

/// What became of a wish. Part of the contract.
#[derive(Serialize)]
struct Outcome {
    job: JobId,
    outcome: &'static str,
    #[serde(skip)]
    is_done: bool,
}

/// Does what the subcommand says.
pub(crate) async fn run(
    args: QueueArgs,
    location: &Location,
    data_dir: &Path,
    ui: &mut Ui,
) -> Exit {
    let purpose = args.command.purpose();
    let store = match Store::open(location, purpose).await {
        Ok(store) => store,
        Err(error) => return failed(&error, ui),
    };
    let done = perform(&store, args.command, args.output, ui).await;
    store.close().await;
    if purpose == Use::Beside {
        socket::client::tell_to_look(&socket::path(data_dir)).await;
    }
    match done {
        Ok(exit) => exit,
        Err(error) => failed(&error, ui),
    }
}

async fn perform(
    store: &Store,
    command: QueueCommand,
    output: FormArg,
    ui: &mut Ui,
) -> Result<Exit, StoreError> {
    let queue = Queue::new(store.clone());
    let (printed, exit) = match command {
        QueueCommand::List { state, after, limit } => {
            let jobs = queue.list(state, after, limit).await?;
            let is_full = u32::try_from(jobs.len()).is_ok_and(|n_jobs| n_jobs == limit);
            let next = jobs.last().filter(|_| is_full).map(|job| job.id);
            let text = listed(&jobs, next);
            (print(&Page { jobs, next }, &text, output, ui), Exit::Answered)
        }
        QueueCommand::Show { job } => match queue.find(job).await? {
            Some(job) => (print(&job, &described(&job), output, ui), Exit::Answered),
            None => {
                ui.notice(&format!("ostler: there is no job {job}"));
                return Ok(Exit::Failed);
            }
        },
        QueueCommand::Cancel { job } => {
            let outcome = cancelled(job, queue.cancel(job, REASON, Millis::now()).await?);
            wish(&outcome, output, ui)
        }
        QueueCommand::Retry { job } => wish(&retried(job, queue.retry(job).await?), output, ui),
        QueueCommand::Stats => {
            let stats = queue.stats().await?;
            (print(&stats, &counted(&stats), output, ui), Exit::Answered)
        }
        QueueCommand::Undelivered { retry: Some(id), .. } => {
            let retried = undelivered::retry(store, id).await?;
            let exit = if retried.is_done { Exit::Answered } else { Exit::Failed };
            (print(&retried, &retried.text(), output, ui), exit)
        }
        QueueCommand::Undelivered { retry: None, after, limit } => {
            let page = undelivered::list(store, after, limit).await?;
            (print(&page, &page.text(), output, ui), Exit::Answered)
        }
    };
    Ok(shown(printed, exit, ui))
}

fn wish(outcome: &Outcome, output: FormArg, ui: &mut Ui) -> (std::io::Result<()>, Exit) {
    let text = format!("{}: {}", outcome.job, outcome.outcome.replace('_', " "));
    let exit = if outcome.is_done { Exit::Answered } else { Exit::Failed };
    (print(outcome, &text, output, ui), exit)
}

fn cancelled(job: JobId, outcome: CancelOutcome) -> Outcome {
    let is_done = match outcome {
        CancelOutcome::Cancelled
        | CancelOutcome::Requested
        | CancelOutcome::Ended(JobState::Cancelled) => true,
        CancelOutcome::Ended(_) | CancelOutcome::Unknown => false,
    };
    Outcome { job, outcome: outcome.word(), is_done }
}

fn retried(job: JobId, outcome: RetryOutcome) -> Outcome {
    let (outcome, is_done) = match outcome {
        RetryOutcome::Retried(_) => ("enqueued", true),
        RetryOutcome::NotDead(_) => ("not_dead", false),
        RetryOutcome::Unknown => ("unknown_job", false),
    };
    Outcome { job, outcome, is_done }
}

fn listed(jobs: &[Job], next: Option<JobId>) -> String {
    let line = |job: &Job| {
        let reason = job.reason.as_deref().unwrap_or_default();
        let line = format!(
            "{}  {:<9}  {}  {}  {}  {reason}",
            job.id, job.state, job.enqueued_at, job.kind, job.lane
        );
        printable(line.trim_end())
    };
    let mut lines: Vec<_> = jobs.iter().map(line).collect();
    if lines.is_empty() {
        lines.push("no jobs".to_owned());
    }
    if let Some(next) = next {
        lines.push(format!("more with --after {next}"));
    }
    lines.join("\n")
}

fn described(job: &Job) -> String {
    let time = |time: Option<Millis>| time.map_or_else(|| "-".to_owned(), |time| time.to_string());
    let lines = [
        format!("job       {}", job.id),
        format!("lane      {} (place {})", job.lane, job.seq),
        format!("kind      {} (priority {})", job.kind, job.priority),
        format!(
            "state     {}{}",
            job.state,
            if job.cancel_requested { ", to be cancelled" } else { "" }
        ),
        format!("attempts  {}, failures {} of {}", job.attempt, job.failures, job.max_failures),
        format!(
            "worker    {} until {}",
            job.owner.as_deref().unwrap_or("-"),
            time(job.lease_until)
        ),
        format!("enqueued  {}", job.enqueued_at),
        format!("started   {}", time(job.started_at)),
        format!("ended     {}", time(job.ended_at)),
        format!("reason    {}", job.reason.as_deref().unwrap_or("-")),
        format!("payload   {}", job.payload),
    ];
    lines.map(|line| printable(&line)).join("\n")
}

fn counted(stats: &Stats) -> String {
    let Stats { waiting, ready, running, done, dead, cancelled, oldest_at } = stats;
    let oldest = oldest_at.map(|time| format!(", the oldest since {time}")).unwrap_or_default();
    format!(
        "{} not begun ({waiting} waiting, {ready} ready{oldest}), {running} running, {done} done, \
         {dead} dead, {cancelled} cancelled",
        waiting + ready
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        clock::Millis,
        queue::{Enqueued, JobEnd, LaneId, NewJob, WorkerId},
        store::testing::Place,
    };

    /// Runs a subcommand beside a gateway.
    async fn command(place: &Place, command: QueueCommand) -> Exit {
        let args = QueueArgs { command, output: FormArg::Json };
        run(args, &place.location, Path::new("/nonexistent"), &mut Ui::default()).await
    }

    #[tokio::test]
    async fn jobs_are_looked_at_cancelled_and_tried_again_while_a_gateway_runs() {
        let place = Place::sqlite();
        let store = place.open().await;
        let queue = Queue::new(store.clone());
        let (lane, new) = (LaneId::new("a"), NewJob::new("turn", "{}"));
        let added = queue.enqueue(lane.clone(), new.clone(), Millis(1)).await.unwrap();
        let Enqueued::New(job) = added else { panic!() };
        let Enqueued::New(next) = queue.enqueue(lane, new, Millis(1)).await.unwrap() else {
            panic!()
        };
        let list = QueueCommand::List { state: Some(JobState::Ready), after: None, limit: 1 };
        assert_eq!(command(&place, list).await, Exit::Answered);
        assert_eq!(command(&place, QueueCommand::Stats).await, Exit::Answered);
        assert_eq!(command(&place, QueueCommand::Show { job }).await, Exit::Answered);
        let unknown = JobId::new();
        assert_eq!(command(&place, QueueCommand::Show { job: unknown }).await, Exit::Failed);
        assert_eq!(command(&place, QueueCommand::Cancel { job: unknown }).await, Exit::Failed);
        assert_eq!(command(&place, QueueCommand::Cancel { job: next }).await, Exit::Answered);
        assert_eq!(queue.find(next).await.unwrap().unwrap().state, JobState::Cancelled);
        assert_eq!(command(&place, QueueCommand::Retry { job }).await, Exit::Failed);
        let lease = std::time::Duration::from_secs(1);
        let (_, ticket) =
            queue.claim(&WorkerId::new("me"), Millis(1), lease).await.unwrap().unwrap();
        assert_eq!(command(&place, QueueCommand::Cancel { job }).await, Exit::Answered);
        assert!(queue.find(job).await.unwrap().unwrap().cancel_requested);
        let end = JobEnd::Dead { reason: "no such model".to_owned() };
        queue.finish(&ticket, end, Millis(2)).await.unwrap();
        assert_eq!(command(&place, QueueCommand::Retry { job }).await, Exit::Answered);
        assert_eq!(queue.find(job).await.unwrap().unwrap().state, JobState::Ready);
        store.close().await;
    }

    #[test]
    fn the_texts_for_people_have_no_control_characters_of_jobs() {
        let job = Job {
            id: JobId::new(),
            lane: LaneId::new("a\u{1b}[31m"),
            seq: 1,
            kind: "turn".to_owned(),
            payload: "{\"text\":\"\u{7}\"}".to_owned(),
            priority: 0,
            state: JobState::Dead,
            attempt: 2,
            failures: 1,
            max_failures: 2,
            not_before: Millis(0),
            owner: None,
            lease_until: None,
            cancel_requested: false,
            reason: Some("line\u{1b}".to_owned()),
            enqueued_at: Millis(0),
            started_at: None,
            ended_at: None,
        };
        for text in [listed(std::slice::from_ref(&job), Some(job.id)), described(&job)] {
            assert!(!text.contains(['\u{1b}', '\u{7}']), "{text:?}");
        }
        assert_eq!(listed(&[], None), "no jobs");
    }
}

//! `ostler schedule`: what the gateway has agents do at certain times. Works
//! while it runs, and when it does not; one that runs is told what was changed.

mod change;
mod view;

use clap::{Args, Subcommand, ValueEnum};

use self::{
    change::{Change, Done, add, remove, run_now, set_enabled},
    view::{Changed, List, Row},
};
use super::{
    Exit,
    agents::FormArg,
    store::{failed, print, shown},
};
use crate::{
    clock::Millis,
    config::{Loaded, Problems, store_location},
    gateway::{
        gate::Rules,
        inbound::{Refusal, check_place},
    },
    id::{JobId, ScheduleId},
    queue::{Capacity, EnqueueError, Limits},
    schedule::cron::{Timetable, zone_here},
    socket,
    store::{
        Store, StoreError, Use,
        conversations::Address,
        schedules::{self, Missed, NewSchedule},
    },
    ui::Ui,
};

/// The longest name, and the longest text.
const LONGEST_NAME: usize = 64;
const LONGEST_TEXT: usize = 64 * 1024;

#[derive(Args, Debug)]
pub(crate) struct ScheduleArgs {
    #[command(subcommand)]
    command: ScheduleCommand,
    /// What to print
    #[arg(long, value_enum, default_value = "text", global = true)]
    output: FormArg,
}

#[derive(Debug, Subcommand)]
enum ScheduleCommand {
    /// List the schedules, with their next times
    List,
    /// Add a schedule
    Add(AddArgs),
    /// Remove a schedule; a run that has begun goes on
    Remove { name: String },
    /// Make a run now, beside the times of the schedule
    Run { name: String },
    /// Make no runs until it is resumed
    Pause { name: String },
    /// Make runs again, from the next time on
    Resume { name: String },
}

#[derive(Args, Debug)]
struct AddArgs {
    /// What it is called
    #[arg(long)]
    name: String,
    /// When: minute, hour, day of the month, month, day of the week
    #[arg(long, value_name = "EXPRESSION")]
    cron: String,
    /// The time zone of these, such as Europe/Berlin [default: that of this machine]
    #[arg(long, value_name = "ZONE")]
    tz: Option<String>,
    /// The conversation in which it is said
    #[arg(long, default_value = "local:main")]
    conversation: Address,
    /// Where the answers go, instead of to the conversation
    #[arg(long, value_name = "CHANNEL:ADDRESS")]
    to: Option<Address>,
    /// Who answers; he becomes the conversation's agent
    #[arg(long)]
    agent: Option<String>,
    /// What becomes of times that pass while no gateway runs
    #[arg(long, value_enum, default_value = "skip")]
    missed: MissedArg,
    /// What the agent is told
    text: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum MissedArg {
    /// They are left out
    Skip,
    /// One run makes up for all of them
    Once,
}

impl AddArgs {
    /// Makes a schedule, or says what is wrong.
    fn schedule(self, loaded: &Loaded, now: Millis) -> Result<NewSchedule, String> {
        let Self { name, cron, tz, conversation, to, agent, missed, text } = self;
        if name.is_empty() || name.len() > LONGEST_NAME || name.trim() != name {
            return Err(format!(
                "a schedule needs a name of 1 to {LONGEST_NAME} bytes, without spaces around it"
            ));
        }
        if name.chars().any(char::is_control) {
            return Err("the name must not have control characters".to_owned());
        }
        if name.parse::<ScheduleId>().is_ok() {
            return Err("the name must not be the id of a schedule".to_owned());
        }
        if text.trim().is_empty() {
            return Err("prompt required: say what the agent is told".to_owned());
        }
        if text.len() > LONGEST_TEXT {
            return Err(format!("the text must not have more than {LONGEST_TEXT} bytes"));
        }
        if text.chars().any(|c| c.is_control() && c != '\n' && c != '\t') {
            return Err("the text must not have control characters".to_owned());
        }
        let times = Timetable::read(&cron, &tz.unwrap_or_else(zone_here));
        let times = times.map_err(|error| error.to_string())?;
        check_place(to.as_ref().unwrap_or(&conversation)).map_err(|error| match &to {
            Some(to) => format!("answers cannot go to {to}: {error}"),
            None => format!("{error}; say with --to where the answers go"),
        })?;
        let agent =
            agent.map(|name| loaded.roster.resolve(&name).map(|spec| spec.name.to_string()));
        Ok(NewSchedule {
            id: ScheduleId::new(),
            name,
            cron: cron.trim().to_owned(),
            zone: times.zone().to_owned(),
            conversation,
            to,
            agent: agent.transpose().map_err(|error| error.to_string())?,
            prompt: text,
            missed: match missed {
                MissedArg::Skip => Missed::Skip,
                MissedArg::Once => Missed::Once,
            },
            created_at: now,
        })
    }
}

/// Does what the subcommand says.
pub(crate) async fn run(args: ScheduleArgs, loaded: Loaded, ui: &mut Ui) -> Result<Exit, Problems> {
    let ScheduleArgs { command, output } = args;
    let location = store_location(&loaded).await?;
    let now = Millis::now();
    let (purpose, change) = match command {
        ScheduleCommand::List => (Use::Look, None),
        ScheduleCommand::Add(args) => match args.schedule(&loaded, now) {
            Ok(new) => (Use::Beside, Some(Change::Add(new))),
            Err(why) => {
                ui.notice(&format!("ostler: {why}"));
                return Ok(Exit::Usage);
            }
        },
        ScheduleCommand::Remove { name } => (Use::Beside, Some(Change::Remove(name))),
        ScheduleCommand::Run { name } => {
            (Use::Beside, Some(Change::Run(name, JobId::new(), rules(&loaded))))
        }
        ScheduleCommand::Pause { name } => (Use::Beside, Some(Change::Enable(name, false))),
        ScheduleCommand::Resume { name } => (Use::Beside, Some(Change::Enable(name, true))),
    };
    let store = match Store::open(&location, purpose).await {
        Ok(store) => store,
        Err(error) => return Ok(failed(&error, ui)),
    };
    let done = match change {
        None => list(&store, now, output, ui).await,
        Some(change) => perform(&store, change, now, output, ui).await,
    };
    store.close().await;
    if purpose == Use::Beside {
        socket::client::tell_to_look(&socket::path(&loaded.host_config().data_dir)).await;
    }
    Ok(done.unwrap_or_else(|error| failed(&error, ui)))
}

/// What a run that is made here goes by: as in the gateway.
fn rules(loaded: &Loaded) -> Rules {
    let depth = u32::try_from(loaded.config.gateway.max_queue_depth).unwrap_or(u32::MAX);
    Rules {
        sessions: loaded.config.sessions.clone(),
        busy: loaded.config.busy,
        capacity: Capacity::new(Limits { waiting: depth, waiting_in_lane: depth }),
        output: loaded.config.discord.output(),
    }
}

async fn list(
    store: &Store,
    now: Millis,
    output: FormArg,
    ui: &mut Ui,
) -> Result<Exit, StoreError> {
    let found = store.read((), |conn, ()| Box::pin(schedules::list(conn))).await?;
    let list = List { schedules: found.into_iter().map(|found| Row::new(found, now)).collect() };
    let text = list.text();
    Ok(shown(print(&list, &text, output, ui), Exit::Answered, ui))
}

async fn perform(
    store: &Store,
    change: Change,
    now: Millis,
    output: FormArg,
    ui: &mut Ui,
) -> Result<Exit, StoreError> {
    let name = change.name().to_owned();
    let done = store.write((change, now), |conn, (change, now)| {
        Box::pin(async move {
            match change {
                Change::Add(new) => add(conn, new, *now).await,
                Change::Remove(name) => remove(conn, name, *now).await,
                Change::Run(name, job, rules) => run_now(conn, name, *job, rules, *now).await,
                Change::Enable(name, on) => set_enabled(conn, name, *on, *now).await,
            }
        })
    });
    let done = match done.await {
        Ok(done) => done,
        Err(Refusal::Enqueue(EnqueueError::Store(error))) => return Err(error),
        Err(error) => {
            ui.notice(&format!("ostler: {error}"));
            return Ok(Exit::Failed);
        }
    };
    let (found, outcome, job) = match done {
        Done::Changed { found, outcome, job } => (found, outcome, job),
        Done::Unknown => {
            ui.notice(&format!("ostler: there is no schedule {name:?}"));
            return Ok(Exit::Failed);
        }
        Done::Taken => {
            ui.notice(&format!("ostler: there is a schedule {name:?} already; remove it first"));
            return Ok(Exit::Failed);
        }
        Done::TooMany => {
            ui.notice(&format!("ostler: there are {} schedules already", schedules::MOST));
            return Ok(Exit::Failed);
        }
        Done::StillOpen(job) => {
            ui.notice(&format!(
                "ostler: the run before, {job}, is not over, and no two run at once; \
                 `ostler queue cancel {job}` ends it"
            ));
            return Ok(Exit::Failed);
        }
    };
    let changed = Changed::new(*found, outcome, job, now);
    let text = changed.text();
    Ok(shown(print(&changed, &text, output, ui), Exit::Answered, ui))
}

#[cfg(test)]
mod tests;

//! `ostler demo`: a tour of the agents that needs no key and nothing installed.
//!
//! The gateway itself runs, on a store that is thrown away. Every agent gets a
//! prompt that uses a tool, then a second one in the same conversation; both
//! are jobs, and what is shown is read from the event log. CLIs that are
//! installed run for real, isolated and with a made-up key, against the
//! simulated model; the scripted agent stands in for the others. Each is
//! labelled with which it is.

mod table;
mod troupe;

use std::{
    io,
    sync::Arc,
    time::{Duration, Instant},
};

use clap::Args;
use ostler_core::{
    agent::{AGENTS, AgentSpec},
    failure::chain,
    registry::Agent as _,
};
use serde_json::Value;
use tokio::sync::watch;

use self::{
    table::{Row, table},
    troupe::{Cast, Troupe},
};
use super::{
    Exit,
    rehearsal::{self, Stage},
};
use crate::{
    config::Settings,
    gateway::{
        Gateway,
        follow::{Followed, Follower},
        inbound::{Details, Inbound, LOCAL, Origin},
        policy::Policy,
    },
    store::{Location, Store, Use, conversations::Address},
    ui::{Ui, printable},
    wishes::Wishes,
};

/// What is asked first of the scripted agent, which only pretends to use a tool.
const READ_SCRIPTED: &str = "Use a tool, please. sim:tool";
/// There is no other gateway that could want its jobs.
const LEASE: Duration = Duration::from_secs(60);
/// How long a turn may take to end when the tour breaks off.
const GRACE: Duration = Duration::from_secs(2);

#[derive(Args, Debug)]
pub(crate) struct DemoArgs {
    /// Only this agent (repeatable)
    #[arg(long = "agent", value_name = "NAME")]
    agents: Vec<String>,
    /// Use the scripted agent even where the CLI is installed
    #[arg(long)]
    scripted: bool,
}

/// Runs the tour.
pub(crate) async fn run(args: DemoArgs, settings: Settings, ui: &mut Ui) -> Exit {
    let chosen: Vec<_> = AGENTS
        .iter()
        .copied()
        .filter(|spec| args.agents.is_empty() || args.agents.iter().any(|name| spec.name == **name))
        .collect();
    if chosen.is_empty() {
        let names: Vec<_> = AGENTS.iter().map(|spec| spec.name.as_str()).collect();
        ui.notice(&format!("ostler: no such agent; valid agents: {}", names.join(", ")));
        return Exit::Usage;
    }
    match play(&args, &chosen, &settings, ui).await {
        Ok(exit) => exit,
        Err(error) => {
            ui.notice(&format!("ostler: the demo could not go on: {error}"));
            Exit::Failed
        }
    }
}

/// Sets the stage up, plays, and clears it whatever happened.
async fn play(
    args: &DemoArgs,
    chosen: &[&'static AgentSpec],
    settings: &Settings,
    ui: &mut Ui,
) -> io::Result<Exit> {
    let stage = Stage::set(settings).await?;
    let location = Location::in_folder(&stage.setting.folder.join("data"));
    let ended = match Store::open(&location, Use::Gateway).await {
        Err(error) => Err(io::Error::other(chain(&error))),
        Ok(store) => {
            let troupe = Troupe::new(&stage.setting, args.scripted);
            let ended = on_gateway(&store, troupe, chosen, &stage, ui).await;
            store.close().await;
            ended
        }
    };
    stage.clear().await;
    ended
}

async fn on_gateway(
    store: &Store,
    troupe: Troupe,
    chosen: &[&'static AgentSpec],
    stage: &Stage,
    ui: &mut Ui,
) -> io::Result<Exit> {
    let policy = watch::Sender::new(Arc::new(Policy::of_troupe(Box::new(troupe.clone()))));
    let gateway = Gateway::start(store.clone(), policy.subscribe(), LEASE);
    let gateway = gateway.await.map_err(|error| io::Error::other(chain(&error)))?;
    ui.line(&format!("A simulated model listens on {}. No key is used.", stage.sim.base_url()))?;
    ui.line("The gateway runs on a store that is thrown away.")?;
    let tour = Tour { gateway: &gateway, troupe: &troupe };
    let ended = tokio::select! {
        rows = tour.of(chosen, ui) => rows.map(Some),
        // Ctrl-C ends the tour like an error would, so that nothing is left behind.
        interrupted = tokio::signal::ctrl_c() => interrupted.map(|()| None),
    };
    gateway.stop(GRACE).await;
    let Some(rows) = ended? else { return Ok(Exit::Cancelled) };
    ui.line(&table(&rows))?;
    let failed = rows.iter().any(|row| row.failure.is_some());
    Ok(if failed { Exit::Failed } else { Exit::Answered })
}

/// The tour through the agents.
struct Tour<'a> {
    gateway: &'a Gateway,
    troupe: &'a Troupe,
}

impl Tour<'_> {
    async fn of(&self, chosen: &[&'static AgentSpec], ui: &mut Ui) -> io::Result<Vec<Row>> {
        let mut rows = Vec::new();
        for spec in chosen {
            rows.push(self.visit(spec, ui).await?);
        }
        Ok(rows)
    }

    async fn visit(&self, spec: &'static AgentSpec, ui: &mut Ui) -> io::Result<Row> {
        let cast = self.troupe.cast(spec);
        ui.line(&format!("\n{} ({})", spec.title, self.describe(spec, cast).await))?;
        let mut row = Row::new(&spec.name, cast);
        let first = match cast {
            Cast::Real => rehearsal::READ,
            Cast::Scripted => READ_SCRIPTED,
        };
        for prompt in [first, rehearsal::REMEMBER] {
            ui.line(&format!("  > {prompt}"))?;
            let began = Instant::now();
            let mut follower = match self.send(spec, prompt).await {
                Ok(follower) => follower,
                Err(why) => {
                    row.failure = Some(why);
                    break;
                }
            };
            let mut watched = Watched::new(began);
            match watched.watch(&mut follower, ui).await? {
                Ok(complete) => row.add(began.elapsed(), watched.first_text, &complete),
                Err(why) => row.failure = Some(why),
            }
            if row.failure.is_some() {
                break;
            }
        }
        if let Some(failure) = &row.failure {
            ui.line(&format!("  failed: {failure}"))?;
        }
        Ok(row)
    }

    /// Hands the gateway a message for an agent, in a conversation with it.
    async fn send(&self, spec: &AgentSpec, prompt: &str) -> Result<Follower, String> {
        let address = Address::new(LOCAL, &spec.name).map_err(|error| error.to_string())?;
        let wishes = Wishes { agent: Some(spec.name.to_string()), ..Wishes::default() };
        let inbound = Inbound {
            address,
            sender: "demo".to_owned(),
            message: None,
            text: prompt.to_owned(),
            wishes,
            origin: Origin::Run,
            details: Details::default(),
            belongs: None,
            words: None,
        };
        let accepted = self.gateway.accept(inbound).await.map_err(|error| error.to_string())?;
        Ok(self.gateway.follow(accepted.job))
    }

    async fn describe(&self, spec: &'static AgentSpec, cast: Cast) -> String {
        let agent = self.troupe.real(spec);
        match cast {
            Cast::Scripted if agent.find().is_ok() => {
                "scripted: the scripted agent plays it, as asked".to_owned()
            }
            Cast::Scripted => format!(
                "scripted: `{}` is not installed, so the scripted agent plays it",
                spec.program
            ),
            Cast::Real => match agent.validate().await {
                Ok(health) => format!(
                    "real: version {}, isolated, made-up key",
                    health.version.as_deref().unwrap_or("unknown")
                ),
                Err(error) => error.to_string(),
            },
        }
    }
}

/// Somebody who watches a turn.
struct Watched {
    began: Instant,
    first_text: Option<Duration>,
    /// The block of text that is being shown.
    block: Option<String>,
}

impl Watched {
    fn new(began: Instant) -> Self {
        Self { began, first_text: None, block: None }
    }

    /// Shows what happens; returns the last event, or why there is no answer.
    async fn watch(
        &mut self,
        follower: &mut Follower,
        ui: &mut Ui,
    ) -> io::Result<Result<Value, String>> {
        let mut complete = None;
        loop {
            let events = match follower.next().await {
                Ok(Followed::Events(events)) => events,
                Ok(Followed::Ended(ending)) => {
                    ui.end_line()?;
                    let reason = ending.reason.unwrap_or_else(|| "there is no answer".to_owned());
                    return Ok(complete.filter(|_| ending.state.is_done()).ok_or(reason));
                }
                Ok(Followed::Unknown) => return Ok(Err("the job is gone".to_owned())),
                Err(error) => return Ok(Err(chain(&error))),
            };
            for stored in events {
                let event: Value = serde_json::from_str(&stored.event.body).unwrap_or_default();
                self.show(&event, ui)?;
                if event.get("type").is_some_and(|kind| kind == "complete") {
                    complete = Some(event);
                }
            }
        }
    }

    fn show(&mut self, event: &Value, ui: &mut Ui) -> io::Result<()> {
        let text = |name: &str| event.get(name).and_then(Value::as_str).unwrap_or_default();
        match text("type") {
            "output" => {
                self.first_text.get_or_insert_with(|| self.began.elapsed());
                if self.block.as_deref() != Some(text("block")) {
                    ui.end_line()?;
                    ui.write("  ")?;
                    self.block = Some(text("block").to_owned());
                }
                ui.write(&printable(text("text")).replace('\n', "\n  "))
            }
            "tool_use" => {
                ui.end_line()?;
                self.block = None;
                ui.line(&printable(&format!("  → {}: {}", text("tool"), text("title"))))
            }
            "tool_result" => {
                let is_error = event.get("is_error") == Some(&Value::Bool(true));
                let mark = if is_error { "✗" } else { "←" };
                let output = text("output").trim_end().replace('\n', " ⏎ ");
                ui.line(&printable(&format!("  {mark} {output}")))
            }
            _ => Ok(()),
        }
    }
}

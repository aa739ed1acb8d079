//! `ostler doctor`: looks at everything a turn needs, and says what to do where
//! something is missing.
//!
//! It changes nothing but what it removes of killed turns, ends no process, and
//! opens no file of an agent's login. The secrets of configured chats, and of a
//! server that is an agent, are read and shown to nobody but the service that
//! they are for.

mod compare;
mod facts;
mod finding;
mod handshake;
mod installed;
mod live;
mod machine;
mod seen;
mod stray;

use std::{io, time::Duration};

use clap::Args;
use ostler_core::{CliAgent, Host};
use serde::Serialize;

use self::{
    finding::{Area, Finding, Level},
    live::Live,
};
use super::{
    Exit,
    agents::{self, FormArg, Look},
    rehearsal::Stage,
};
use crate::{
    channel::{discord::check, finding as found, twilio},
    config::{self, Settings},
    ui::{Ui, printable},
};

#[derive(Args, Debug)]
pub(crate) struct DoctorArgs {
    /// Also run two real turns of every installed CLI, against the simulated model; agents from
    /// the configuration are only started and introduce themselves
    #[arg(long)]
    live: bool,
    /// How long each of these turns may take
    #[arg(long, value_name = "DURATION", default_value = "60s", value_parser = super::turn_args::duration)]
    timeout: Duration,
    /// What to print
    #[arg(long, value_enum, default_value = "text")]
    output: FormArg,
}

/// Examines this machine.
pub(crate) async fn run(args: DoctorArgs, settings: Settings, ui: &mut Ui) -> Exit {
    let mut report = Report { form: args.output, findings: Vec::new(), ui };
    let examined = tokio::select! {
        biased;
        // What was started ends with its turn, which is dropped here.
        _ = tokio::signal::ctrl_c() => return Exit::Cancelled,
        examined = examine(&args, &settings, &mut report) => examined,
    };
    match examined.and_then(|()| report.close()) {
        Ok(true) => Exit::Answered,
        Ok(false) => Exit::Failed,
        Err(error) => {
            report.ui.notice(&format!("ostler: {error}"));
            Exit::Failed
        }
    }
}

async fn examine(
    args: &DoctorArgs,
    settings: &Settings,
    report: &mut Report<'_>,
) -> io::Result<()> {
    let config = settings.host_config();
    let warnings = settings.warnings.iter();
    report.add(
        warnings.map(|text| Finding::new(Level::Warning, Area::Settings, text.clone())).collect(),
    )?;
    report.add(machine::check(&config))?;
    report.add(stray::check())?;
    let host = Host::new(config);
    let looks = agents::look(settings, &host).await;
    for look in &looks {
        report.add(installed::check(look, &host, is_chosen(look, settings)).await)?;
    }
    if looks.iter().all(|look| look.found.is_err()) {
        let message = "no agent is installed";
        let finding = Finding::new(Level::Warning, Area::Binary, message);
        report.add(vec![finding.fix("install one; `ostler demo` works without any")])?;
    }
    report.add(channels(settings).await)?;
    if args.live {
        rehearse(args, settings, &host, &looks, report).await?;
    }
    Ok(())
}

/// Looks at the chats that there are to be.
async fn channels(settings: &Settings) -> Vec<Finding> {
    let mut all = discord(settings).await;
    all.extend(twilio(settings).await);
    all
}

/// Looks at the account at Twilio, if there is to be one.
async fn twilio(settings: &Settings) -> Vec<Finding> {
    let config = &settings.twilio;
    if !config.is_wanted() {
        return Vec::new();
    }
    let missing = config.missing();
    if !missing.is_empty() {
        let message = format!("Twilio cannot be used; these are missing: {}", missing.join("; "));
        let finding = Finding::new(Level::Error, Area::Channels, message);
        return vec![finding.fix("set them in the configuration, or as variables")];
    }
    match twilio::login(config, &settings.environment).await {
        Ok((login, token)) => {
            let found = twilio::check::check(config, login, token).await;
            found.into_iter().map(of_chat).collect()
        }
        Err(error) => {
            let message = format!("the login at Twilio cannot be had: {error}");
            vec![Finding::new(Level::Error, Area::Channels, message)]
        }
    }
}

/// Makes a finding of what was found in a chat.
fn of_chat(found: found::Finding) -> Finding {
    let found::Finding { is_ok, text, fix } = found;
    let level = if is_ok { Level::Ok } else { Level::Error };
    let finding = Finding::new(level, Area::Channels, text);
    match fix {
        Some(fix) => finding.fix(fix),
        None => finding,
    }
}

/// Looks at the bot on Discord, if there is to be one.
async fn discord(settings: &Settings) -> Vec<Finding> {
    let Some(source) = &settings.discord.token else { return Vec::new() };
    let token = match source.get(&settings.environment).await {
        Ok(token) => token,
        Err(error) => {
            let message = format!("the token of the bot on Discord cannot be had: {error}");
            return vec![Finding::new(Level::Error, Area::Channels, message)];
        }
    };
    let config::Discord {
        api_url, guilds, channels, answer_all_in, output_channel, threads, ..
    } = &settings.discord;
    let mut listed: Vec<String> = channels.iter().chain(answer_all_in).cloned().collect();
    listed.extend(output_channel.clone());
    listed.sort();
    listed.dedup();
    let places = check::Places { guilds, channels: &listed, begins_threads: *threads };
    let found = check::check(token.reveal(), api_url.as_deref(), places).await;
    found.into_iter().map(of_chat).collect()
}

/// Whether the settings name this agent, which is then expected to be there.
fn is_chosen(look: &Look, settings: &Settings) -> bool {
    settings.is_agent_chosen && settings.agent.name == look.spec().name
}

async fn rehearse(
    args: &DoctorArgs,
    settings: &Settings,
    host: &Host,
    looks: &[Look],
    report: &mut Report<'_>,
) -> io::Result<()> {
    let stage = match Stage::set(settings).await {
        Ok(stage) => stage,
        Err(error) => {
            let message = format!("no turn could be tried: {error}");
            return report.add(vec![Finding::new(Level::Error, Area::Live, message)]);
        }
    };
    for look in looks {
        let Ok(health) = &look.found else {
            continue;
        };
        let Some(program) = health.path() else {
            let message = "not tried: a server that runs already asks its own model";
            let finding = Finding::new(Level::Info, Area::Live, message);
            report.add(vec![finding.about(&look.spec().name)])?;
            continue;
        };
        let agent =
            CliAgent::new(look.spec().clone(), stage.setting.host.clone()).with_program(program);
        if look.spec().custom.is_some() {
            report.add(vec![handshake::check(&agent, &stage, args.timeout).await])?;
            continue;
        }
        let keep = host.data_dir().join("doctor");
        let live = Live { agent: &agent, stage: &stage, timeout: args.timeout, keep };
        report.add(live.check().await)?;
    }
    stage.clear().await;
    Ok(())
}

/// The findings so far; for people they are printed as they come.
struct Report<'a> {
    form: FormArg,
    findings: Vec<Finding>,
    ui: &'a mut Ui,
}

impl Report<'_> {
    fn add(&mut self, findings: Vec<Finding>) -> io::Result<()> {
        if self.form == FormArg::Text {
            let following = findings.iter().skip(1).map(Some).chain([None]);
            for (finding, next) in findings.iter().zip(following) {
                self.ui.line(&line(finding, next))?;
            }
        }
        self.findings.extend(findings);
        Ok(())
    }

    /// Prints what comes last; returns whether nothing is wrong.
    fn close(&mut self) -> io::Result<bool> {
        let count = |level| self.findings.iter().filter(|finding| finding.level == level).count();
        let (n_errors, n_warnings) = (count(Level::Error), count(Level::Warning));
        let last = match self.form {
            FormArg::Json => {
                let whole = Whole { ok: n_errors == 0, findings: &self.findings };
                serde_json::to_string(&whole).map_err(io::Error::other)?
            }
            FormArg::Text => match (n_errors, n_warnings) {
                (0, 0) => "\nAll is well.".to_owned(),
                (0, _) => format!("\nNothing is broken; {}.", counted(n_warnings, "warning")),
                (_, 0) => format!("\n{}.", counted(n_errors, "error")),
                (_, _) => {
                    format!("\n{}, {}.", counted(n_errors, "error"), counted(n_warnings, "warning"))
                }
            },
        };
        self.ui.line(&last)?;
        Ok(n_errors == 0)
    }
}

fn counted(number: usize, noun: &str) -> String {
    if number == 1 { format!("1 {noun}") } else { format!("{number} {noun}s") }
}

/// The JSON form. The field names are part of the contract.
#[derive(Serialize)]
struct Whole<'a> {
    ok: bool,
    findings: &'a [Finding],
}

/// Returns a finding as people read it. One fix for several findings stands below the last.
fn line(finding: &Finding, next: Option<&Finding>) -> String {
    let about = finding.agent.as_deref().unwrap_or("ostler");
    let mut text = format!("{} {about:<9} {}", finding.level.sign(), finding.message);
    let is_repeated = next.is_some_and(|next| next.fix == finding.fix);
    if let Some(fix) = finding.fix.as_ref().filter(|_| !is_repeated) {
        text.push_str(&format!("\n{:11} → {fix}", ""));
    }
    printable(&text)
}

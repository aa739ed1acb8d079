//! `ostler store`: a backup of what the gateway has stored, and a check of it.
//! Both work while a gateway runs.

use std::{io, path::PathBuf};

use clap::{Args, Subcommand};
use serde::Serialize;

use super::{Exit, agents::FormArg};
use crate::{
    store::{BackupError, Location, Problem, Store, StoreError, Use},
    ui::{Ui, printable},
};

#[derive(Args, Debug)]
pub(crate) struct StoreArgs {
    #[command(subcommand)]
    command: StoreCommand,
}

#[derive(Debug, Subcommand)]
enum StoreCommand {
    /// Copy the store to a new file
    Backup {
        /// The file; it must not be there yet
        file: PathBuf,
        /// What to print
        #[arg(long, value_enum, default_value = "text")]
        output: FormArg,
    },
    /// Look for damage, and for what must never be
    Check {
        /// What to print
        #[arg(long, value_enum, default_value = "text")]
        output: FormArg,
    },
}

/// What `backup` did. Part of the contract.
#[derive(Serialize)]
struct Backup {
    store: String,
    file: String,
    bytes: u64,
}

/// What `check` found. Part of the contract.
#[derive(Serialize)]
struct Report {
    store: String,
    ok: bool,
    problems: Vec<Problem>,
}

/// Does what the subcommand says.
pub(crate) async fn run(args: StoreArgs, location: &Location, ui: &mut Ui) -> Exit {
    let store = match Store::open(location, Use::Look).await {
        Ok(store) => store,
        Err(error) => return failed(&error, ui),
    };
    let exit = match args.command {
        StoreCommand::Backup { file, output } => backup(&store, file, output, ui).await,
        StoreCommand::Check { output } => check(&store, output, ui).await,
    };
    store.close().await;
    exit
}

async fn backup(store: &Store, file: PathBuf, output: FormArg, ui: &mut Ui) -> Exit {
    match store.backup(&file).await {
        Ok(()) => {}
        Err(BackupError::Store(error)) => return failed(&error, ui),
        Err(error @ (BackupError::Postgres | BackupError::Exists { .. })) => {
            ui.notice(&printable(&format!("ostler: {error}")));
            return Exit::Failed;
        }
    }
    let bytes = std::fs::metadata(&file).map_or(0, |file| file.len());
    let file = file.display().to_string();
    let text = format!("{}: {bytes} bytes", printable(&file));
    let report = Backup { store: store.location().to_string(), file, bytes };
    shown(print(&report, &text, output, ui), Exit::Answered, ui)
}

async fn check(store: &Store, output: FormArg, ui: &mut Ui) -> Exit {
    let problems = match store.check().await {
        Ok(problems) => problems,
        Err(error) => return failed(&error, ui),
    };
    let store = store.location().to_string();
    let mut lines: Vec<_> =
        problems.iter().map(|problem| format!("{}: {}", problem.check, problem.message)).collect();
    if lines.is_empty() {
        lines.push(format!("{store}: nothing is wrong"));
    }
    let text = printable(&lines.join("\n"));
    let exit = if problems.is_empty() { Exit::Answered } else { Exit::Failed };
    let report = Report { store, ok: problems.is_empty(), problems };
    shown(print(&report, &text, output, ui), exit, ui)
}

/// Prints a report in the wanted form.
pub(super) fn print(
    report: &impl Serialize,
    text: &str,
    output: FormArg,
    ui: &mut Ui,
) -> io::Result<()> {
    match output {
        FormArg::Text => ui.line(text),
        FormArg::Json => {
            let json = serde_json::to_string(report).map_err(io::Error::other)?;
            ui.line(&json)
        }
    }
}

/// Returns the exit code of a report that could be printed.
pub(super) fn shown(printed: io::Result<()>, exit: Exit, ui: &mut Ui) -> Exit {
    match printed {
        Ok(()) => exit,
        Err(error) => {
            ui.notice(&format!("ostler: {error}"));
            Exit::Failed
        }
    }
}

/// Says why the store could not be used.
pub(super) fn failed(error: &StoreError, ui: &mut Ui) -> Exit {
    ui.notice(&printable(&format!("ostler: {}", error.chain())));
    Exit::Failed
}

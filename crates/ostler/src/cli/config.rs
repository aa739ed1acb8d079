//! `ostler config`: what is wrong with the configuration, what counts and where
//! it comes from, and what can be written into a file.

use std::{io, path::PathBuf};

use clap::{Args, Subcommand};
use serde::Serialize;

use super::{Exit, agents::FormArg};
use crate::{
    config::{
        Found, Loaded, Loader, Problem, Problems, Source, Trust, default, schema,
        variable::VARIABLES,
        view::{self, Change, Shown},
    },
    ui::{Ui, printable},
};

#[derive(Debug, Subcommand)]
pub(crate) enum ConfigCommand {
    /// Say everything that is wrong with the configuration, by key and place
    Check(CheckArgs),
    /// Print what counts, key by key, with where it comes from; secrets are hidden
    Show(ShowArgs),
    /// List the environment variables: the key that each sets, and how it is read
    Variables(ShowArgs),
    /// Print a file with every key, its default and what it is for
    Default,
    /// Print the JSON Schema of the file
    Schema,
}

#[derive(Args, Debug)]
pub(crate) struct CheckArgs {
    /// The file [default: the one that counts]
    file: Option<PathBuf>,
    /// Also say what is different from this file, and what of it needs a restart
    #[arg(long, value_name = "OLD")]
    compare: Option<PathBuf>,
    /// What to print
    #[arg(long, value_enum, default_value = "text")]
    output: FormArg,
}

#[derive(Args, Debug)]
pub(crate) struct ShowArgs {
    /// What to print
    #[arg(long, value_enum, default_value = "text")]
    output: FormArg,
}

/// Does what one of the commands says.
pub(crate) fn run(command: ConfigCommand, config: Option<PathBuf>, ui: &mut Ui) -> Exit {
    let done = match command {
        ConfigCommand::Check(args) => check(&args, config, ui),
        ConfigCommand::Show(args) => show(&args, config, ui),
        ConfigCommand::Variables(args) => variables(&args, ui),
        ConfigCommand::Default => ui.write(default::TEXT).map(|()| Exit::Answered),
        ConfigCommand::Schema => serde_json::to_string_pretty(&schema::schema())
            .map_err(io::Error::other)
            .and_then(|text| ui.line(&text))
            .map(|()| Exit::Answered),
    };
    done.unwrap_or_else(|error| {
        ui.notice(&format!("ostler: {error}"));
        Exit::Failed
    })
}

/// Reads the configuration as a gateway would that is started here.
fn load(file: Option<PathBuf>) -> Result<Loaded, Problems> {
    Loader::from_process(file, Trust::Everything).load()
}

fn check(args: &CheckArgs, config: Option<PathBuf>, ui: &mut Ui) -> io::Result<Exit> {
    let file = args.file.clone().or(config);
    let counts = Loader::from_process(file.clone(), Trust::Everything).find();
    let new = load(file);
    let read = new.and_then(|new| match &args.compare {
        None => Ok((new, None)),
        Some(old) => {
            let changes = view::changes(&load(Some(old.clone()))?.config, &new.config);
            Ok((new, Some(changes)))
        }
    });
    let exit = if read.is_ok() { Exit::Answered } else { Exit::Usage };
    match (args.output, &read) {
        (FormArg::Json, read) => ui.line(&json(&Checked::new(counts.as_ref(), read))?)?,
        (FormArg::Text, Ok((loaded, changes))) => {
            tell(&loaded.warnings, "warning: ", ui);
            tell(&loaded.notes, "", ui);
            let file = loaded.file.as_ref().map(|found| found.path.display().to_string());
            ui.line(&match file {
                Some(file) => printable(&format!("{file}: all is well.")),
                None => "There is no configuration file; all is well.".to_owned(),
            })?;
            for Change { key, effect } in changes.iter().flatten() {
                let when = match effect {
                    view::Effect::Live => "with the next turn",
                    view::Effect::Restart => "needs a restart",
                };
                ui.line(&printable(&format!("{key}: {when}")))?;
            }
        }
        (FormArg::Text, Err(problems)) => refuse(problems, ui),
    }
    Ok(exit)
}

fn refuse(problems: &Problems, ui: &mut Ui) {
    problems.lines().for_each(|line| ui.notice(&format!("ostler: {line}")));
}

fn tell(texts: &[String], kind: &str, ui: &mut Ui) {
    texts.iter().for_each(|text| ui.notice(&format!("ostler: {kind}{text}")));
}

fn json(value: &impl Serialize) -> io::Result<String> {
    serde_json::to_string(value).map_err(io::Error::other)
}

/// The JSON form of `check`. The field names are part of the contract.
#[derive(Serialize)]
struct Checked<'a> {
    ok: bool,
    /// The file that counts, if there is one.
    file: Option<String>,
    errors: Vec<Wrong>,
    warnings: &'a [String],
    notes: &'a [String],
    /// Only if another file was named to compare with.
    changes: Option<&'a [Change]>,
}

impl<'a> Checked<'a> {
    fn new(
        file: Option<&Found>,
        read: &'a Result<(Loaded, Option<Vec<Change>>), Problems>,
    ) -> Self {
        let file = file.map(|found| found.path.display().to_string());
        match read {
            Ok((loaded, changes)) => Self {
                ok: true,
                file,
                errors: Vec::new(),
                warnings: &loaded.warnings,
                notes: &loaded.notes,
                changes: changes.as_deref(),
            },
            Err(problems) => Self {
                ok: false,
                file,
                errors: problems.0.iter().map(Wrong::new).collect(),
                warnings: &[],
                notes: &[],
                changes: None,
            },
        }
    }
}

/// One error, as it is printed.
#[derive(Serialize)]
struct Wrong {
    key: Option<String>,
    /// The file, the variable or the flag.
    source: String,
    line: Option<usize>,
    column: Option<usize>,
    message: String,
}

impl Wrong {
    fn new(problem: &Problem) -> Self {
        let (source, line, column) = match &problem.source {
            Source::File { path, place, .. } => {
                let (line, column) =
                    (place.map(|place| place.line), place.map(|place| place.column));
                (path.display().to_string(), line, column)
            }
            Source::DotEnv { path, line, name } => {
                (format!("{}: {name}", path.display()), Some(*line), None)
            }
            source @ (Source::Default | Source::Variable(_) | Source::Flag(_)) => {
                (source.to_string(), None, None)
            }
        };
        let key = Some(problem.key.clone()).filter(|key| !key.is_empty());
        Self { key, source, line, column, message: problem.why.clone() }
    }
}

fn show(args: &ShowArgs, config: Option<PathBuf>, ui: &mut Ui) -> io::Result<Exit> {
    let mut loaded = match load(config.clone()) {
        Ok(loaded) => loaded,
        Err(problems) => {
            refuse(&problems, ui);
            return Ok(Exit::Usage);
        }
    };
    // What other commands leave out of a directory that may be a stranger's.
    if let Ok(elsewhere) = Loader::from_process(config, Trust::Named).load() {
        let is_more = |warning: &String| !loaded.warnings.contains(warning);
        let more = elsewhere.warnings.into_iter().filter(is_more);
        let more: Vec<_> =
            more.map(|warning| format!("run, chat, agents, doctor: {warning}")).collect();
        loaded.notes.extend(more);
    }
    let values = view::shown(&loaded);
    match args.output {
        FormArg::Json => {
            let file = loaded.file.as_ref().map(|found| found.path.display().to_string());
            let Loaded { unused, warnings, notes, .. } = &loaded;
            ui.line(&json(&Whole { file, values: &values, unused, warnings, notes })?)?;
        }
        FormArg::Text => {
            tell(&loaded.warnings, "warning: ", ui);
            tell(&loaded.notes, "", ui);
            for Shown { key, value, source } in &values {
                ui.line(&printable(&format!("{key} = {value}  ({source})")))?;
            }
            for name in &loaded.unused {
                ui.line(&format!("{name}  (set, but not used yet)"))?;
            }
        }
    }
    Ok(Exit::Answered)
}

/// The JSON form of `show`. The field names are part of the contract.
#[derive(Serialize)]
struct Whole<'a> {
    file: Option<String>,
    values: &'a [Shown],
    /// Variables that are set, but not used yet.
    unused: &'a [&'static str],
    warnings: &'a [String],
    notes: &'a [String],
}

fn variables(args: &ShowArgs, ui: &mut Ui) -> io::Result<Exit> {
    match args.output {
        FormArg::Json => ui.line(&json(&VARIABLES)?)?,
        FormArg::Text => {
            for variable in VARIABLES {
                let key = variable.key.map(|key| format!(" → {key}")).unwrap_or_default();
                ui.line(&format!("{}{key}: {}", variable.name, variable.about))?;
            }
        }
    }
    Ok(Exit::Answered)
}

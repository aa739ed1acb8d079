//! `ostler init`: writes prompt files to begin with, and overwrites none.

use std::path::PathBuf;

use clap::Args;
use serde::Serialize;

use super::{
    Exit,
    agents::FormArg,
    store::{print, shown},
};
use crate::{
    config::Loaded,
    prompt::{
        self,
        template::{self, Written},
    },
    ui::{Ui, printable},
};

#[derive(Args, Debug)]
pub(crate) struct InitArgs {
    /// The folder [default: $CONFIG_DIR, else prompt.dir, else `prompt` in the data folder]
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
    /// What to print
    #[arg(long, value_enum, default_value = "text")]
    output: FormArg,
}

/// What was done. The field names are part of the contract.
#[derive(Serialize)]
struct Report {
    dir: String,
    written: Vec<&'static str>,
    kept: Vec<&'static str>,
}

/// Writes the files that are not there.
pub(crate) fn run(args: &InitArgs, loaded: &Loaded, ui: &mut Ui) -> Exit {
    let folder = match &args.dir {
        Some(dir) => prompt::folder(Some(dir), &loaded.host_config().data_dir),
        None => loaded.prompt_dir(),
    };
    let Written { written, kept } = match template::write(&folder) {
        Ok(done) => done,
        Err(why) => {
            ui.notice(&format!("ostler: {why}"));
            return Exit::Failed;
        }
    };
    let dir = folder.display().to_string();
    let report = Report { dir: dir.clone(), written, kept };
    let mut lines = vec![format!("{}:", printable(&dir))];
    lines.extend(report.written.iter().map(|name| format!("  {name}: written")));
    lines.extend(report.kept.iter().map(|name| format!("  {name}: was there and stays as it is")));
    if !report.written.is_empty() {
        lines.push(
            "Write below the comments; what you write counts from the next message on.".to_owned(),
        );
    }
    shown(print(&report, &lines.join("\n"), args.output, ui), Exit::Answered, ui)
}

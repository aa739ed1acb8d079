//! Every recording of the real CLI, with what a user gets to see of it.

use std::{fs, path::Path};

use serde_json::Value;

use super::*;
use crate::request::Format;

/// The arguments that a recording was made with, as the options they stand for.
fn situation(stdout: &Path) -> (Options, Open) {
    let mut options = Options::new("/workspace/ws");
    let Ok(text) = fs::read_to_string(stdout.with_extension("argv")) else {
        return (options, Open::New);
    };
    let recorded: Value = serde_json::from_str(&text).unwrap();
    let args: Vec<&str> =
        recorded["argv"].as_array().unwrap().iter().map(|arg| arg.as_str().unwrap()).collect();
    if !args.contains(&"--json") {
        options.format = Format::Text;
    }
    let session =
        args.iter().position(|arg| *arg == "resume").filter(|at| args[at - 1] != "--").and_then(
            |at| {
                let after = &args[at + 1..];
                let id = after.iter().find(|arg| uuid::Uuid::try_parse(arg).is_ok());
                id.or_else(|| after.first().filter(|arg| !arg.starts_with('-')))
            },
        );
    let open = session.map_or(Open::New, |id| resume(id));
    (options, open)
}

#[test]
fn every_recording_reads_as_its_snapshot_and_ends_once() {
    insta::with_settings!({snapshot_path => "../snapshots", prepend_module_to_snapshot => false, omit_expression => true}, {
        insta::glob!("../../../../../../fixtures/codex", "*/*.stdout", |path| {
            let recording = Recording::read(path);
            let (options, open) = situation(path);
            let actions = play::play_with(&SPEC, &recording, &options, &open);
            assert_eq!(play::n_ends(&actions), 1, "{path:?}");
            insta::assert_snapshot!("recording", play::transcript(&actions));
        });
    });
}

//! Every recorded run of the real CLI, and what callers see of it.

use std::{fs, path::Path};

use super::*;
use crate::request::Format;

/// The arguments that a recording was made with, as the options they stand for.
fn situation(stdout: &Path) -> (Options, Open) {
    let mut options = Options::new("/workspace");
    let recorded = fs::read_to_string(stdout.with_extension("argv")).unwrap();
    let words: Vec<&str> = recorded.split_whitespace().collect();
    let value_of = |flag: &str| {
        let at = words.iter().position(|word| *word == flag)?;
        words.get(at + 1).copied()
    };
    if value_of("--mode") != Some("json") {
        options.format = Format::Text;
    }
    if words.contains(&"--no-session") {
        options.extra_args.push("--no-session".to_owned());
    }
    let open = value_of("--session").map_or(Open::New, resume);
    (options, open)
}

#[test]
fn every_recording_reads_as_its_snapshot_and_ends_once() {
    insta::with_settings!({snapshot_path => "../snapshots", prepend_module_to_snapshot => false, omit_expression => true}, {
        insta::glob!("../../../../../../fixtures/pi", "*/*.stdout", |path| {
            let recording = Recording::read(path);
            let (options, open) = situation(path);
            let actions = play::play_with(&SPEC, &recording, &options, &open);
            assert_eq!(play::n_ends(&actions), 1, "{path:?}");
            insta::assert_snapshot!("recording", play::transcript(&actions));
        });
    });
}

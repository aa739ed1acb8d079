//! Every recording of the real CLI, with what a user gets to see of it.

use std::fs;

use serde_json::Value;

use super::*;

/// The options and the session that a recording was made with.
pub(super) fn situation(stdout: &Path) -> (Options, Open) {
    let text = fs::read_to_string(stdout.with_extension("argv")).unwrap();
    let recorded: Value = serde_json::from_str(&text).unwrap();
    let argv: Vec<&str> =
        recorded["argv"].as_array().unwrap().iter().map(|arg| arg.as_str().unwrap()).collect();
    let value = |flags: [&str; 2]| {
        let at = argv.iter().position(|arg| flags.contains(arg))?;
        argv.get(at + 1).copied()
    };
    let format = match value(["-o", "--output-format"]) {
        Some("stream-json") => Format::StreamJson,
        Some("json") => Format::Json,
        _ => Format::Text,
    };
    let open = value(["-r", "--resume"]).map_or(Open::New, resume);
    (Options { format, ..options() }, open)
}

#[test]
fn every_recording_reads_as_its_snapshot_and_ends_once() {
    insta::with_settings!({
        snapshot_path => "../snapshots",
        prepend_module_to_snapshot => false,
        omit_expression => true,
    }, {
        insta::glob!("../../../../../../fixtures/gemini", "*/*.stdout", |path| {
            let (options, open) = situation(path);
            let actions = play::play_with(&SPEC, &Recording::read(path), &options, &open);
            assert_eq!(play::n_ends(&actions), 1, "{path:?}");
            insta::assert_snapshot!("recording", play::transcript(&actions));
        });
    });
}

//! What becomes of everything that was recorded from the real program.

use std::{fs, path::Path};

use super::*;
use crate::agent::play;

/// Returns the options and the session of a recorded run.
fn recorded_launch(stdout: &Path) -> (Options, Open) {
    let argv = fs::read_to_string(stdout.with_extension("argv")).unwrap();
    let argv: Vec<String> = serde_json::from_str(argv.lines().next().unwrap()).unwrap();
    let value = |flag: &str| {
        let at = argv.iter().position(|arg| arg == flag)?;
        argv.get(at + 1)
    };
    let format = match value("--output-format").map(String::as_str) {
        Some("stream-json") => Format::StreamJson,
        Some("json") => Format::Json,
        _ => Format::Text,
    };
    let open = value("--resume").map_or(Open::New, |id| resume(id));
    (with_format(format), open)
}

#[test]
fn every_recording_gives_the_events_that_were_reviewed() {
    insta::glob!("../../../../../../fixtures/claude", "*/*.stdout", |path| {
        let (options, open) = recorded_launch(path);
        let recording = play::Recording::read(path);
        let actions = play::play_with(&SPEC, &recording, &options, &open);
        assert_eq!(play::n_ends(&actions), 1);
        let argv = fs::read_to_string(path.with_extension("argv")).unwrap();
        insta::with_settings!({
            description => argv.lines().next().unwrap(),
            omit_expression => true,
            prepend_module_to_snapshot => false,
        }, {
            insta::assert_snapshot!("recording", play::transcript(&actions));
        });
    });
}

#[test]
fn any_grouping_of_an_array_gives_the_same_end_as_the_lines_it_holds() {
    for name in ["multi", "read", "text"] {
        let array = recording(&format!("2.1.325/{name}-json-verbose"));
        let value: serde_json::Value = serde_json::from_slice(&array.stdout).unwrap();
        let lines: Vec<String> =
            value.as_array().unwrap().iter().map(ToString::to_string).collect();
        let pretty = serde_json::to_string_pretty(&value).unwrap();
        let whole = read_text(std::str::from_utf8(&array.stdout).unwrap());
        for other in [read_text(&lines.join("\n")), read_text(&pretty)] {
            assert_eq!(play::transcript(&whole), play::transcript(&other), "{name}");
        }
    }
}

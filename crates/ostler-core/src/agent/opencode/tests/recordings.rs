//! Every recording of the real CLI, with what a user gets to see of it.

use std::fs;

use super::*;

/// The arguments that a recording was made with, as the options they stand for.
fn situation(argv: &[String]) -> (Options, Open) {
    let value = |flags: [&str; 2]| {
        let at = argv.iter().position(|arg| flags.contains(&arg.as_str()))?;
        argv.get(at + 1).cloned()
    };
    let mut options = Options::new("/workspace");
    options.model = value(["--model", "-m"]);
    if value(["--format", "--format"]).as_deref() != Some("json") {
        options.format = Format::Text;
    }
    let open = value(["--session", "-s"]).map_or(Open::New, |id| resume(&id));
    (options, open)
}

#[test]
fn every_recording_reads_as_its_snapshot_and_ends_once() {
    insta::glob!("../../../../../../fixtures/opencode", "*/*.stdout", |path| {
        let text = fs::read_to_string(path.with_extension("argv")).unwrap();
        let first = text.lines().next().unwrap();
        let argv: Vec<String> = serde_json::from_str(first).unwrap();
        let (options, open) = situation(&argv);
        let actions = play::play_with(&SPEC, &Recording::read(path), &options, &open);
        assert_eq!(play::n_ends(&actions), 1, "{path:?}");
        insta::with_settings!({
            description => first,
            omit_expression => true,
            prepend_module_to_snapshot => false,
            snapshot_path => "../snapshots",
        }, {
            insta::assert_snapshot!("recording", play::transcript(&actions));
        });
    });
}

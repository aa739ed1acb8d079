//! How fast each dialect reads what its CLI prints: recorded output, again and
//! again, in bytes a second.
#![expect(clippy::panic, clippy::expect_used, reason = "a benchmark without its input gives up")]

use std::{fs, path::Path};

use divan::{Bencher, counter::BytesCount};
use jiff::Timestamp;
use ostler_core::{
    agent::{self, Input, Launch},
    event::{Mode, Stream},
    request::{Open, Options},
};

fn main() {
    divan::main();
}

/// Of each agent, recordings with many lines and with long ones.
const RECORDINGS: &[(&str, &str)] = &[
    ("claude", "claude/2.1.325/cut-streamjson-partial.stdout"),
    ("claude", "claude/2.1.325/multi-streamjson.stdout"),
    ("claude", "claude/2.1.325/bigout-streamjson.stdout"),
    ("codex", "codex/0.166.0/loop-json.stdout"),
    ("codex", "codex/0.166.0/big-answer-json.stdout"),
    ("gemini", "gemini/0.61.0/h-sigterm-parent.stdout"),
    ("gemini", "gemini/0.61.0/m-plan-left-by-the-model.stdout"),
    ("opencode", "opencode/1.18.33/l-loop.stdout"),
    ("opencode", "opencode/1.18.33/x-bigout-json.stdout"),
    ("pi", "pi/1.5.0/flag-loopN20.stdout"),
];

#[divan::bench(args = RECORDINGS)]
fn decode(bencher: Bencher<'_, '_>, (name, file): &(&str, &str)) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures").join(file);
    let bytes = fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let spec = agent::find(name).expect("a built-in agent");
    let options = Options::new("/workspace");
    let launch = Launch {
        spec,
        mode: Mode::OneShot,
        options: &options,
        open: &Open::New,
        prompt: "hi",
        version: None,
        run_dir: Path::new("/run"),
    };
    bencher.counter(BytesCount::of_slice(&bytes)).bench(|| {
        let mut dialect = (spec.dialect)(&launch);
        let mut out = Vec::new();
        for line in bytes.split(|byte| *byte == b'\n') {
            let input = Input::Line { from: Stream::Stdout, bytes: line, cut: false };
            dialect.step(Timestamp::UNIX_EPOCH, input, &mut out);
        }
        out
    });
}

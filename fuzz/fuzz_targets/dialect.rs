//! Any bytes, printed by any agent: no panic, and the turn ends exactly once.
//!
//! The first byte chooses the agent, the second the output format and the exit,
//! the third how the bytes are cut; the rest is what the process prints.
#![no_main]

use std::path::Path;

use jiff::Timestamp;
use libfuzzer_sys::fuzz_target;
use ostler_core::{
    agent::{AGENTS, Action, Exit, Input, Launch},
    event::{Mode, Stream},
    lines::Lines,
    memo::{Memo, Totals},
    request::{Format, Open, Options},
};

fuzz_target!(|data: &[u8]| {
    let [agent, form, cut, printed @ ..] = data else { return };
    let Some(spec) = AGENTS.get(usize::from(*agent) % AGENTS.len()) else { return };
    let mut options = Options::new("/workspace");
    options.format = [Format::StreamJson, Format::Json, Format::Text][usize::from(form & 3).min(2)];
    let memo = Memo {
        totals: Some(Totals { input_tokens: 7, ..Totals::default() }),
        ..Memo::of_id(&spec.name, "01a1e088-9109-7530-b2ac-e9fa07582dea")
    };
    let open = if form & 4 == 0 { Open::New } else { Open::Resume(Box::new(memo)) };
    let launch = Launch {
        spec,
        mode: Mode::OneShot,
        options: &options,
        open: &open,
        prompt: "hi",
        version: None,
        run_dir: Path::new("/run"),
    };
    let mut dialect = (spec.dialect)(&launch);
    let mut out = Vec::new();
    let mut lines = Lines::new(1 << 16, 1 << 10);
    let feed = |line: ostler_core::lines::Line, out: &mut Vec<Action>, dialect: &mut Box<dyn ostler_core::agent::Dialect>| {
        // Lines that start with this byte come from standard error.
        let (from, bytes) = match line.bytes.strip_prefix(b"\x01") {
            Some(rest) => (Stream::Stderr, rest),
            None => (Stream::Stdout, line.bytes.as_slice()),
        };
        dialect.step(Timestamp::UNIX_EPOCH, Input::Line { from, bytes, cut: line.cut }, out);
    };
    for mut piece in printed.chunks(usize::from(*cut).max(1)) {
        while let Some(line) = lines.take(&mut piece) {
            feed(line, &mut out, &mut dialect);
        }
    }
    if let Some(line) = lines.finish() {
        feed(line, &mut out, &mut dialect);
    }
    let code = i32::from(form >> 4);
    let exit = Exit { code: (code != 15).then_some(code), signal: (code == 15).then_some(9), stderr: String::new() };
    dialect.step(Timestamp::UNIX_EPOCH, Input::Exited(&exit), &mut out);
    let ends = out.iter().filter(|action| matches!(action, Action::EndTurn { .. })).count();
    assert_eq!(ends, 1, "a turn ends exactly once");
});

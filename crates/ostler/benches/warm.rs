//! What it brings to keep an agent running, and what Ostler costs in between.
//!
//! For each agent four ways to the same answer, interleaved in one run: the CLI
//! started for it, directly and through `ostler run`; and a turn in a process
//! that is there already, by a minimal client of the CLI's own protocol and
//! through the library. Printed are medians with quartiles of the time to the
//! first text and of the whole turn, and of the paired differences.
//!
//! `scripts/bench` runs this. It exits with 1 when a limit does not hold.
#![expect(
    clippy::print_stdout,
    clippy::disallowed_methods,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::wildcard_enum_match_arm,
    reason = "a benchmark prints, starts programs, and may give up"
)]

use std::{
    ffi::OsString,
    fs,
    io::{BufRead, BufReader, Lines, Write as _},
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    process::{Child, ChildStdin, ChildStdout, Command, ExitCode, Stdio},
    time::{Duration, Instant},
};

use ostler_core::{
    CliAgent, EventBody, Host, HostConfig, Memo, TurnRequest,
    agent::{self, AGENTS, AgentSpec, CommandLine, Stdin},
    cli_agent::ProcessPlan,
    event::Mode,
    registry::Agent as _,
    request::Permissions,
};
use ostler_sim::{model, scripted};
use serde_json::{Value, json};
use tokio::runtime::Runtime;

const OSTLER: &str = env!("CARGO_BIN_EXE_ostler");

/// How often a turn in a process that is there is measured.
const WARM_ROUNDS: usize = 100;
/// How often a turn with a process of its own is.
const COLD_ROUNDS: usize = 10;

/// How long a turn took, in milliseconds.
#[derive(Clone, Copy)]
struct Took {
    first_text: f64,
    total: f64,
}

fn main() -> ExitCode {
    let place = tempfile::Builder::new().prefix("ow").tempdir().unwrap();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let mut fine = true;
    println!("warm, scripted agent (limit: 1 ms a turn over a raw client)");
    for spec in warm_agents() {
        let bench = Bench::scripted(place.path(), spec, &runtime);
        let (over, _) = bench.warm(WARM_ROUNDS);
        fine &= over <= 1.0;
    }
    match std::env::var_os("OSTLER_TEST_CLIS") {
        None => println!("\nreal CLIs: skipped, OSTLER_TEST_CLIS does not say where they are"),
        Some(clis) => {
            println!("\nwarm, real CLIs (limit: 5 ms or 10 % a turn over a raw client)");
            let sim = runtime.block_on(model::Sim::start(model::Options::default())).unwrap();
            for spec in warm_agents() {
                let bench = Bench::real(place.path(), spec, &runtime, Path::new(&clis), &sim);
                let (over, raw) = bench.warm(WARM_ROUNDS);
                fine &= over <= 5.0 || over <= raw * 0.1;
                bench.cold(COLD_ROUNDS);
                bench.memory(10);
            }
            runtime.block_on(sim.stop());
        }
    }
    println!("\nlimits {}", if fine { "hold" } else { "DO NOT HOLD" });
    ExitCode::from(u8::from(!fine))
}

/// The agents that the minimal client below can speak with.
const RAW: [&str; 3] = ["claude", "codex", "pi"];

fn warm_agents() -> impl Iterator<Item = &'static AgentSpec> {
    AGENTS.iter().copied().filter(|spec| RAW.contains(&&*spec.name))
}

/// One agent with everything it needs.
struct Bench<'a> {
    place: PathBuf,
    runtime: &'a Runtime,
    spec: &'static AgentSpec,
    agent: CliAgent,
    host: Host,
    request: TurnRequest,
    /// The arguments of `ostler run` for the same turn.
    arguments: Vec<String>,
    base: Vec<(OsString, OsString)>,
    is_real: bool,
}

impl<'a> Bench<'a> {
    fn scripted(place: &Path, spec: &'static AgentSpec, runtime: &'a Runtime) -> Self {
        let program = place.join(format!("{}-agent", spec.name));
        let steps = json!([{ "do": "agent", "name": spec.name }]);
        fs::write(&program, scripted::executable(&format!("{OSTLER} scripted"), &steps)).unwrap();
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
        Self::new(place, spec, runtime, &program, "/usr/bin:/bin", None)
    }

    fn real(
        place: &Path,
        spec: &'static AgentSpec,
        runtime: &'a Runtime,
        clis: &Path,
        sim: &model::Sim,
    ) -> Self {
        let folder = clis.join("node_modules/.bin");
        let path = format!("{}:/usr/bin:/bin", folder.display());
        let settings = model::settings(&spec.name, &sim.base_url()).unwrap();
        Self::new(place, spec, runtime, &folder.join(&*spec.program), &path, Some(settings))
    }

    fn new(
        place: &Path,
        spec: &'static AgentSpec,
        runtime: &'a Runtime,
        program: &Path,
        path: &str,
        settings: Option<model::Settings>,
    ) -> Self {
        let is_real = settings.is_some();
        let kind = if is_real { "real" } else { "scripted" };
        let place = place.join(kind).join(&*spec.name);
        let (work, data) = (place.join("work"), place.join("data"));
        let home = data.join("homes").join(&*spec.name);
        for folder in [&work, &home, &place.join("tmp")] {
            fs::create_dir_all(folder).unwrap();
        }
        let base: Vec<(OsString, OsString)> = vec![
            ("PATH".into(), path.into()),
            ("HOME".into(), home.clone().into()),
            ("OSTLER_DATA_DIR".into(), data.into()),
            ("TMPDIR".into(), place.join("tmp").into()),
        ];
        let mut request = TurnRequest::new("hello", &work);
        request.options.home = Some(home.clone());
        request.options.permissions = Permissions::ReadOnly;
        let mut arguments: Vec<String> =
            ["run", "--agent", &spec.name, "--permissions", "read-only", "--isolated"]
                .map(Into::into)
                .to_vec();
        arguments.extend(["--bin".to_owned(), program.display().to_string()]);
        if let Some(settings) = settings {
            settings.write_files(&home).unwrap();
            for (name, value) in settings.environment {
                arguments.extend(["--env".to_owned(), format!("{name}={value}")]);
                request.options.env.push((name.to_owned(), Some(value)));
            }
            for argument in settings.arguments {
                arguments.extend(["--agent-arg".to_owned(), argument.clone()]);
                request.options.extra_args.push(argument);
            }
            if let Some(model) = settings.model {
                arguments.extend(["--model".to_owned(), model.to_owned()]);
                request.options.model = Some(model.to_owned());
            }
        }
        let host = Host::new(HostConfig::from_environment(base.iter().cloned().collect()));
        let agent =
            CliAgent::new(agent::find(&spec.name).unwrap(), host.clone()).with_program(program);
        Self { place, runtime, spec, agent, host, request, arguments, base, is_real }
    }

    /// Measures turns in processes that are there; returns the medians of what
    /// Ostler adds and of the raw turns.
    fn warm(&self, rounds: usize) -> (f64, f64) {
        let plan = self.plan(Mode::Warm);
        let mut raw = Raw::start(&self.spec.name, self.command(&plan), &self.request);
        let mut memo = None;
        let (mut direct, mut through) = (Vec::new(), Vec::new());
        for round in 0..rounds + 5 {
            self.rest();
            let one = raw.turn("hello");
            self.rest();
            let other = self.ostler_turn(&mut memo);
            // The first rounds start the processes and fill caches.
            if round >= 5 {
                direct.push(one);
                through.push(other);
            }
        }
        drop(raw);
        let name = &self.spec.name;
        let of = |took: &[Took], of: fn(&Took) -> f64| took.iter().map(of).collect::<Vec<_>>();
        let over = |of: fn(&Took) -> f64| -> Vec<f64> {
            direct.iter().zip(&through).map(|(one, other)| of(other) - of(one)).collect()
        };
        let first: fn(&Took) -> f64 = |took| took.first_text;
        let total: fn(&Took) -> f64 = |took| took.total;
        for (what, get) in [("first text", first), ("whole turn", total)] {
            println!(
                "  {name:<8} n={:<4} {what} ms  raw {}  ostler {}  over {}",
                direct.len(),
                quartiles(of(&direct, get)),
                quartiles(of(&through, get)),
                quartiles(over(get)),
            );
        }
        (median(over(total)), median(of(&direct, total)))
    }

    /// Waits until a CLI's connection to its model has come to rest: used again
    /// within 40 ms, it can meet a delayed acknowledgement, and the one of the
    /// two that comes sooner would pay for it.
    fn rest(&self) {
        if self.is_real {
            std::thread::sleep(Duration::from_millis(60));
        }
    }

    /// Measures turns with a process of their own.
    fn cold(&self, rounds: usize) {
        let plan = self.plan(Mode::OneShot);
        let stdin = match &plan.line.stdin {
            Stdin::Bytes(bytes) => bytes.clone(),
            Stdin::Null | Stdin::Open => Vec::new(),
        };
        let (mut direct, mut through, mut warm) = (Vec::new(), Vec::new(), Vec::new());
        let mut memo = None;
        self.ostler_turn(&mut memo);
        for round in 0..rounds + 1 {
            let one = run(&mut self.command(&plan), &stdin);
            let mut ostler = Command::new(OSTLER);
            ostler.args(&self.arguments).args(["--output", "json"]).env_clear();
            ostler.envs(self.base.iter().map(|(name, value)| (name, value)));
            let other = run(ostler.current_dir(self.place.join("work")), b"hello");
            let kept = self.ostler_turn(&mut memo).total;
            if round >= 1 {
                direct.push(one);
                through.push(other);
                warm.push(kept);
            }
        }
        let ratio = median(direct.clone()) / median(warm.clone());
        println!(
            "  {:<8} n={rounds:<4} whole turn ms  cold {}  cold ostler {}  kept ostler {}  {ratio:.1} times faster",
            self.spec.name,
            quartiles(direct),
            quartiles(through),
            quartiles(warm),
        );
    }

    /// Measures the memory of sessions that wait.
    fn memory(&self, n_sessions: usize) {
        for _ in 0..n_sessions {
            self.ostler_turn(&mut None);
        }
        let (n_processes, kilobytes) = resident(&self.place.join("tmp"));
        println!(
            "  {:<8} {} idle sessions: {n_processes} processes, {} MB resident",
            self.spec.name,
            n_sessions + 2,
            kilobytes / 1000
        );
        self.runtime.block_on(self.host.shutdown(Duration::from_secs(20)));
    }

    fn plan(&self, mode: Mode) -> ProcessPlan {
        let request = TurnRequest { mode, ..self.request.clone() };
        let plan = self.agent.plan(&request).unwrap().process().unwrap();
        let CommandLine { files, home_files, .. } = &plan.line;
        let home = self.request.options.home.clone().unwrap();
        let of_home = home_files.iter().map(|(path, text)| (home.join(path), text));
        for (path, text) in files.iter().map(|(path, text)| (path.clone(), text)).chain(of_home) {
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        plan
    }

    /// Returns the CLI itself, as Ostler would start it.
    fn command(&self, plan: &ProcessPlan) -> Command {
        let mut command = Command::new(&plan.program);
        command
            .args(&plan.line.args)
            .env_clear()
            .envs(plan.environment.iter().map(|(name, value)| (name, value)))
            .env("TMPDIR", &self.place)
            .current_dir(self.place.join("work"));
        command
    }

    fn ostler_turn(&self, memo: &mut Option<Memo>) -> Took {
        let mut request = TurnRequest { mode: Mode::Warm, ..self.request.clone() };
        if let Some(memo) = memo.take() {
            request = request.resume(memo);
        }
        self.runtime.block_on(async {
            let started = Instant::now();
            let mut first_text = None;
            let mut turn = self.agent.start(request).await.unwrap();
            while let Some(event) = turn.next().await {
                match event.body {
                    EventBody::Output { .. } => {
                        first_text.get_or_insert_with(|| ms(started));
                    }
                    EventBody::Complete(report) => {
                        let total = ms(started);
                        assert_eq!(report.mode, Mode::Warm);
                        assert!(report.error.is_none(), "{:?}", report.error);
                        *memo = report.memo;
                        return Took { first_text: first_text.unwrap_or(total), total };
                    }
                    _ => {}
                }
            }
            panic!("a turn without an end")
        })
    }
}

/// A minimal client of a CLI's own protocol.
struct Raw {
    name: &'static str,
    child: Child,
    stdin: ChildStdin,
    lines: Lines<BufReader<ChildStdout>>,
    n_calls: u64,
    thread: Value,
}

impl Raw {
    fn start(name: &'static str, mut command: Command, request: &TurnRequest) -> Self {
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let stdin = child.stdin.take().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut raw = Self { name, child, stdin, lines, n_calls: 0, thread: Value::Null };
        if name == "codex" {
            raw.call("initialize", &json!({ "clientInfo": { "name": "bench", "version": "1" } }));
            raw.send(&json!({ "method": "initialized" }));
            let options = &request.options;
            let started = raw.call(
                "thread/start",
                &json!({ "cwd": options.cwd, "model": options.model,
                         "approvalPolicy": "never", "sandbox": "read-only" }),
            );
            raw.thread = started["result"]["thread"]["id"].clone();
        }
        raw
    }

    fn turn(&mut self, prompt: &str) -> Took {
        let started = Instant::now();
        let (message, first_mark, last_mark) = match self.name {
            "claude" => (
                json!({ "type": "user", "message": { "role": "user", "content": prompt } }),
                "text_delta",
                r#""type":"result""#,
            ),
            "codex" => {
                self.n_calls += 1;
                let input = json!([{ "type": "text", "text": prompt, "text_elements": [] }]);
                let params = json!({ "threadId": self.thread, "input": input });
                (
                    json!({ "id": self.n_calls, "method": "turn/start", "params": params }),
                    "item/agentMessage/delta",
                    r#""method":"turn/completed""#,
                )
            }
            "pi" => (
                json!({ "type": "prompt", "message": prompt }),
                "text_delta",
                r#""type":"agent_settled""#,
            ),
            other => panic!("no raw client for {other}"),
        };
        self.send(&message);
        let mut first_text = None;
        loop {
            let line = self.lines.next().expect("the turn ends before the process").unwrap();
            if line.contains(first_mark) {
                first_text.get_or_insert_with(|| ms(started));
            }
            if line.contains(last_mark) {
                let total = ms(started);
                return Took { first_text: first_text.unwrap_or(total), total };
            }
        }
    }

    fn call(&mut self, method: &str, params: &Value) -> Value {
        self.n_calls += 1;
        self.send(&json!({ "id": self.n_calls, "method": method, "params": params }));
        loop {
            let line = self.lines.next().expect("an answer").unwrap();
            let message: Value = serde_json::from_str(&line).unwrap();
            if message["id"] == self.n_calls && message.get("method").is_none() {
                return message;
            }
        }
    }

    fn send(&mut self, message: &Value) {
        self.stdin.write_all(format!("{message}\n").as_bytes()).unwrap();
    }
}

impl Drop for Raw {
    fn drop(&mut self) {
        // It has nothing to lose, and its tools are done.
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

/// Runs a command to its end with this input; returns how long it took.
fn run(command: &mut Command, input: &[u8]) -> f64 {
    let started = Instant::now();
    let mut child =
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    // A program that does not read its input closes it; that is not our trouble.
    child.stdin.take().unwrap().write_all(input).ok();
    let status = child.wait().unwrap();
    assert!(status.success(), "{command:?} ended with {status}");
    ms(started)
}

/// Counts the processes with a folder for temporary files below this one, and
/// adds up their resident kilobytes, keepers apart.
fn resident(below: &Path) -> (usize, u64) {
    let mark = format!("TMPDIR={}", below.join("ostler-").display());
    let mut found = (0, 0);
    for entry in fs::read_dir("/proc").unwrap().flatten() {
        let read = |name: &str| fs::read(entry.path().join(name)).unwrap_or_default();
        let variables = read("environ");
        if String::from_utf8_lossy(&variables).split('\0').any(|one| one.starts_with(&mark)) {
            let status = String::from_utf8(read("status")).unwrap_or_default();
            let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
            let kilobytes =
                line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
            found.0 += 1;
            found.1 += kilobytes.unwrap_or(0);
        }
    }
    found
}

fn ms(since: Instant) -> f64 {
    since.elapsed().as_secs_f64() * 1000.0
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn quartiles(mut values: Vec<f64>) -> String {
    values.sort_by(f64::total_cmp);
    let at = |quarter: usize| values[(values.len() - 1) * quarter / 4];
    format!("{:6.2} ({:.2}–{:.2})", at(2), at(1), at(3))
}

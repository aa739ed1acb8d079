//! What every test of the program needs: a place of its own, the program with
//! a clean environment, and a look at what it printed.

use std::{
    fs,
    io::{BufRead, BufReader, Write},
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::{Child, ChildStdout, Command, Stdio},
    time::{Duration, Instant},
};

use ostler_sim::{model, scripted};
use serde_json::Value;
use tempfile::TempDir;

/// The longest that anything in these tests may take.
pub(crate) const LIMIT: Duration = Duration::from_secs(100);

/// A place of its own for one test.
pub(crate) struct Place {
    dir: TempDir,
}

impl Place {
    pub(crate) fn new() -> Self {
        let dir = tempfile::Builder::new().prefix("ot").tempdir().unwrap();
        for folder in ["home", "data", "tmp", "work"] {
            fs::create_dir(dir.path().join(folder)).unwrap();
        }
        Self { dir }
    }

    pub(crate) fn path(&self, relative: &str) -> PathBuf {
        self.dir.path().join(relative)
    }

    pub(crate) fn work(&self) -> PathBuf {
        self.path("work")
    }

    /// Returns the program with a clean environment, not started yet.
    pub(crate) fn ostler(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_ostler"));
        command
            .args(args)
            .env_clear()
            .env("PATH", "/usr/local/bin:/usr/bin:/bin")
            .env("HOME", self.path("home"))
            .env("OSTLER_DATA_DIR", self.path("data"))
            .env("TMPDIR", self.path("tmp"))
            .current_dir(self.work())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    /// Runs the program to its end.
    pub(crate) fn run(&self, args: &[&str]) -> Outcome {
        Outcome::of(self.ostler(args))
    }

    /// Runs the program to its end with this on its standard input.
    pub(crate) fn run_with_input(&self, args: &[&str], input: &[u8]) -> Outcome {
        let mut command = self.ostler(args);
        command.stdin(Stdio::piped());
        Outcome::of_input(command, Some(input.to_vec()))
    }

    /// Writes an executable file that plays these steps as the scripted agent.
    pub(crate) fn script(&self, steps: &Value) -> PathBuf {
        let interpreter = format!("{} scripted", env!("CARGO_BIN_EXE_ostler"));
        let path = self.path("agent");
        fs::write(&path, scripted::executable(&interpreter, steps)).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        path
    }

    /// Writes an executable file into the place's folder of programs.
    pub(crate) fn program(&self, name: &str, text: &str) -> PathBuf {
        fs::create_dir_all(self.path("bin")).unwrap();
        let path = self.path("bin").join(name);
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        path
    }

    /// Does what a page says first to write a secret into a file: its first block for a
    /// shell, with the secret pasted.
    pub(crate) fn write_down_secret(&self, page: &str, file: &str, secret: &str) {
        let lines = page.lines().map(str::trim_start).skip_while(|line| *line != "```sh").skip(1);
        let block: Vec<&str> = lines.take_while(|line| *line != "```").collect();
        let mut command = Command::new("sh");
        command
            .args(["-euc", &block.join("\n")])
            .env_clear()
            .env("PATH", "/usr/local/bin:/usr/bin:/bin")
            .env("HOME", self.path("home"))
            .current_dir(self.work())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let done = Outcome::of_input(command, Some(format!("{secret}\n").into_bytes()));
        assert_eq!((done.code, done.stderr.as_str()), (Some(0), ""), "{block:?}");
        let file = self.path("home").join(file.strip_prefix("~/").unwrap());
        assert_eq!(fs::read_to_string(&file).unwrap(), format!("{secret}\n"));
        assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    }

    /// Returns whether no turn left its private folder behind.
    pub(crate) fn is_swept(&self) -> bool {
        let count = |path: &Path| fs::read_dir(path).map_or(0, Iterator::count);
        fs::read_dir(self.path("tmp")).unwrap().all(|entry| count(&entry.unwrap().path()) == 0)
    }
}

/// How a run of the program ended.
pub(crate) struct Outcome {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Outcome {
    fn of(command: Command) -> Self {
        Self::of_input(command, None)
    }

    pub(crate) fn of_input(command: Command, input: Option<Vec<u8>>) -> Self {
        Self::within(LIMIT, command, input)
    }

    /// Runs a program that may take longer than others to its end.
    pub(crate) fn within(limit: Duration, mut command: Command, input: Option<Vec<u8>>) -> Self {
        let mut child = command.spawn().unwrap();
        let writer = input.map(|input| {
            let mut stdin = child.stdin.take().unwrap();
            std::thread::spawn(move || stdin.write_all(&input).ok())
        });
        let stdout = collect(child.stdout.take().unwrap());
        let stderr = collect(child.stderr.take().unwrap());
        let code = wait_within(limit, &mut child);
        if let Some(writer) = writer {
            writer.join().unwrap();
        }
        Self { code, stdout: stdout.join().unwrap(), stderr: stderr.join().unwrap() }
    }

    /// Returns the one object of `--output json`.
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.stdout)
            .unwrap_or_else(|error| panic!("{error}: {}\n{}", self.stdout, self.stderr))
    }

    /// Returns the events of `--output stream-json`, after checking what holds for all turns.
    pub(crate) fn events(&self) -> Events {
        Events::check(self.stdout.lines().map(parse).collect())
    }
}

pub(crate) fn parse(line: &str) -> Value {
    serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"))
}

fn collect(mut from: impl std::io::Read + Send + 'static) -> std::thread::JoinHandle<String> {
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        from.read_to_end(&mut bytes).unwrap();
        String::from_utf8(bytes).unwrap()
    })
}

fn wait(child: &mut Child) -> Option<i32> {
    wait_within(LIMIT, child)
}

fn wait_within(limit: Duration, child: &mut Child) -> Option<i32> {
    let status = until_within(limit, "the program has ended", || child.try_wait().unwrap());
    status.code()
}

/// Asks again and again, within the limit, until there is an answer.
pub(crate) fn until<T>(what: &str, ask: impl FnMut() -> Option<T>) -> T {
    until_within(LIMIT, what, ask)
}

/// Asks again and again, within a limit of one's own.
pub(crate) fn until_within<T>(
    limit: Duration,
    what: &str,
    mut ask: impl FnMut() -> Option<T>,
) -> T {
    let start = Instant::now();
    loop {
        if let Some(answer) = ask() {
            return answer;
        }
        assert!(start.elapsed() < limit, "waited too long until {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// The events of one turn.
pub(crate) struct Events(Vec<Value>);

impl Events {
    /// Checks the invariants of every turn: numbers without gaps, one id, one end.
    pub(crate) fn check(events: Vec<Value>) -> Self {
        let last = events.last().expect("a turn has events");
        assert_eq!(last["type"], "complete", "{last}");
        let completes = events.iter().filter(|event| event["type"] == "complete").count();
        assert_eq!(completes, 1);
        for (event, number) in events.iter().zip(1..) {
            assert_eq!(event["seq"], number, "{event}");
            assert_eq!(event["turn"], last["turn"], "{event}");
            let at: jiff::Timestamp = event["at"].as_str().unwrap().parse().unwrap();
            assert!(at.as_second() > 0);
        }
        let failed = last["is_error"] == true;
        let error = events.iter().rev().nth(1).filter(|event| event["type"] == "error");
        assert_eq!(error.is_some(), failed, "a failed turn has its error just before the end");
        if let Some(error) = error {
            assert_eq!(error["kind"], last["error"]["kind"]);
        }
        Self(events)
    }

    pub(crate) fn last(&self) -> &Value {
        self.0.last().unwrap()
    }

    pub(crate) fn of_type<'a>(&'a self, kind: &'a str) -> impl Iterator<Item = &'a Value> {
        self.0.iter().filter(move |event| event["type"] == kind)
    }

    /// Returns the texts of a kind, put together.
    pub(crate) fn text(&self, kind: &str) -> String {
        self.of_type(kind).filter_map(|event| event["text"].as_str()).collect()
    }

    /// Returns the statuses with a code.
    pub(crate) fn statuses(&self, code: &str) -> Vec<&Value> {
        self.of_type("status").filter(|event| event["code"] == code).collect()
    }

    pub(crate) fn types(&self) -> Vec<&str> {
        self.0.iter().filter_map(|event| event["type"].as_str()).collect()
    }
}

/// A run of the program that is still going on, read event by event.
pub(crate) struct Running {
    child: Child,
    lines: std::io::Lines<BufReader<ChildStdout>>,
    seen: Vec<Value>,
}

impl Running {
    pub(crate) fn start(mut command: Command) -> Self {
        command.stderr(Stdio::null());
        let mut child = command.spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        Self { child, lines, seen: Vec::new() }
    }

    /// Reads on until an event is the one.
    pub(crate) fn wait_for(&mut self, is_it: impl Fn(&Value) -> bool) -> Value {
        loop {
            let line = self.lines.next().expect("the event comes before the end").unwrap();
            let event = parse(&line);
            self.seen.push(event.clone());
            if is_it(&event) {
                return event;
            }
        }
    }

    pub(crate) fn signal(&self, name: &str) {
        signal(self.child.id(), name);
    }

    pub(crate) fn is_running(&mut self) -> bool {
        self.child.try_wait().unwrap().is_none()
    }

    /// Reads to the end and returns the exit code with all events.
    pub(crate) fn finish(mut self) -> (Option<i32>, Events) {
        for line in &mut self.lines {
            self.seen.push(parse(&line.unwrap()));
        }
        let code = wait(&mut self.child);
        (code, Events::check(std::mem::take(&mut self.seen)))
    }

    /// Waits for the end without caring for what was printed.
    pub(crate) fn wait(mut self) -> Option<i32> {
        wait(&mut self.child)
    }
}

impl Drop for Running {
    /// A failed test leaves nothing running: the keeper ends what Ostler started.
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

/// Returns all files below a folder; none if there is no such folder.
pub(crate) fn files_below(folder: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    let paths = entries.map(|entry| entry.unwrap().path());
    paths.flat_map(|path| if path.is_dir() { files_below(&path) } else { vec![path] }).collect()
}

/// Returns the code that a stranger was told, by which he is let in.
pub(crate) fn pairing_code(told: &str) -> String {
    let (_, rest) = told.split_once("ostler pairing approve ").expect(told);
    rest.chars().take_while(char::is_ascii_alphanumeric).collect()
}

/// Sends a signal to a process that a test started.
pub(crate) fn signal(pid: u32, name: &str) {
    let status = Command::new("kill").args(["-s", name, &pid.to_string()]).status().unwrap();
    assert!(status.success());
}

/// Returns the live processes whose command line holds a word that only this test uses.
pub(crate) fn processes_with(word: &str) -> Vec<u32> {
    let own = std::process::id();
    fs::read_dir("/proc")
        .unwrap()
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .filter(|pid| *pid != own && is_live(*pid))
        .filter(|pid| {
            let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            String::from_utf8_lossy(&line).contains(word)
        })
        .collect()
}

/// Returns whether a process exists and is more than an entry that waits to be collected.
pub(crate) fn is_live(pid: u32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let state = stat.rsplit_once(") ").and_then(|(_, rest)| rest.chars().next());
    !matches!(state, None | Some('Z' | 'X'))
}

/// A simulated model with the runtime it lives in.
pub(crate) struct Model {
    sim: Option<model::Sim>,
    runtime: tokio::runtime::Runtime,
}

impl Model {
    pub(crate) fn start() -> Self {
        Self::with_fallback("text")
    }

    /// Starts one that does this for prompts without a word.
    pub(crate) fn with_fallback(word: &str) -> Self {
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
        let runtime = runtime.unwrap();
        let options = model::Options { fallback: word.to_owned(), ..model::Options::default() };
        let sim = runtime.block_on(model::Sim::start(options)).unwrap();
        Self { sim: Some(sim), runtime }
    }

    fn sim(&self) -> &model::Sim {
        self.sim.as_ref().unwrap()
    }

    pub(crate) fn url(&self) -> String {
        self.sim().base_url()
    }

    /// Returns the requests that asked the model for something.
    pub(crate) fn requests(&self) -> Vec<std::sync::Arc<model::Recorded>> {
        self.sim().requests()
    }
}

impl Drop for Model {
    fn drop(&mut self) {
        if let Some(sim) = self.sim.take() {
            self.runtime.block_on(sim.stop());
        }
    }
}

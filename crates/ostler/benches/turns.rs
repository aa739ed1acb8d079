//! What Ostler costs on top of the CLI it runs.
//!
//! Every measurement is a pair in one run: the CLI run directly, then the same
//! command line through `ostler run`, again and again, interleaved, so that a
//! noisy machine disturbs both alike. Printed are medians with quartiles, of
//! each side and of the paired differences. CPU is user and system time of the
//! process with everything it started and waited for.
//!
//! `scripts/bench` runs this. It exits with 1 when a limit does not hold.
#![expect(
    clippy::print_stdout,
    clippy::disallowed_methods,
    clippy::unwrap_used,
    clippy::zombie_processes,
    clippy::indexing_slicing,
    unsafe_code,
    reason = "a benchmark prints, starts programs, asks the kernel what they used, and may give up"
)]

use std::{
    ffi::OsString,
    fs,
    io::Write as _,
    mem::MaybeUninit,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    process::{Command, ExitCode, Stdio},
    time::{Duration, Instant},
};

use ostler_core::{
    CliAgent, Host, HostConfig, TurnRequest,
    agent::{self, AGENTS, Stdin},
    request::Permissions,
};
use ostler_sim::{model, scripted};
use serde_json::json;

const OSTLER: &str = env!("CARGO_BIN_EXE_ostler");

/// What one process used.
#[derive(Clone, Copy)]
struct Cost {
    wall: Duration,
    cpu: Duration,
    max_rss_kb: i64,
}

fn main() -> ExitCode {
    let place = tempfile::Builder::new().prefix("ob").tempdir().unwrap();
    let mut fine = true;
    println!("one-shot, scripted agent (limits: 10 ms wall, 15 ms CPU over the direct run)");
    for spec in AGENTS {
        let (wall, cpu) = scripted_pair(place.path(), &spec.name, 60);
        fine &= wall <= 10.0 && cpu <= 15.0;
    }
    println!(
        "\nmemory while 100 MB of lines up to 64 KiB pass through (limit: 30 MB + the longest line)"
    );
    let rss = memory(place.path());
    fine &= rss <= 30.0 + 0.064;
    match std::env::var_os("OSTLER_TEST_CLIS") {
        None => println!("\nreal CLIs: skipped, OSTLER_TEST_CLIS does not say where they are"),
        Some(clis) => {
            println!(
                "\none-shot, real CLIs against the simulated model (their own spread is larger than 10 ms)"
            );
            real_pairs(place.path(), Path::new(&clis), 10);
        }
    }
    println!("\nlimits {}", if fine { "hold" } else { "DO NOT HOLD" });
    ExitCode::from(u8::from(!fine))
}

/// Returns the medians of the paired differences in milliseconds: wall and CPU.
fn scripted_pair(place: &Path, name: &str, rounds: usize) -> (f64, f64) {
    let program = script(place, name, &json!([{ "do": "agent", "name": name }]));
    let setup = Setup { path: "/usr/bin:/bin".to_owned(), ..Setup::default() };
    pair(place, name, &program, &setup, rounds)
}

fn real_pairs(place: &Path, clis: &Path, rounds: usize) {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let sim = runtime.block_on(model::Sim::start(model::Options::default())).unwrap();
    let folder = clis.join("node_modules/.bin");
    for spec in AGENTS {
        let settings = model::settings(&spec.name, &sim.base_url()).unwrap();
        // Once for the direct run, once for the isolated one.
        for home in ["home", &format!("data/homes/{}", spec.name)] {
            settings.write_files(&place.join(home)).unwrap();
        }
        let setup = Setup {
            path: format!("{}:/usr/bin:/bin", folder.display()),
            env: settings.environment.iter().map(|(n, v)| ((*n).to_owned(), v.clone())).collect(),
            arguments: settings.arguments,
            model: settings.model.map(str::to_owned),
        };
        pair(place, &spec.name, &folder.join(&*spec.program), &setup, rounds);
    }
    runtime.block_on(sim.stop());
}

/// What a CLI needs beside its program.
#[derive(Default)]
struct Setup {
    path: String,
    env: Vec<(String, String)>,
    arguments: Vec<String>,
    model: Option<String>,
}

/// Runs a command line directly and through Ostler, in turns.
fn pair(place: &Path, name: &str, program: &Path, setup: &Setup, rounds: usize) -> (f64, f64) {
    let Setup { env, arguments, .. } = setup;
    let (work, home) = (place.join("work"), place.join("home"));
    fs::create_dir_all(&work).unwrap();
    fs::create_dir_all(&home).unwrap();
    let mut request = TurnRequest::new("hello", &work);
    request.options.home = Some(home.clone());
    request.options.permissions = Permissions::ReadOnly;
    request.options.env = env.iter().map(|(n, v)| (n.clone(), Some(v.clone()))).collect();
    request.options.extra_args = arguments.clone();
    request.options.model.clone_from(&setup.model);
    let base: Vec<(OsString, OsString)> = vec![
        ("PATH".into(), setup.path.clone().into()),
        ("HOME".into(), home.into()),
        ("OSTLER_DATA_DIR".into(), place.join("data").into()),
        ("TMPDIR".into(), place.into()),
    ];
    let host = Host::new(HostConfig::from_environment(base.iter().cloned().collect()));
    let agent = CliAgent::new(agent::find(name).unwrap(), host).with_program(program);
    let plan = agent.plan(&request).unwrap();
    let of_home = plan
        .line
        .home_files
        .iter()
        .map(|(path, text)| (work.with_file_name("home").join(path), text));
    for (path, text) in plan.line.files.iter().map(|(p, t)| (p.clone(), t)).chain(of_home) {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    let stdin = match &plan.line.stdin {
        Stdin::Null | Stdin::Open => Vec::new(),
        Stdin::Bytes(bytes) => bytes.clone(),
    };
    let mut ostler_args: Vec<String> = ["run", "--agent", name, "--bin"].map(Into::into).to_vec();
    ostler_args.push(program.display().to_string());
    for word in ["--permissions", "read-only", "--isolated", "--output", "json"] {
        ostler_args.push(word.to_owned());
    }
    for (name, value) in env {
        ostler_args.extend(["--env".to_owned(), format!("{name}={value}")]);
    }
    for argument in arguments {
        ostler_args.extend(["--agent-arg".to_owned(), argument.clone()]);
    }
    if let Some(model) = &setup.model {
        ostler_args.extend(["--model".to_owned(), model.clone()]);
    }
    let (mut direct, mut through) = (Vec::new(), Vec::new());
    for round in 0..rounds + 2 {
        let one = measure(
            Command::new(&plan.program)
                .args(&plan.line.args)
                .env_clear()
                .envs(plan.environment.iter().map(|(n, v)| (n, v)))
                .env("TMPDIR", place)
                .current_dir(&work),
            &stdin,
        );
        let other = measure(
            Command::new(OSTLER)
                .args(&ostler_args)
                .env_clear()
                .envs(base.iter().map(|(n, v)| (n, v)))
                .current_dir(&work),
            b"hello",
        );
        // The first two rounds fill caches and homes.
        if round >= 2 {
            direct.push(one);
            through.push(other);
        }
    }
    print_pair(name, &direct, &through)
}

fn print_pair(name: &str, direct: &[Cost], through: &[Cost]) -> (f64, f64) {
    let wall = |cost: &Cost| ms(cost.wall);
    let cpu = |cost: &Cost| ms(cost.cpu);
    let over = |of: fn(&Cost) -> f64| -> Vec<f64> {
        direct.iter().zip(through).map(|(one, other)| of(other) - of(one)).collect()
    };
    let of = |costs: &[Cost], of: fn(&Cost) -> f64| costs.iter().map(of).collect::<Vec<_>>();
    let n = direct.len();
    println!(
        "  {name:<8} n={n:<3} wall ms  direct {}  ostler {}  over {}",
        quartiles(of(direct, wall)),
        quartiles(of(through, wall)),
        quartiles(over(wall))
    );
    println!(
        "  {:<8} {:<5} cpu ms   direct {}  ostler {}  over {}",
        "",
        "",
        quartiles(of(direct, cpu)),
        quartiles(of(through, cpu)),
        quartiles(over(cpu))
    );
    (median(over(wall)), median(over(cpu)))
}

/// Returns the largest resident size in MB.
fn memory(place: &Path) -> f64 {
    let lines = json!([
        { "do": "line", "text": r#"{"type":"thread.started","thread_id":"01a1e088-9109-7530-b2ac-e9fa07582dea"}"# },
        { "do": "flood", "bytes": 100_000_000, "line_bytes": 65_536,
          "template": r#"{"type":"item.completed","item":{"id":"item_{n}","type":"reasoning","text":"{pad}"}}"# },
        { "do": "line", "text": r#"{"type":"item.completed","item":{"id":"item_0","type":"agent_message","text":"done"}}"# },
        { "do": "line", "text": r#"{"type":"turn.completed","usage":{"input_tokens":1,"output_tokens":1}}"# },
    ]);
    let program = script(place, "flood", &lines);
    let cost = measure(
        Command::new(OSTLER)
            .args(["run", "--agent", "codex", "--bin"])
            .arg(program)
            .args(["--permissions", "read-only", "--output", "stream-json"])
            .env_clear()
            .env("PATH", "/usr/bin:/bin")
            .env("HOME", place)
            .env("TMPDIR", place)
            .current_dir(place),
        b"hello",
    );
    #[expect(clippy::cast_precision_loss, reason = "kilobytes fit")]
    let mb = cost.max_rss_kb as f64 / 1000.0;
    println!("  {mb:.1} MB at most, {:.2} s", cost.wall.as_secs_f64());
    mb
}

fn script(place: &Path, name: &str, steps: &serde_json::Value) -> PathBuf {
    let path = place.join(format!("{name}-agent"));
    fs::write(&path, scripted::executable(&format!("{OSTLER} scripted"), steps)).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    path
}

/// Runs a command to its end with this input and returns what it used.
fn measure(command: &mut Command, input: &[u8]) -> Cost {
    let start = Instant::now();
    let mut child =
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    // A program that does not read its input closes it; that is not our trouble.
    child.stdin.take().unwrap().write_all(input).ok();
    let mut usage = MaybeUninit::<libc::rusage>::zeroed();
    let mut status = 0;
    // SAFETY: both pointers are valid for the call, and the pid is that of a
    // child that nothing else waits for.
    let pid =
        unsafe { libc::wait4(child.id().cast_signed(), &raw mut status, 0, usage.as_mut_ptr()) };
    let wall = start.elapsed();
    assert!(pid > 0 && status == 0, "{command:?} ended with status {status}");
    // SAFETY: wait4 succeeded and filled it in; zeroed bytes are valid before that, too.
    let usage = unsafe { usage.assume_init() };
    let time = |t: libc::timeval| {
        Duration::from_secs(t.tv_sec.unsigned_abs())
            + Duration::from_micros(t.tv_usec.unsigned_abs())
    };
    Cost { wall, cpu: time(usage.ru_utime) + time(usage.ru_stime), max_rss_kb: usage.ru_maxrss }
}

fn ms(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1000.0
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn quartiles(mut values: Vec<f64>) -> String {
    values.sort_by(f64::total_cmp);
    let at = |quarter: usize| values[(values.len() - 1) * quarter / 4];
    format!("{:7.1} ({:.1}–{:.1})", at(2), at(1), at(3))
}

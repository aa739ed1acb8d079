//! The HTTP service of a gateway: how soon a prompt shows, how many requests it
//! answers, and what it costs to tell many what happens.

mod fanout;

use std::{
    net::TcpListener,
    path::Path,
    sync::atomic::{AtomicUsize, Ordering},
    time::{Duration, Instant},
};

use serde_json::{Value, json};
use tokio::runtime::Runtime;

use crate::{
    daemon::gateway::{Daemon, Ground},
    figures::{median, ms, quartiles},
    http::{Events, Http},
};

/// The agent that is played.
const AGENT: &str = "claudecode";
/// How many call at a time, each again when it was answered.
const CALLERS: usize = 64;
/// How long they do so for one measurement.
const SPAN: Duration = Duration::from_secs(2);
const ROUNDS: usize = 5;
/// How many prompts are timed.
const PROMPTS: usize = 50;

/// A gateway that serves a project.
pub(crate) struct Site {
    daemon: Daemon,
    port: u16,
    /// What every request says.
    headers: &'static str,
    /// `/projects/prj_…`.
    pub(crate) project: String,
}

impl Site {
    /// Starts one whose part `gateway` of the settings is this, with a project that
    /// asks this agent.
    pub(crate) fn new(place: &Path, gateway: &Value, agent: &str) -> Self {
        let mut settings = gateway.clone();
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        settings["listen"] = json!(format!("127.0.0.1:{port}"));
        let ground = Ground::new(place, &settings);
        let work = ground.work().canonicalize().unwrap();
        let api = json!({
            "roots": [work], "requests_per_key": 1_000_000, "requests_per_address": 1_000_000,
        });
        let ground = ground.with_part("api", &api);
        let daemon = Daemon::start(&ground);
        // It is used to the end of the program.
        let headers = format!("authorization: Bearer {}\r\n", ground.key()).leak();
        let mut http = Http::connect(port, headers);
        let project = json!({ "name": "bench", "directory": work, "agent_provider": agent });
        http.post("/projects", &project);
        let made = http.reply();
        let project = format!("/projects/{}", made["data"]["id"].as_str().unwrap());
        Self { daemon, port, headers, project }
    }

    pub(crate) fn connect(&self) -> Http {
        Http::connect(self.port, self.headers)
    }
}

/// Measures everything; returns whether the limits hold.
pub(crate) fn measure(place: &Path, runtime: &Runtime) -> bool {
    let place = place.join("http");
    println!("\nHTTP, a prompt and its events ({PROMPTS} each)");
    let site = Site::new(&place.join("prompts"), &json!({}), AGENT);
    prompts(&site);
    println!("\nHTTP, requests answered a second, {CALLERS} at a time");
    let path = site.project.clone();
    rate(&site, "a project read", |http| http.get(&path));
    site.daemon.stop();
    // One turn that never ends: everything else waits.
    let settings = json!({ "max_concurrent_turns": 1, "max_queue_depth": 1_000_000 });
    let site = Site::new(&place.join("intake"), &settings, AGENT);
    let path = format!("{}/prompt", site.project);
    let mut http = site.connect();
    http.post(&path, &json!({ "prompt": "sim:hang" }));
    http.reply();
    rate(&site, "a prompt accepted", |http| http.post(&path, &json!({ "prompt": "hello" })));
    site.daemon.stop();
    fanout::measure(&place, runtime)
}

/// Times prompts: each in a session of its own, and all in one.
fn prompts(site: &Site) {
    let mut events = site.connect().listen(&format!("{}/events", site.project));
    let mut http = site.connect();
    let mut session = Value::Null;
    for (what, is_kept) in [("a new session", false), ("the same session", true)] {
        let (mut accepted, mut first, mut text, mut total) =
            (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        for _ in 0..PROMPTS {
            let mut prompt = json!({ "prompt": "hello" });
            if is_kept {
                prompt["session_id"] = session.clone();
            }
            let started = Instant::now();
            http.post(&format!("{}/prompt", site.project), &prompt);
            http.reply();
            accepted.push(ms(started));
            first.push(until(&mut events, "started", started).0);
            text.push(until(&mut events, "output", started).0);
            let (took, complete) = until(&mut events, "complete", started);
            total.push(took);
            assert_eq!(complete["exit_code"], 0, "{complete}");
            session = complete["session_id"].clone();
        }
        println!("  {what:<18} n={PROMPTS:<4} accepted ms {}", quartiles(accepted));
        for (what, took) in [("first event", first), ("first text", text), ("the end", total)] {
            println!("  {:<18} {:<6} {what} ms {}", "", "", quartiles(took));
        }
    }
}

/// Waits for an event of this name; returns when it came, and what it is.
fn until(events: &mut Events, name: &str, started: Instant) -> (f64, Value) {
    loop {
        let line = events.next();
        let took = ms(started);
        let data: Value = serde_json::from_str(line.trim_start_matches("data:")).unwrap();
        if data["type"] == name {
            return (took, data);
        }
    }
}

/// Calls as often as can be, and prints how often that was.
fn rate(site: &Site, what: &str, call: impl Fn(&mut Http) + Sync) {
    let mut rates = Vec::new();
    for _ in 0..ROUNDS {
        let n_answered = AtomicUsize::new(0);
        let started = Instant::now();
        std::thread::scope(|scope| {
            for _ in 0..CALLERS {
                let mut http = site.connect();
                let (n_answered, call) = (&n_answered, &call);
                scope.spawn(move || {
                    while started.elapsed() < SPAN {
                        call(&mut http);
                        http.reply();
                        n_answered.fetch_add(1, Ordering::Relaxed);
                    }
                });
            }
        });
        let n_answered = u32::try_from(n_answered.into_inner()).unwrap();
        rates.push(f64::from(n_answered) / started.elapsed().as_secs_f64());
    }
    println!(
        "  {what:<18} n={ROUNDS:<4} a second {} (median {:.0})",
        quartiles(rates.clone()),
        median(rates)
    );
}

//! Many who follow a project, one of whom does not read: how long it takes until
//! the last one has an event, that nobody misses one, and what each takes of the
//! gateway's memory.

use std::{
    io::{Read as _, Write as _},
    net::TcpStream as Blocking,
    path::Path,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpSocket, TcpStream},
    runtime::Runtime,
    task::JoinSet,
    time,
};

use super::{AGENT, Site};
use crate::figures::quartiles;

const SUBSCRIBERS: usize = 5000;
/// How many prompts they follow, one after the other.
const PROMPTS: usize = 20;
/// How long the answers are, in bytes: all together are more than what is held for
/// somebody who does not read, so that the gateway has to wait for him.
const ANSWER: usize = 20_000;
/// How much the one who does not read lets the system take for him.
const SLOW_BUFFER: u32 = 4096;
/// How many connect at a time.
const AT_ONCE: usize = 64;
/// What a subscriber may take of the gateway's memory, its connection included.
const KILOBYTES_LIMIT: f64 = 40.0;
/// How long anything may take.
const PATIENCE: Duration = Duration::from_secs(120);
/// How long a gateway is left alone before its memory is looked at.
const REST: Duration = Duration::from_secs(2);

/// What came, to whomever last.
#[derive(Default)]
struct Arrivals {
    /// Of each event its number, when it was made, and when the last one had it; in
    /// milliseconds since 1970.
    events: Mutex<Vec<(i64, f64, f64)>>,
}

/// What a subscriber was told.
#[derive(Default)]
struct Reading {
    numbers: Vec<i64>,
    n_complete: usize,
    n_bytes: usize,
    rest: Vec<u8>,
}

fn now() -> f64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs_f64() * 1000.0
}

/// Measures it; returns whether the limits hold.
pub(super) fn measure(place: &Path, runtime: &Runtime) -> bool {
    let n_subscribers = std::env::var("OSTLER_BENCH_SUBSCRIBERS");
    let n_subscribers = n_subscribers.map_or(SUBSCRIBERS, |number| number.parse().unwrap());
    println!(
        "\nHTTP, {n_subscribers} who follow a project and one of them does not read (limits: \
         nothing lost, {KILOBYTES_LIMIT:.0} KB of memory each)"
    );
    raise_file_limit();
    let site = Site::new(&place.join("fanout"), &json!({}), AGENT);
    std::thread::sleep(REST);
    let before = site.daemon.memory();
    let fine = runtime.block_on(follow(&site, n_subscribers, before.resident));
    site.daemon.stop();
    fine
}

async fn follow(site: &Site, n_subscribers: usize, before: f64) -> bool {
    let request =
        format!("GET {}/events HTTP/1.1\r\nhost: 127.0.0.1\r\n{}\r\n", site.project, site.headers);
    let arrivals = Arc::new(Arrivals::default());
    let n_connected = Arc::new(AtomicUsize::new(0));
    let gate = Arc::new(tokio::sync::Semaphore::new(AT_ONCE));
    let mut slow = connect_slow(site.port).await;
    slow.write_all(request.as_bytes()).unwrap();
    let mut readers = JoinSet::new();
    for _ in 1..n_subscribers {
        let (gate, request, port) = (Arc::clone(&gate), request.clone(), site.port);
        let (arrivals, n_connected) = (Arc::clone(&arrivals), Arc::clone(&n_connected));
        readers.spawn(async move {
            let turn = gate.acquire().await.unwrap();
            let mut stream = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
            stream.write_all(request.as_bytes()).await.unwrap();
            let mut reading = Reading::default();
            let mut buffer = [0; 16_384];
            let length = stream.read(&mut buffer).await.unwrap();
            reading.take(&buffer[..length], None);
            n_connected.fetch_add(1, Ordering::Relaxed);
            drop(turn);
            while reading.n_complete < PROMPTS {
                let length = stream.read(&mut buffer).await.unwrap();
                assert_ne!(length, 0, "a stream ended");
                reading.take(&buffer[..length], Some(&arrivals));
            }
            // Kept until all are done, so that none is easier to serve than the others.
            (stream, reading)
        });
    }
    let all = async {
        while n_connected.load(Ordering::Relaxed) < n_subscribers - 1 {
            time::sleep(Duration::from_millis(10)).await;
        }
    };
    time::timeout(PATIENCE, all).await.unwrap();
    time::sleep(REST).await;
    let connected = site.daemon.memory().resident;
    let mut http = site.connect();
    let prompt = json!({ "prompt": format!("sim:echo={}", "x".repeat(ANSWER)) });
    for _ in 0..PROMPTS {
        http.post(&format!("{}/prompt?wait=20s", site.project), &prompt);
        http.reply();
    }
    let mut told = Vec::new();
    let all = async {
        while let Some(ended) = readers.join_next().await {
            told.push(ended.unwrap());
        }
    };
    time::timeout(PATIENCE, all).await.unwrap();
    let afterwards = site.daemon.memory().resident;
    let (_, Reading { numbers: expected, n_bytes, .. }) = &told[0];
    let n_short = told.iter().filter(|(_, reading)| reading.numbers != *expected).count();
    let behind = n_bytes.saturating_sub(arrived(&slow));
    let slow = read_late(&mut slow);
    let n_short = n_short + usize::from(slow != *expected);
    let events = arrivals.events.lock().unwrap().clone();
    let latencies: Vec<f64> = events.iter().map(|(_, made, last)| last - made).collect();
    let each = (connected - before) * 1000.0 / n_subscribers as f64;
    println!(
        "  {} events, {} KB each; {n_short} of {n_subscribers} missed or doubled something",
        expected.len(),
        n_bytes / 1000
    );
    println!("  {} KB waited until the one who did not read did so", behind / 1000);
    println!("  until the last has an event, ms {}", quartiles(latencies));
    println!(
        "  {each:.1} KB a subscriber ({before:.1} MB resident before, {connected:.1} connected, \
         {afterwards:.1} afterwards)"
    );
    // A slow reader that nobody had to wait for would prove nothing.
    n_short == 0 && behind > 0 && each <= KILOBYTES_LIMIT
}

/// Connects as somebody who takes little at a time.
async fn connect_slow(port: u16) -> Blocking {
    let socket = TcpSocket::new_v4().unwrap();
    socket.set_recv_buffer_size(SLOW_BUFFER).unwrap();
    let stream = socket.connect(([127, 0, 0, 1], port).into()).await.unwrap();
    let stream = stream.into_std().unwrap();
    stream.set_nonblocking(false).unwrap();
    stream
}

/// Returns how much has arrived that nobody has read, in bytes.
fn arrived(stream: &Blocking) -> usize {
    usize::try_from(rustix::io::ioctl_fionread(stream).unwrap()).unwrap()
}

/// Reads what was there all the time.
fn read_late(slow: &mut Blocking) -> Vec<i64> {
    slow.set_read_timeout(Some(PATIENCE)).unwrap();
    let (mut reading, mut buffer) = (Reading::default(), [0; 4096]);
    while reading.n_complete < PROMPTS {
        let length = slow.read(&mut buffer).unwrap();
        assert_ne!(length, 0, "the slow stream ended");
        reading.take(&buffer[..length], None);
    }
    reading.numbers
}

impl Reading {
    /// Takes what came, and notes when. The head of the answer and what is between
    /// chunks are no lines of events.
    fn take(&mut self, piece: &[u8], arrivals: Option<&Arrivals>) {
        self.n_bytes += piece.len();
        self.rest.extend_from_slice(piece);
        let at = now();
        while let Some(end) = self.rest.windows(2).position(|pair| pair == b"\n\n") {
            let frame: Vec<u8> = self.rest.drain(..end + 2).collect();
            let frame = String::from_utf8_lossy(&frame);
            let field =
                |name: &str| frame.lines().find_map(|line| line.strip_prefix(name)).unwrap_or("");
            let (name, data) = (field("event: "), field("data: "));
            let Ok(number) = field("id: ").parse::<i64>() else { continue };
            if name == "connected" || name == "heartbeat" {
                continue;
            }
            self.numbers.push(number);
            self.n_complete += usize::from(name == "complete");
            if let Some(arrivals) = arrivals {
                arrivals.note(number, at, || made(data));
            }
        }
    }
}

impl Arrivals {
    fn note(&self, number: i64, at: f64, made: impl FnOnce() -> f64) {
        let mut events = self.events.lock().unwrap();
        match events.iter_mut().rev().find(|(known, ..)| *known == number) {
            Some((_, _, last)) => *last = last.max(at),
            None => events.push((number, made(), at)),
        }
    }
}

/// Returns when an event was made.
fn made(data: &str) -> f64 {
    let data: Value = serde_json::from_str(data).unwrap();
    let at: jiff::Timestamp = data["at"].as_str().unwrap().parse().unwrap();
    at.as_millisecond() as f64
}

/// Lets this program have a connection for each.
fn raise_file_limit() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum }).unwrap();
}

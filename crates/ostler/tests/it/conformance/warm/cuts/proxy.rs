//! Stands between Ostler and OpenCode's server, and cuts its stream of events.
//!
//! Calls pass untouched. Each connection carries one request, so what it is for
//! is known from its first line.

use std::{
    io,
    net::SocketAddr,
    path::PathBuf,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt, copy_bidirectional},
    net::{TcpListener, TcpStream},
    sync::{Notify, watch},
    task::JoinSet,
    time::{Instant, timeout_at},
};

use crate::chance::Chance;

/// The proxy. Dropping it ends it.
pub(super) struct Proxy {
    pub(super) address: SocketAddr,
    state: Arc<State>,
    _tasks: JoinSet<()>,
}

struct State {
    /// The file in which the server's own address is written.
    upstream: PathBuf,
    cuts: watch::Sender<bool>,
    chance: Mutex<Chance>,
    counts: [AtomicU64; KINDS.len()],
    was_cut: Notify,
}

/// Where a stream is cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// Before anything comes back.
    Unanswered,
    /// Right after the head of the response.
    AfterHead,
    /// After so many bytes, whatever they are.
    Anywhere,
    /// Within an event.
    WithinEvent,
    /// Within a character of several bytes.
    WithinCharacter,
    /// Before it is told that a session does not work any more.
    BeforeIdle,
    /// Before a permission is asked for.
    BeforeAsked,
    /// After a while, when nothing else came.
    ByClock,
}

const KINDS: [Kind; 8] = [
    Kind::Unanswered,
    Kind::AfterHead,
    Kind::Anywhere,
    Kind::WithinEvent,
    Kind::WithinCharacter,
    Kind::BeforeIdle,
    Kind::BeforeAsked,
    Kind::ByClock,
];

/// One cut to be.
#[derive(Clone, Copy, Debug)]
struct Plan {
    kind: Kind,
    /// How many bytes pass at least.
    bytes: usize,
    /// How long it lasts at most.
    limit: Duration,
}

impl Proxy {
    pub(super) async fn start(upstream: PathBuf, seed: u64) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let state = Arc::new(State {
            upstream,
            cuts: watch::Sender::new(false),
            chance: Mutex::new(Chance::new(seed)),
            counts: Default::default(),
            was_cut: Notify::new(),
        });
        let mut tasks = JoinSet::new();
        tasks.spawn(accept(listener, Arc::clone(&state)));
        Self { address, state, _tasks: tasks }
    }

    /// Cuts the stream that is open, and from now on every one.
    pub(super) fn begin_to_cut(&self) {
        self.state.cuts.send_replace(true);
    }

    /// Waits until a stream is cut; not at all while none is.
    pub(super) async fn next_cut(&self) {
        if *self.state.cuts.borrow() {
            self.state.was_cut.notified().await;
        }
    }

    /// Returns whether there were cuts at every kind of place.
    pub(super) fn has_every_kind(&self) -> bool {
        self.state.counts.iter().all(|count| count.load(Ordering::Relaxed) > 0)
    }

    /// Returns how often a stream was cut.
    pub(super) fn n_cuts(&self) -> u64 {
        self.state.counts.iter().map(|count| count.load(Ordering::Relaxed)).sum()
    }

    /// Returns how often at each place.
    pub(super) fn counts(&self) -> String {
        let counts = KINDS.iter().zip(&self.state.counts);
        let counts = counts.map(|(kind, n)| format!("{kind:?} {}", n.load(Ordering::Relaxed)));
        counts.collect::<Vec<_>>().join(", ")
    }
}

async fn accept(listener: TcpListener, state: Arc<State>) {
    let mut connections = JoinSet::new();
    loop {
        let (client, _) = listener.accept().await.unwrap();
        while connections.try_join_next().is_some() {}
        let state = Arc::clone(&state);
        connections.spawn(async move {
            // Either side may go away at any time.
            serve(client, &state).await.ok();
        });
    }
}

async fn serve(mut client: TcpStream, state: &State) -> io::Result<()> {
    let (head, rest) = read_head(&mut client).await?;
    let is_stream = head.starts_with(b"GET /global/event");
    let plan =
        (is_stream && *state.cuts.borrow()).then(|| Plan::next(&mut state.chance.lock().unwrap()));
    if plan.is_some_and(|plan| plan.kind == Kind::Unanswered) {
        state.count(Kind::Unanswered);
        return Ok(());
    }
    let address = std::fs::read_to_string(&state.upstream)?;
    let mut server = TcpStream::connect(address.trim().trim_start_matches("http://")).await?;
    server.write_all(&closing(&head)).await?;
    server.write_all(&rest).await?;
    match plan {
        Some(plan) => {
            let kind = pass_until_cut(&mut client, &mut server, plan).await?;
            state.count(kind);
        }
        None => {
            let (head, rest) = read_head(&mut server).await?;
            client.write_all(&closing(&head)).await?;
            client.write_all(&rest).await?;
            let mut cuts = state.cuts.subscribe();
            tokio::select! {
                done = copy_bidirectional(&mut client, &mut server) => { done?; }
                _ = cuts.wait_for(|is_on| *is_on), if is_stream => state.count(Kind::ByClock),
            }
        }
    }
    Ok(())
}

/// Passes a stream on to where it is to be cut; returns where that was.
async fn pass_until_cut(
    client: &mut TcpStream,
    server: &mut TcpStream,
    plan: Plan,
) -> io::Result<Kind> {
    let deadline = Instant::now() + plan.limit;
    let (head, rest) = read_head(server).await?;
    client.write_all(&closing(&head)).await?;
    if plan.kind == Kind::AfterHead {
        return Ok(plan.kind);
    }
    let mut chunk = rest;
    let mut passed = 0;
    let mut buffer = vec![0; 64 * 1024];
    loop {
        if let Some(end) = plan.cut_in(passed, &chunk) {
            client.write_all(&chunk[..end]).await?;
            return Ok(plan.kind);
        }
        client.write_all(&chunk).await?;
        passed += chunk.len();
        let n_read = match timeout_at(deadline, server.read(&mut buffer)).await {
            Ok(n_read) => n_read?,
            Err(_) => return Ok(Kind::ByClock),
        };
        if n_read == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        chunk = buffer[..n_read].to_vec();
    }
}

impl Plan {
    fn next(chance: &mut Chance) -> Self {
        // The first two cost a longer wait each, so they are rarer.
        let kind = match chance.place(20) {
            0 => Kind::Unanswered,
            1 => Kind::AfterHead,
            2..=13 => Kind::Anywhere,
            14..=15 => Kind::WithinEvent,
            16 => Kind::WithinCharacter,
            17..=18 => Kind::BeforeIdle,
            _ => Kind::BeforeAsked,
        };
        let (bytes, limit_ms) = if kind == Kind::Anywhere {
            // The shortest are told only that they are connected.
            let most = [200, 1000, 5000][chance.place(3)];
            (chance.place(most), 20 + chance.place(150))
        } else {
            // Behind the first event, which says that the stream is open.
            (200, 500)
        };
        let limit = Duration::from_millis(limit_ms as u64);
        Self { kind, bytes, limit }
    }

    /// Returns where in this piece of the stream the cut is, if it is there.
    fn cut_in(&self, passed: usize, chunk: &[u8]) -> Option<usize> {
        let from = self.bytes.saturating_sub(passed);
        let rest = chunk.get(from..)?;
        let find = |wanted: &[u8]| rest.windows(wanted.len()).position(|found| found == wanted);
        match self.kind {
            Kind::Anywhere => Some(from),
            Kind::WithinEvent => Some((from + find(b"data: ")? + 10).min(chunk.len())),
            Kind::WithinCharacter => Some(from + rest.iter().position(|byte| *byte >= 0xc0)? + 1),
            Kind::BeforeIdle => event_before(chunk, from + find(b"\"idle\"")?),
            Kind::BeforeAsked => event_before(chunk, from + find(b"permission.asked")?),
            Kind::Unanswered | Kind::AfterHead | Kind::ByClock => None,
        }
    }
}

/// Returns where the event begins that is told at this place.
fn event_before(chunk: &[u8], at: usize) -> Option<usize> {
    chunk[..at].windows(6).rposition(|found| found == b"data: ")
}

impl State {
    fn count(&self, kind: Kind) {
        let at = KINDS.iter().position(|known| *known == kind).unwrap();
        self.counts[at].fetch_add(1, Ordering::Relaxed);
        self.was_cut.notify_waiters();
    }
}

/// Reads a head of HTTP, with what came behind it.
async fn read_head(from: &mut TcpStream) -> io::Result<(Vec<u8>, Vec<u8>)> {
    let mut bytes = Vec::new();
    let mut buffer = [0; 4096];
    loop {
        if let Some(at) = bytes.windows(4).position(|found| found == b"\r\n\r\n") {
            let rest = bytes.split_off(at + 4);
            return Ok((bytes, rest));
        }
        let n_read = from.read(&mut buffer).await?;
        if n_read == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        bytes.extend_from_slice(&buffer[..n_read]);
    }
}

/// Returns a head that says that the connection carries nothing else.
fn closing(head: &[u8]) -> Vec<u8> {
    let text = String::from_utf8_lossy(head);
    let lines = text.split("\r\n");
    let kept = lines.filter(|line| !line.to_ascii_lowercase().starts_with("connection:"));
    let mut lines: Vec<&str> = kept.collect();
    lines.insert(1, "Connection: close");
    lines.join("\r\n").into_bytes()
}

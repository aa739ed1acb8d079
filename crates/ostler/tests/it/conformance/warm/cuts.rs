//! OpenCode's stream of events is cut again and again, and nothing shows it.
//!
//! The CLI is the real one. A script starts it and tells Ostler the address of a
//! proxy in the place of the server's own. Every prompt is asked once without
//! cuts; then what each turn comes to has to be the same with them.

mod proxy;

use std::{
    collections::BTreeMap,
    os::unix::fs::PermissionsExt as _,
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use ostler_core::{
    CliAgent, EventBody, Memo, PoolLimits, TurnRequest,
    event::Status,
    permission::{Answer, Decision},
    registry::Agent as _,
    request::Permissions,
};
use tokio::{runtime::Runtime, task::JoinSet, time::timeout};

use self::proxy::Proxy;
use super::{Rig, until_all_gone};
use crate::{chance::Chance, conformance::OPENCODE};

const N_CUTS: u64 = 200;
const N_SESSIONS: usize = 4;
/// How many turns are a conversation: what is read anew after a cut grows with it.
const N_TURNS: usize = 10;
/// How many conversations a task has: the process does not take any number.
const N_CONVERSATIONS: usize = 6;
/// How many turns there are at most until there were enough cuts. Where the
/// machine is slow, there is more of a turn between two of them.
const MAX_TURNS: usize = 300;
/// After how many turns the rarer kinds of cuts are not waited for any more.
const ENOUGH_TURNS: usize = 40;
/// No turn takes longer, however often it is cut; most take less than a second.
const TURN_LIMIT: Duration = Duration::from_secs(60);

/// What is asked. A command of which `denied` is a part is not allowed.
const PROMPTS: &[&str] = &[
    "sim:slow=600",
    "sim:echo-text Grüße, 你好, 🎉🎉🎉 — ein Text mit ganz vielen Zeichen: äöüßéèê ŁØÐ 日本語 🦀🐎",
    "sim:huge=9000",
    "sim:tool",
    "sim:tools",
    "sim:thinking",
    "sim:run=sleep 0.3; seq 1 40",
    "sim:ask=echo denied",
    "sim:400",
    "sim:401",
    "sim:empty",
    "sim:length",
    "sim:once-500",
    "sim:once-cut",
];

/// What a turn comes to for whoever follows it.
#[derive(Debug, PartialEq)]
struct Account {
    text: Option<String>,
    error: Option<String>,
    stop_reason: String,
    usage: String,
    shown: String,
    thought: String,
    /// Each call: what was called, and what came back.
    tools: Vec<(String, String)>,
    n_asked: usize,
}

impl Account {
    /// Whether a turn that nobody disturbed came to what was to be expected.
    fn is_what(&self, prompt: &str) -> bool {
        let is_error = ["sim:400", "sim:401"].contains(&prompt);
        let is_empty = self.text.as_deref().unwrap_or_default().is_empty();
        self.error.is_some() == is_error && is_empty == (prompt == "sim:empty")
    }
}

#[test]
fn two_hundred_cuts_of_the_stream_change_nothing() {
    let Some(rig) = Rig::new(&OPENCODE) else { return };
    let seed = Chance::seed();
    eprintln!("OSTLER_TEST_SEED={seed}");
    let runtime = tokio::runtime::Builder::new_multi_thread();
    let runtime: Runtime = { runtime }.worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(cut_everywhere(&rig, seed));
    until_all_gone(&rig);
}

async fn cut_everywhere(rig: &Rig, seed: u64) {
    let proxy = Proxy::start(rig.place.path("upstream"), seed).await;
    let (agent, host, mut request) = rig.library(PoolLimits::default());
    let agent = agent.with_program(program(rig, &proxy));
    request.options.permissions = Permissions::Ask;
    let mut expected = BTreeMap::new();
    let mut memo = None;
    for prompt in PROMPTS {
        let (account, next) =
            turn(&agent, &request, memo, prompt, (&proxy, &mut Chance::new(seed))).await;
        memo = next;
        assert!(account.is_what(prompt), "{prompt} without cuts: {account:#?}");
        expected.insert(*prompt, account);
    }
    assert_eq!(proxy.n_cuts(), 0);

    proxy.begin_to_cut();
    let begun = Instant::now();
    let session = Arc::new(Sessions { agent, request, expected, n_turns: AtomicUsize::new(0) });
    let proxy = Arc::new(proxy);
    let mut tasks = JoinSet::new();
    for number in 0..N_SESSIONS {
        let (session, proxy) = (Arc::clone(&session), Arc::clone(&proxy));
        tasks.spawn(async move { session.run(&proxy, seed, number).await });
    }
    while let Some(done) = tasks.join_next().await {
        done.unwrap();
    }
    let n_turns = session.n_turns.load(Ordering::Relaxed);
    eprintln!(
        "{} cuts in {n_turns} turns, {:?}: {}",
        proxy.n_cuts(),
        begun.elapsed(),
        proxy.counts()
    );
    assert!(proxy.n_cuts() >= N_CUTS);
    assert_eq!(host.pool_stats().await.started, 1, "the server was replaced");
    assert!(host.shutdown(Duration::from_secs(30)).await, "not everything ended in time");
}

/// Writes the program that Ostler takes for OpenCode: it says that the server is
/// where the proxy is, and leaves a note where it really is.
fn program(rig: &Rig, proxy: &Proxy) -> PathBuf {
    let real = PathBuf::from(std::env::var_os("OSTLER_TEST_CLIS").unwrap()).join(OPENCODE.program);
    let text = format!(
        r#"#!/bin/sh
'{real}' "$@" | while IFS= read -r line; do
    case "$line" in
        "opencode server listening on "*)
            printf '%s' "${{line##* }}" > '{note}'
            line="opencode server listening on http://{proxy}" ;;
    esac
    printf '%s\n' "$line"
done
"#,
        real = real.display(),
        note = rig.place.path("upstream").display(),
        proxy = proxy.address,
    );
    let path = rig.place.path("opencode-behind-a-proxy");
    std::fs::write(&path, text).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    path
}

/// What all sessions share.
struct Sessions {
    agent: CliAgent,
    request: TurnRequest,
    expected: BTreeMap<&'static str, Account>,
    n_turns: AtomicUsize,
}

impl Sessions {
    /// Asks one thing after the other until there were enough cuts, of every kind
    /// if that comes about, and everything was asked.
    async fn run(&self, proxy: &Proxy, seed: u64, number: usize) {
        let mut chance = Chance::new(seed.wrapping_add(1 + number as u64));
        let mut memo = None;
        let n_each = PROMPTS.len() / N_SESSIONS + 1;
        let mut n_asked = 0;
        while proxy.n_cuts() < N_CUTS
            || n_asked < n_each
            || (!proxy.has_every_kind() && n_asked < ENOUGH_TURNS)
        {
            assert!(n_asked < MAX_TURNS, "{}", proxy.counts());
            let prompt = PROMPTS[(number * n_each + n_asked) % PROMPTS.len()];
            n_asked += 1;
            let (account, next) =
                turn(&self.agent, &self.request, memo, prompt, (proxy, &mut chance)).await;
            let is_last = n_asked % N_TURNS == 0 && n_asked < N_TURNS * N_CONVERSATIONS;
            memo = next.filter(|_| !is_last);
            assert_eq!(account, self.expected[prompt], "{prompt}, with seed {seed}");
            self.n_turns.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// Runs a turn to its end, answers what it asks, and says what it came to.
async fn turn(
    agent: &CliAgent,
    request: &TurnRequest,
    memo: Option<Memo>,
    prompt: &str,
    (proxy, chance): (&Proxy, &mut Chance),
) -> (Account, Option<Memo>) {
    let request = TurnRequest { prompt: prompt.to_owned(), ..request.clone() };
    let request = match memo {
        Some(memo) => request.resume(memo),
        None => request,
    };
    let mut turn = agent.start(request).await.unwrap();
    let mut events = Vec::new();
    let follow = async {
        while let Some(event) = turn.next().await {
            assert_eq!(event.seq, events.len() as u64 + 1);
            if let EventBody::Permission(asked) = &event.body {
                if chance.coin() {
                    // The stream is cut while it waits.
                    proxy.next_cut().await;
                }
                let is_denied = asked.title.contains("denied");
                let decision = if is_denied { Decision::Deny } else { Decision::Allow };
                let taken = turn.answer(&asked.request, Answer::new(decision)).await;
                assert!(taken.is_ok(), "{prompt}: {taken:?}");
            }
            events.push(event.body);
        }
    };
    if timeout(TURN_LIMIT, follow).await.is_err() {
        panic!("{prompt} is stuck: {events:#?}");
    }
    account(prompt, &events)
}

fn account(prompt: &str, events: &[EventBody]) -> (Account, Option<Memo>) {
    let Some(EventBody::Complete(report)) = events.last() else { panic!("{events:?}") };
    let n_ends = events.iter().filter(|event| matches!(event, EventBody::Complete(_))).count();
    assert_eq!(n_ends, 1, "{prompt}");
    let mut shown: Vec<(&str, &str)> = Vec::new();
    let mut thought: Vec<(&str, &str)> = Vec::new();
    let mut calls: BTreeMap<&str, (String, Option<String>)> = BTreeMap::new();
    let mut asked: Vec<&str> = Vec::new();
    for event in events {
        match event {
            EventBody::Output { text, block } => shown.push((block, text)),
            EventBody::Thinking { text, block } => thought.push((block, text)),
            EventBody::Status(Status::Retracted { block }) => {
                shown.retain(|(name, _)| name != block);
                thought.retain(|(name, _)| name != block);
            }
            EventBody::ToolUse { id, tool, title, .. } => {
                let before = calls.insert(id, (format!("{tool} {title}"), None));
                assert!(before.is_none(), "{prompt}: {id} was called twice");
            }
            EventBody::ToolResult(result) => {
                let call = calls.get_mut(result.id.as_str()).expect("a call before its result");
                let came = format!("{} {:?} {}", result.output, result.exit_code, result.is_error);
                assert!(call.1.replace(came).is_none(), "{prompt}: {} came twice", result.id);
            }
            EventBody::Permission(permission) => {
                assert!(!asked.contains(&permission.request.as_str()), "{prompt}: asked twice");
                asked.push(&permission.request);
            }
            EventBody::Started(_)
            | EventBody::Usage(_)
            | EventBody::Error(_)
            | EventBody::Unknown { .. }
            | EventBody::Status(_)
            | EventBody::Complete(_)
            | _ => {}
        }
    }
    let tools = calls.into_values().map(|(call, came)| (call, came.expect("a result")));
    let mut tools: Vec<(String, String)> = tools.collect();
    tools.sort();
    let joined = |texts: Vec<(&str, &str)>| texts.into_iter().map(|(_, text)| text).collect();
    let account = Account {
        text: report.response_text.clone(),
        error: report
            .error
            .as_ref()
            .map(|error| format!("{}: {}", error.kind.code(), error.message)),
        stop_reason: format!("{:?}", report.stop_reason),
        usage: format!("{:?}", report.usage),
        shown: joined(shown),
        thought: joined(thought),
        tools,
        n_asked: asked.len(),
    };
    (account, report.memo.clone())
}

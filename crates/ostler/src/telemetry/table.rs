//! Which numbers there are. Their names and labels are part of the contract, and
//! `docs/metrics.md` lists them as they are here.

/// A number, or several that are told apart by labels.
#[derive(Debug)]
pub(crate) struct Metric {
    pub(crate) name: &'static str,
    pub(crate) kind: Kind,
    pub(crate) labels: &'static [&'static str],
    pub(crate) help: &'static str,
}

/// What sort of number it is.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Kind {
    /// It only grows.
    Counter,
    Gauge,
    /// With the upper bounds of its buckets.
    Histogram(&'static [f64]),
}

/// Seconds that turns take.
const OF_TURNS: &[f64] =
    &[0.1, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0, 600.0, 1800.0, 3600.0];
/// Seconds that answers over HTTP take.
const OF_ANSWERS: &[f64] =
    &[0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0];
/// Seconds that writes to the store take.
const OF_WRITES: &[f64] =
    &[0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0, 30.0];

/// Makes the table: a name for this program, and the facts.
macro_rules! metrics {
    ($($id:ident = $name:literal, $kind:expr, $labels:expr, $help:literal;)+) => {
        /// The numbers by their names in this program.
        pub(crate) mod names {
            use super::{Kind, Metric, OF_ANSWERS, OF_TURNS, OF_WRITES};

            $(pub(crate) static $id: Metric =
                Metric { name: $name, kind: $kind, labels: &$labels, help: $help };)+
        }

        /// All of them.
        pub(crate) static METRICS: &[&Metric] = &[$(&names::$id),+];
    };
}

metrics! {
    REQUESTS = "code_agent_requests_total", Kind::Counter, ["provider", "project", "status"],
        "Turns that ended: completed, failed, cancelled, retried or interrupted.";
    DURATION = "code_agent_duration_seconds", Kind::Histogram(OF_TURNS), ["provider", "project"],
        "How long turns took.";
    EVENTS = "code_agent_events_total", Kind::Counter, ["provider", "event_type"],
        "Events of turns.";
    FAILURES = "code_agent_failures_total", Kind::Counter, ["provider", "kind"],
        "Turns that failed, by the kind of error; also those that were tried again.";
    TOKENS = "code_agent_tokens_total", Kind::Counter, ["provider", "project", "kind"],
        "Tokens that turns used: input (cached included), output, cached.";
    COST = "code_agent_cost_usd", Kind::Gauge, ["provider", "project"],
        "US dollars that turns cost since the start, where the agent says it.";
    STARTS = "code_agent_starts_total", Kind::Counter, ["provider", "mode"],
        "Turns that began: one_shot in a process of their own, warm in one that is kept.";
    TURNS_RUNNING = "ostler_turns_running", Kind::Gauge, [],
        "Turns that run now.";
    QUEUE = "ostler_queue_jobs", Kind::Gauge, ["state"],
        "Jobs that wait for their time, are ready, run, or are dead.";
    OLDEST = "ostler_queue_oldest_seconds", Kind::Gauge, [],
        "How long the first job waits that has not begun; 0 if none does.";
    POOL = "ostler_pool_processes", Kind::Gauge, ["state"],
        "Kept processes of agents: busy with a turn, or parked.";
    POOL_TOTAL = "ostler_pool_processes_total", Kind::Counter, ["what"],
        "What happened to kept processes: started, reused, evicted, outdated, died.";
    SESSIONS = "ostler_sessions", Kind::Gauge, ["provider"],
        "Sessions that can be gone on with.";
    OUTBOX = "ostler_outbox_messages", Kind::Gauge, ["channel", "state"],
        "Replies by their channel, and calls of webhooks (notice), that wait, are being sent, or failed in the last week.";
    HTTP_REQUESTS = "ostler_http_requests_total", Kind::Counter, ["method", "route", "status"],
        "Requests over HTTP.";
    HTTP_DURATION = "ostler_http_duration_seconds", Kind::Histogram(OF_ANSWERS),
        ["method", "route"],
        "How long it took until an answer began.";
    SUBSCRIBERS = "ostler_sse_subscribers", Kind::Gauge, [],
        "Streams of events that are open.";
    STORE_UP = "ostler_store_up", Kind::Gauge, [],
        "1 if the store answered in time when this was gathered, else 0; the queue's numbers are then NaN, and those of sessions and messages as they were before.";
    STORE_WRITES = "ostler_store_write_seconds", Kind::Histogram(OF_WRITES), [],
        "How long writes to the store took, with the wait for others.";
    BUILD = "ostler_build_info", Kind::Gauge, ["version"],
        "Always 1.";
    START_TIME = "process_start_time_seconds", Kind::Gauge, [],
        "When the gateway started, in seconds since 1970.";
    UPTIME = "ostler_uptime_seconds", Kind::Gauge, [],
        "For how long the gateway runs.";
}

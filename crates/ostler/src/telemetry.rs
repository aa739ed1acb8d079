//! The gateway in numbers, for those who watch it: which there are, in one table,
//! and how turns and requests are counted. What is only looked at when somebody asks
//! is gathered by `api::metrics`.
//!
//! Each gateway has its own numbers; there is nothing global. They begin at zero with
//! the process.

mod table;

use std::{collections::HashSet, fmt, sync::Arc, time::Duration};

use metrics::{Counter, Gauge, Histogram, Key, Label, Level, Metadata, Recorder as _};
use metrics_exporter_prometheus::{
    BuildError, Matcher, PrometheusBuilder, PrometheusHandle, PrometheusRecorder,
};
use ostler_core::{
    event::{EventBody, Mode},
    failure::FailureKind,
};
use serde::Deserialize;

pub(crate) use self::table::{Kind, METRICS, Metric, names};
use crate::{api::provider, clock::Millis, id::ProjectId};

const METADATA: Metadata<'static> = Metadata::new("ostler", Level::INFO, None);

/// The numbers of a gateway. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Telemetry {
    recorder: Arc<PrometheusRecorder>,
    handle: PrometheusHandle,
}

impl fmt::Debug for Telemetry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Telemetry")
    }
}

/// What became of a turn. The words are part of the contract.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TurnStatus {
    Completed,
    Failed,
    Cancelled,
    /// It failed, and is tried again.
    Retried,
    /// The gateway stopped; it is done again by the next.
    Interrupted,
}

impl TurnStatus {
    fn as_str(self) -> &'static str {
        match self {
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
            Self::Retried => "retried",
            Self::Interrupted => "interrupted",
        }
    }
}

/// What is counted of a turn.
#[derive(Clone, Debug)]
pub(crate) struct Tally {
    agent: String,
    /// The project that it was for; empty for those of chats.
    project: String,
    report: Report,
}

/// What of a report is counted.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct Report {
    duration_ms: u64,
    usage: Option<Usage>,
    error: Option<Failed>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct Usage {
    input_tokens: Option<u64>,
    output_tokens: Option<u64>,
    cached_tokens: Option<u64>,
    cost_usd: Option<f64>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct Failed {
    kind: String,
}

impl Tally {
    /// Takes the report of a turn, as JSON.
    pub(crate) fn new(agent: &str, project: Option<ProjectId>, report: &str) -> Self {
        Self {
            agent: provider(agent).to_owned(),
            project: project.map(|id| id.to_string()).unwrap_or_default(),
            report: serde_json::from_str(report).unwrap_or_default(),
        }
    }

    /// Returns whether the turn failed.
    pub(crate) fn is_failed(&self) -> bool {
        self.report.error.is_some()
    }
}

/// Somebody who reads a stream of events; counted until it is dropped.
#[derive(Debug)]
pub(crate) struct Subscribed(Gauge);

impl Drop for Subscribed {
    fn drop(&mut self) {
        self.0.decrement(1.0);
    }
}

impl Telemetry {
    pub(crate) fn new() -> Self {
        // Only an empty list of bounds is refused.
        let recorder = Arc::new(builder().unwrap_or_default().build_recorder());
        for metric in METRICS {
            let (name, help) = (metric.name.into(), metric.help.into());
            match metric.kind {
                Kind::Counter => recorder.describe_counter(name, None, help),
                Kind::Gauge => recorder.describe_gauge(name, None, help),
                Kind::Histogram(_) => recorder.describe_histogram(name, None, help),
            }
        }
        let handle = recorder.handle();
        let telemetry = Self { recorder, handle };
        telemetry.gauge(&names::BUILD, &[env!("CARGO_PKG_VERSION")]).set(1.0);
        telemetry.gauge(&names::SUBSCRIBERS, &[]).set(0.0);
        telemetry
    }

    pub(crate) fn counter(&self, metric: &'static Metric, values: &[&str]) -> Counter {
        self.recorder.register_counter(&key(metric, values), &METADATA)
    }

    pub(crate) fn gauge(&self, metric: &'static Metric, values: &[&str]) -> Gauge {
        self.recorder.register_gauge(&key(metric, values), &METADATA)
    }

    pub(crate) fn histogram(&self, metric: &'static Metric, values: &[&str]) -> Histogram {
        self.recorder.register_histogram(&key(metric, values), &METADATA)
    }

    /// Counts an event of a turn.
    pub(crate) fn event(&self, agent: &str, event: &EventBody) {
        self.counter(&names::EVENTS, &[provider(agent), event.kind()]).increment(1);
        if let EventBody::Started(started) = event {
            let mode = if started.mode == Mode::Warm { "warm" } else { "one_shot" };
            self.counter(&names::STARTS, &[provider(agent), mode]).increment(1);
        }
    }

    /// Counts a turn that has ended.
    pub(crate) fn turn(&self, tally: &Tally, status: TurnStatus) {
        let Tally { agent, project, report } = tally;
        let whose = [agent.as_str(), project.as_str()];
        self.counter(&names::REQUESTS, &[agent, project, status.as_str()]).increment(1);
        let seconds = Duration::from_millis(report.duration_ms).as_secs_f64();
        self.histogram(&names::DURATION, &whose).record(seconds);
        if let Some(failed) = &report.error {
            let kind = FailureKind::ALL.into_iter().map(FailureKind::code);
            let kind = kind.into_iter().find(|known| *known == failed.kind).unwrap_or("other");
            self.counter(&names::FAILURES, &[agent, kind]).increment(1);
        }
        let Some(usage) = &report.usage else { return };
        for (kind, tokens) in [
            ("input", usage.input_tokens),
            ("output", usage.output_tokens),
            ("cached", usage.cached_tokens),
        ] {
            if let Some(tokens) = tokens {
                self.counter(&names::TOKENS, &[agent, project, kind]).increment(tokens);
            }
        }
        if let Some(cost) = usage.cost_usd.filter(|cost| cost.is_finite() && *cost >= 0.0) {
            self.gauge(&names::COST, &whose).increment(cost);
        }
    }

    /// Counts a request over HTTP.
    pub(crate) fn request(&self, method: &str, route: &str, status: u16, took: Duration) {
        let status = status.to_string();
        self.counter(&names::HTTP_REQUESTS, &[method, route, &status]).increment(1);
        self.histogram(&names::HTTP_DURATION, &[method, route]).record(took.as_secs_f64());
    }

    /// Counts somebody who reads a stream of events, for as long as he does.
    pub(crate) fn subscribed(&self) -> Subscribed {
        let gauge = self.gauge(&names::SUBSCRIBERS, &[]);
        gauge.increment(1.0);
        Subscribed(gauge)
    }

    /// Sets what stands since the start.
    pub(crate) fn stand(&self, since: Millis, now: Millis) {
        let seconds = |millis: i64| Duration::from_millis(millis.max(0).unsigned_abs());
        self.gauge(&names::START_TIME, &[]).set(seconds(since.0).as_secs_f64());
        let up = now.0.saturating_sub(since.0);
        self.gauge(&names::UPTIME, &[]).set(seconds(up).as_secs_f64());
    }

    /// Sums up what was measured since the last time, so that it does not pile up
    /// where nobody asks for it.
    pub(crate) fn keep_up(&self) {
        self.handle.run_upkeep();
    }

    /// Writes everything in the text format of Prometheus; of projects, what is
    /// about those that there still are.
    pub(crate) fn text(&self, projects: Option<&HashSet<String>>) -> String {
        let text = self.handle.render();
        let Some(projects) = projects else { return text };
        let is_there = |line: &&str| {
            let project = line.split_once("project=\"").and_then(|(_, rest)| rest.split_once('"'));
            project.is_none_or(|(id, _)| id.is_empty() || projects.contains(id))
        };
        text.split_inclusive('\n').filter(is_there).collect()
    }
}

/// Makes the name of a series.
fn key(metric: &'static Metric, values: &[&str]) -> Key {
    let labels = metric.labels.iter().zip(values);
    let labels: Vec<Label> =
        labels.map(|(name, value)| Label::new(*name, (*value).to_owned())).collect();
    Key::from_parts(metric.name, labels)
}

fn builder() -> Result<PrometheusBuilder, BuildError> {
    let mut builder = PrometheusBuilder::new();
    for metric in METRICS {
        if let Kind::Histogram(bounds) = metric.kind {
            builder =
                builder.set_buckets_for_metric(Matcher::Full(metric.name.to_owned()), bounds)?;
        }
    }
    Ok(builder)
}

#[cfg(test)]
mod tests;

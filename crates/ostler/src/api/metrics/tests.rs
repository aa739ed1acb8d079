//! What is told in numbers, read by a parser that forgives nothing.

use std::collections::{BTreeMap, BTreeSet};

use super::*;
use crate::{
    api::testing::{Rig, TestKey, make_key},
    config::Api,
    gateway::{
        notices::testing::{command, project, shell},
        testing::Knobs,
    },
    id::ProjectId,
    store::testing::{delete_project, on_both},
    telemetry::{Kind, METRICS},
};

/// Labels and their values.
type Labels = BTreeMap<String, String>;

/// What was read, by name.
type Families = BTreeMap<String, Family>;

#[derive(Debug, Default)]
struct Family {
    kind: String,
    has_help: bool,
    /// The name after that of the family, the labels, and the value.
    samples: Vec<(String, Labels, f64)>,
}

/// Reads the text format, and panics at whatever is not of it.
fn parse(text: &str) -> Families {
    assert!(text.ends_with('\n'));
    let mut families = Families::new();
    let mut seen = BTreeSet::new();
    let mut current = String::new();
    for line in text.lines().filter(|line| !line.is_empty()) {
        if let Some(rest) = line.strip_prefix("# HELP ") {
            let (name, help) = rest.split_once(' ').unwrap();
            assert!(is_name(name) && !help.is_empty(), "{line}");
            let family = families.entry(name.to_owned()).or_default();
            assert!(!family.has_help && family.kind.is_empty(), "{line}");
            family.has_help = true;
        } else if let Some(rest) = line.strip_prefix("# TYPE ") {
            let (name, kind) = rest.split_once(' ').unwrap();
            assert!(["counter", "gauge", "histogram"].contains(&kind), "{line}");
            let family = families.entry(name.to_owned()).or_default();
            assert!(family.kind.is_empty(), "{line}: twice");
            family.kind = kind.to_owned();
            current = name.to_owned();
        } else {
            assert!(!line.starts_with('#'), "{line}");
            let (series, value) = line.rsplit_once(' ').unwrap();
            let value = match value {
                "NaN" => f64::NAN,
                "+Inf" => f64::INFINITY,
                other => other.parse().unwrap(),
            };
            let (name, labels) = match series.split_once('{') {
                Some((name, rest)) => (name, labels(rest.strip_suffix('}').unwrap())),
                None => (series, Labels::new()),
            };
            assert!(is_name(name), "{line}");
            assert!(seen.insert((name.to_owned(), labels.clone())), "{line}: twice");
            let family = families.get_mut(&current).unwrap();
            let suffix = name.strip_prefix(current.as_str()).unwrap_or_else(|| panic!("{line}"));
            let allowed: &[&str] = match family.kind.as_str() {
                "histogram" => &["_bucket", "_sum", "_count"],
                _ => &[""],
            };
            assert!(allowed.contains(&suffix), "{line}");
            assert!(family.kind != "counter" || value >= 0.0, "{line}");
            family.samples.push((suffix.to_owned(), labels, value));
        }
    }
    for (name, family) in &families {
        assert!(family.has_help && !family.samples.is_empty(), "{name}");
        if family.kind == "histogram" {
            check_histogram(name, family);
        }
    }
    families
}

fn is_name(name: &str) -> bool {
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
    !name.is_empty() && name.chars().all(is_part) && !name.starts_with(|c: char| c.is_ascii_digit())
}

fn labels(mut text: &str) -> Labels {
    let mut labels = Labels::new();
    loop {
        let (name, rest) = text.split_once("=\"").unwrap();
        assert!(is_name(name), "{text}");
        let (value, rest) = rest.split_once('"').unwrap();
        assert!(!value.contains(['\\', '\n']), "nothing here needs to be escaped: {value}");
        assert!(labels.insert(name.to_owned(), value.to_owned()).is_none(), "{text}");
        match rest.strip_prefix(',') {
            Some(rest) => text = rest,
            None => {
                assert_eq!(rest, "");
                return labels;
            }
        }
    }
}

/// The buckets of a series grow, end with the infinite one, and that is the count.
fn check_histogram(name: &str, family: &Family) {
    let mut series: BTreeMap<Labels, Vec<(f64, f64)>> = BTreeMap::new();
    let mut counts = BTreeMap::new();
    for (suffix, labels, value) in &family.samples {
        let mut labels = labels.clone();
        if suffix == "_bucket" {
            let le = labels.remove("le").unwrap();
            let le = if le == "+Inf" { f64::INFINITY } else { le.parse().unwrap() };
            series.entry(labels).or_default().push((le, *value));
        } else if suffix == "_count" {
            counts.insert(labels, *value);
        }
    }
    assert_eq!(series.len(), counts.len(), "{name}");
    for (labels, buckets) in series {
        assert!(buckets.is_sorted_by(|a, b| a.0 < b.0 && a.1 <= b.1), "{name} {buckets:?}");
        assert_eq!(buckets.last(), Some(&(f64::INFINITY, counts[&labels])), "{name}");
    }
}

impl Family {
    /// Returns the value of the one series with these labels and no others.
    #[track_caller]
    fn value(&self, suffix: &str, labels: &[(&str, &str)]) -> f64 {
        let wanted: Labels =
            labels.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        let mut found = self.samples.iter().filter(|(of, is, _)| of == suffix && *is == wanted);
        found.next().unwrap_or_else(|| panic!("{labels:?} is none of {self:?}")).2
    }
}

async fn scrape(rig: &Rig) -> Families {
    let response = rig.request("GET", "/metrics").bearer_auth(&rig.admin).send().await.unwrap();
    assert_eq!(response.status(), 200);
    assert_eq!(response.headers()["content-type"], FORMAT);
    let families = parse(&response.text().await.unwrap());
    for (name, family) in &families {
        let metric = METRICS.iter().find(|metric| metric.name == name).unwrap();
        let kind = match metric.kind {
            Kind::Counter => "counter",
            Kind::Gauge => "gauge",
            Kind::Histogram(_) => "histogram",
        };
        assert_eq!(family.kind, kind, "{name}");
        for (_, labels, _) in &family.samples {
            let names: BTreeSet<_> =
                labels.keys().map(String::as_str).filter(|l| *l != "le").collect();
            assert_eq!(names, metric.labels.iter().copied().collect(), "{name}");
        }
    }
    families
}

async fn run(rig: &Rig, project: ProjectId, text: &str) {
    let id = command(&rig.gateway.gateway, project, text).await;
    rig.gateway.end_of(id.into()).await;
}

/// Waits until as many turns were counted: that is done after they are stored.
async fn until_counted(rig: &Rig, n_turns: f64) -> Families {
    loop {
        let families = scrape(rig).await;
        let counted = families
            .get("code_agent_requests_total")
            .map_or(0.0, |family| family.samples.iter().map(|(_, _, value)| value).sum());
        if counted >= n_turns {
            return families;
        }
        tokio::task::yield_now().await;
    }
}

on_both! {
    async fn turns_of_commands_and_chats_are_counted(store: Store) {
        let rig = Rig::new(store.clone()).await;
        let mine = project(&store, "mine", &rig.folder("mine")).await;
        for text in ["one", "two", "three", "fail"] {
            run(&rig, mine, text).await;
        }
        rig.gateway.ask("chat", "hello").await;
        rig.gateway.until_running(0).await;
        let families = until_counted(&rig, 5.0).await;
        let id = mine.to_string();
        let (pi, project) = (("provider", "pi"), ("project", id.as_str()));
        let requests = &families["code_agent_requests_total"];
        assert_eq!(requests.value("", &[pi, project, ("status", "completed")]), 3.0);
        assert_eq!(requests.value("", &[pi, project, ("status", "failed")]), 1.0);
        assert_eq!(requests.value("", &[pi, ("project", ""), ("status", "completed")]), 1.0);
        assert_eq!(requests.samples.len(), 3);
        let duration = &families["code_agent_duration_seconds"];
        assert_eq!(duration.value("_count", &[pi, project]), 4.0);
        assert_eq!(duration.value("_count", &[pi, ("project", "")]), 1.0);
        assert!(duration.value("_sum", &[pi, project]) > 0.0);
        let events = &families["code_agent_events_total"];
        assert_eq!(events.value("", &[pi, ("event_type", "started")]), 5.0);
        assert_eq!(events.value("", &[pi, ("event_type", "complete")]), 5.0);
        assert_eq!(events.value("", &[pi, ("event_type", "error")]), 1.0);
        let failures: f64 =
            families["code_agent_failures_total"].samples.iter().map(|(_, _, value)| value).sum();
        assert_eq!(failures, 1.0);
        let starts = &families["code_agent_starts_total"];
        assert_eq!(starts.value("", &[pi, ("mode", "one_shot")]), 5.0);
        assert_eq!(families["ostler_turns_running"].value("", &[]), 0.0);
        assert_eq!(families["ostler_store_up"].value("", &[]), 1.0);
        assert_eq!(families["ostler_queue_jobs"].value("", &[("state", "dead")]), 1.0);
        assert_eq!(families["ostler_queue_oldest_seconds"].value("", &[]), 0.0);
        assert!(families["ostler_sessions"].value("", &[pi]) >= 4.0);
        assert!(families["ostler_store_write_seconds"].value("_count", &[]) > 10.0);
        assert!(families["process_start_time_seconds"].value("", &[]) > 1_600_000_000.0);
        delete_project(&store, mine).await;
        let after = scrape(&rig).await;
        assert_eq!(after["code_agent_requests_total"].samples.len(), 1);
        assert!(!format!("{after:?}").contains(&id));
        rig.stop().await;
    }

    async fn a_program_is_no_turn_and_is_not_counted(store: Store) {
        let rig = Rig::new(store.clone()).await;
        let folder = rig.folder("mine");
        let mine = project(&store, "mine", &folder).await;
        for words in [["true"].as_slice(), &["sh", "-c", "exit 3"]] {
            let id = shell(&rig.gateway.gateway, mine, &folder, words).await;
            rig.gateway.end_of(id.into()).await;
        }
        run(&rig, mine, "one").await;
        let families = until_counted(&rig, 1.0).await;
        for name in ["requests_total", "duration_seconds", "events_total", "starts_total"] {
            let family = &families[format!("code_agent_{name}").as_str()];
            let is_agent = |(_, labels, _): &(_, Labels, _)| labels["provider"] == "pi";
            assert!(family.samples.iter().all(is_agent), "{family:?}");
        }
        rig.stop().await;
    }

    async fn requests_are_counted_by_route_and_what_anybody_made_up_is_one(store: Store) {
        let rig = Rig::new(store).await;
        for path in ["/made-up/1", "/made-up/2", "/webhooks/1", "/webhooks/2"] {
            rig.get(path).await;
        }
        rig.call("BREW", "/coffee", None).await;
        let families = scrape(&rig).await;
        let http = &families["ostler_http_requests_total"];
        let of = |method, route, status| {
            http.value("", &[("method", method), ("route", route), ("status", status)])
        };
        assert_eq!(of("GET", "none", "404"), 2.0);
        assert_eq!(of("OTHER", "none", "404"), 1.0);
        assert_eq!(of("GET", "/webhooks/{webhook}", "404"), 2.0);
        let time = &families["ostler_http_duration_seconds"];
        assert_eq!(time.value("_count", &[("method", "GET"), ("route", "none")]), 2.0);
        rig.stop().await;
    }

    async fn only_an_administrator_reads_them_unless_anybody_may(store: Store) {
        let rig = Rig::new(store.clone()).await;
        let status = async |key: Option<&str>| {
            let request = rig.request("GET", "/metrics");
            let request = match key {
                Some(key) => request.bearer_auth(key),
                None => request,
            };
            request.send().await.unwrap().status().as_u16()
        };
        let reader = rig.key(&[Scope::ProjectsRead]).await;
        let of_one = TestKey {
            scopes: vec![Scope::Admin],
            projects: Some(Vec::new()),
            ..TestKey::default()
        };
        let of_one = make_key(&store, of_one).await;
        assert_eq!(status(None).await, 401);
        assert_eq!(status(Some(&reader)).await, 403);
        assert_eq!(status(Some(&of_one)).await, 403);
        assert_eq!(status(Some(&rig.admin)).await, 200);
        let api = Api { metrics: Metrics::Anybody, ..Api::default() };
        rig.gateway.change(&Knobs { api, ..Knobs::default() });
        assert_eq!(status(None).await, 200);
        assert_eq!(status(Some(&reader)).await, 200);
        rig.stop().await;
    }
}

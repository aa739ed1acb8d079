//! What is counted, and that the documentation lists what there is.

use super::*;

const DOCS: &str = include_str!("../../../../docs/metrics.md");

#[test]
fn the_documentation_lists_what_there_is_and_nothing_else() {
    let row = |metric: &Metric| {
        let kind = match metric.kind {
            Kind::Counter => "counter",
            Kind::Gauge => "gauge",
            Kind::Histogram(_) => "histogram",
        };
        let Metric { name, labels, help, .. } = metric;
        format!("| `{name}` | {kind} | {} | {help} |", labels.join(", "))
    };
    let rows: Vec<_> = METRICS.iter().map(|metric| row(metric)).collect();
    let listed: Vec<_> =
        DOCS.lines().filter(|line| line.starts_with("| `")).map(str::to_owned).collect();
    assert_eq!(listed, rows);
}

#[test]
fn no_two_have_the_same_name_and_each_has_the_form_of_its_kind() {
    let mut seen = HashSet::new();
    for metric in METRICS {
        assert!(seen.insert(metric.name), "{}", metric.name);
        let is_total = metric.name.ends_with("_total");
        assert_eq!(is_total, matches!(metric.kind, Kind::Counter), "{}", metric.name);
    }
}

#[test]
fn a_turn_is_counted_with_its_tokens_and_its_cost() {
    let telemetry = Telemetry::new();
    let report = "{\"duration_ms\":1500,\"error\":null,\"usage\":{\"input_tokens\":10,
        \"output_tokens\":2,\"cached_tokens\":null,\"cost_usd\":0.25}}";
    let project = ProjectId::new();
    for _ in 0..2 {
        let tally = Tally::new("claude", Some(project), report);
        telemetry.turn(&tally, TurnStatus::Completed);
    }
    let failed = Tally::new("pi", None, "{\"error\":{\"kind\":\"a kind of tomorrow\"}}");
    assert!(failed.is_failed());
    telemetry.turn(&failed, TurnStatus::Retried);
    let text = telemetry.text(None);
    for line in [
        format!(
            "code_agent_requests_total{{provider=\"claudecode\",project=\"{project}\",\
             status=\"completed\"}} 2"
        ),
        format!(
            "code_agent_duration_seconds_sum{{provider=\"claudecode\",project=\"{project}\"}} 3"
        ),
        format!(
            "code_agent_tokens_total{{provider=\"claudecode\",project=\"{project}\",\
             kind=\"input\"}} 20"
        ),
        format!("code_agent_cost_usd{{provider=\"claudecode\",project=\"{project}\"}} 0.5"),
        "code_agent_requests_total{provider=\"pi\",project=\"\",status=\"retried\"} 1".to_owned(),
        "code_agent_failures_total{provider=\"pi\",kind=\"other\"} 1".to_owned(),
    ] {
        assert!(text.lines().any(|found| found == line), "{line}\n{text}");
    }
    assert!(!text.contains("kind=\"cached\""), "{text}");
    let living = HashSet::new();
    let left = telemetry.text(Some(&living));
    assert!(!left.contains(&project.to_string()) && left.contains("project=\"\""), "{left}");
}

#[test]
fn who_reads_a_stream_is_counted_until_he_goes() {
    let telemetry = Telemetry::new();
    let (one, two) = (telemetry.subscribed(), telemetry.subscribed());
    assert!(telemetry.text(None).contains("\nostler_sse_subscribers 2\n"));
    drop((one, two));
    assert!(telemetry.text(None).contains("\nostler_sse_subscribers 0\n"));
}

#[test]
fn what_is_measured_does_not_pile_up_and_is_not_lost() {
    let telemetry = Telemetry::new();
    for _ in 0..3 {
        telemetry.request("GET", "/projects", 200, Duration::from_millis(3));
        telemetry.keep_up();
    }
    let text = telemetry.text(None);
    let line =
        "ostler_http_duration_seconds_bucket{method=\"GET\",route=\"/projects\",le=\"0.005\"} 3";
    assert!(text.contains(line), "{text}");
}

//! `ostler agents`, and the page that says what each agent can do.

use std::{fs, path::Path};

use ostler_core::agent::{AGENTS, WarmSpec};
use serde_json::Value;

use crate::support::{Outcome, Place};

/// Runs `ostler agents` with nothing but this folder in PATH.
fn agents(place: &Place, path: &Path, args: &[&str]) -> Outcome {
    let mut all = vec!["agents"];
    all.extend(args);
    let mut command = place.ostler(&all);
    command.env("PATH", path);
    Outcome::of_input(command, None)
}

fn rows(outcome: &Outcome) -> Vec<Value> {
    outcome.json().as_array().unwrap().clone()
}

#[test]
fn without_any_cli_every_agent_is_listed_with_how_to_install_it() {
    let place = Place::new();
    let json = agents(&place, &place.path("nowhere"), &["--output", "json"]);
    assert_eq!(json.code, Some(0), "{}", json.stderr);
    let text = agents(&place, &place.path("nowhere"), &[]);
    assert_eq!(text.code, Some(0), "{}", text.stderr);
    let rows = rows(&json);
    assert_eq!(rows.len(), AGENTS.len());
    for (spec, row) in AGENTS.iter().zip(&rows) {
        assert_eq!(row["name"], *spec.name);
        assert_eq!(row["installed"], false);
        for key in ["path", "version", "version_status"] {
            assert_eq!(row[key], Value::Null, "{key}");
        }
        assert!(row["problem"].as_str().unwrap().contains("not found in PATH"), "{row}");
        let line = format!("{}: to install it: {}", spec.name, spec.install_hint);
        assert!(text.stdout.contains(&line), "{}", text.stdout);
    }
}

#[test]
fn the_keys_of_a_row_are_the_documented_ones() {
    let place = Place::new();
    let rows = rows(&agents(&place, &place.path("nowhere"), &["--output", "json"]));
    let page = fs::read_to_string(page("docs/doctor.md")).unwrap();
    let expected = [
        "capabilities",
        "configured",
        "install_hint",
        "installed",
        "name",
        "path",
        "problem",
        "tested_versions",
        "title",
        "version",
        "version_status",
        "warm",
    ];
    for row in rows {
        let keys: Vec<_> = row.as_object().unwrap().keys().map(String::as_str).collect();
        assert_eq!(keys, expected);
        assert_eq!(row["warm"], row["capabilities"]["supports_warm"]);
    }
    for key in expected {
        assert!(page.contains(&format!("`{key}`")), "{key} is not documented");
    }
}

#[test]
fn versions_are_judged_and_unreadable_ones_are_a_problem() {
    let place = Place::new();
    for (spec, answer) in AGENTS.iter().zip(["9999.0.1", "0.0.1", "none", "9999.0.1"]) {
        place.program(&spec.program, &format!("#!/bin/sh\necho {answer}\n"));
    }
    let outcome = agents(&place, &place.path("bin"), &["--output", "json"]);
    let statuses: Vec<_> =
        rows(&outcome).iter().map(|row| row["version_status"].clone()).take(4).collect();
    let expected = ["newer", "older", "unknown", "newer"];
    assert_eq!(statuses, expected[..AGENTS.len().min(4)]);
    let text = agents(&place, &place.path("bin"), &[]).stdout;
    assert!(text.contains("9999.0.1  newer than tested"), "{text}");
    let table: Vec<_> = text.lines().take_while(|line| !line.is_empty()).collect();
    let column = table[0].find("resume").unwrap();
    for line in &table {
        assert_eq!(line.as_bytes()[column - 1], b' ', "the columns are aligned: {text}");
    }
}

#[test]
fn the_program_of_the_chosen_backend_is_the_configured_one() {
    let place = Place::new();
    let spec = AGENTS.last().unwrap();
    let program = place.program("my-own", "#!/bin/sh\necho 1.2.3\n");
    let mut command = place.ostler(&["agents", "--output", "json"]);
    command
        .env("PATH", "/nowhere")
        .env("AGENT_BACKEND", &*spec.name)
        .env("BACKEND_CLI_PATH", &program);
    let rows = rows(&Outcome::of_input(command, None));
    for row in rows {
        let is_chosen = row["name"] == *spec.name;
        assert_eq!(row["installed"], is_chosen, "{row}");
        assert_eq!(row["version"] == "1.2.3", is_chosen, "{row}");
    }
}

#[test]
fn an_agent_that_never_tells_its_version_does_not_hold_up_the_others() {
    let place = Place::new();
    let hang = place.script(&serde_json::json!([{ "do": "hang" }]));
    for spec in AGENTS {
        fs::create_dir_all(place.path("bin")).unwrap();
        std::os::unix::fs::symlink(&hang, place.path("bin").join(&*spec.program)).unwrap();
    }
    let began = std::time::Instant::now();
    let outcome = agents(&place, &place.path("bin"), &["--output", "json"]);
    // Each may take ten seconds; one after the other they would take twice that.
    assert!(began.elapsed().as_secs() < 20, "{:?}", began.elapsed());
    assert_eq!(outcome.code, Some(0));
    for row in rows(&outcome) {
        assert!(row["problem"].as_str().unwrap().contains("could not be read"), "{row}");
    }
}

#[test]
fn installed_clis_are_found_and_tested() {
    let Some(clis) = std::env::var_os("OSTLER_TEST_CLIS") else {
        eprintln!("skipped: OSTLER_TEST_CLIS does not say where the real CLIs are");
        return;
    };
    let place = Place::new();
    let bin = Path::new(&clis).join("node_modules/.bin");
    let path = format!("{}:/usr/bin:/bin", bin.display());
    let outcome = agents(&place, Path::new(&path), &["--output", "json"]);
    for row in rows(&outcome) {
        assert_eq!(row["version_status"], "tested", "{row}");
    }
}

fn page(name: &str) -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(name)
}

const BEGIN: &str = "<!-- made from the table of agents; OSTLER_UPDATE_DOCS=1 makes it again -->\n";
const END: &str = "<!-- end of what is made -->\n";

#[test]
fn the_page_of_compatibility_says_what_the_specs_say() {
    let path = page("docs/compatibility.md");
    let text = fs::read_to_string(&path).unwrap();
    let (before, rest) = text.split_once(BEGIN).expect("the page has the first marker");
    let (written, after) = rest.split_once(END).expect("the page has the second marker");
    let made = format!("\n{}\n{}\n{}\n", versions(), capabilities(), kept());
    if std::env::var_os("OSTLER_UPDATE_DOCS").is_some() {
        fs::write(&path, format!("{before}{BEGIN}{made}{END}{after}")).unwrap();
        return;
    }
    assert_eq!(written, made, "docs/compatibility.md is out of date; {BEGIN}");
}

fn versions() -> String {
    let mut text = "| agent | name | program | tested versions | install |\n".to_owned();
    text.push_str("|---|---|---|---|---|\n");
    for spec in AGENTS {
        let tested = spec.tested_versions.join(", ");
        let (title, name, program) = (&spec.title, &spec.name, &spec.program);
        let hint = spec.install_hint;
        text.push_str(&format!("| {title} | `{name}` | `{program}` | {tested} | {hint} |\n"));
    }
    text
}

fn capabilities() -> String {
    let caps: Vec<Value> =
        AGENTS.iter().map(|spec| serde_json::to_value(&spec.caps).unwrap()).collect();
    let titles: Vec<_> = AGENTS.iter().map(|spec| &*spec.title).collect();
    let mut text = format!("| | {} |\n|---|", titles.join(" | "));
    text.push_str(&"---|".repeat(AGENTS.len()));
    text.push('\n');
    for key in caps[0].as_object().unwrap().keys() {
        let cells: Vec<_> = caps.iter().map(|caps| cell(key, &caps[key])).collect();
        text.push_str(&format!("| `{key}` | {} |\n", cells.join(" | ")));
    }
    text
}

/// What is true of the agents while they are kept running.
fn kept() -> String {
    let row = |name: &str, cell: fn(&WarmSpec) -> String| {
        let cells: Vec<_> = AGENTS.iter().map(|spec| spec.warm.map_or("-".into(), cell)).collect();
        format!("| {name} | {} |\n", cells.join(" | "))
    };
    let titles: Vec<_> = AGENTS.iter().map(|spec| &*spec.title).collect();
    [
        format!("| kept running | {} |\n", titles.join(" | ")),
        format!("|---|{}\n", "---|".repeat(AGENTS.len())),
        row("sessions in one process", |warm| warm.sessions_per_process.to_string()),
        row("a process for any directory", |warm| {
            if warm.is_bound_to_directory { "no" } else { "yes" }.to_owned()
        }),
        row("`--when-busy steer`", |warm| {
            if warm.supports_steering { "joins the turn" } else { "waits, and says so" }.to_owned()
        }),
    ]
    .concat()
}

fn cell(key: &str, value: &Value) -> String {
    match value {
        Value::Bool(true) => "yes".to_owned(),
        Value::Bool(false) => "no".to_owned(),
        Value::Null => "the CLI's own".to_owned(),
        Value::Number(number) if key == "max_prompt_length" && number.as_u64() == Some(0) => {
            "unlimited".to_owned()
        }
        Value::Number(number) => number.to_string(),
        Value::String(text) => format!("`{text}`"),
        Value::Array(list) if list.is_empty() => "any".to_owned(),
        Value::Array(list) => {
            let names: Vec<_> = list.iter().map(|name| cell(key, name)).collect();
            names.join(", ")
        }
        Value::Object(_) => panic!("{key} is an object"),
    }
}

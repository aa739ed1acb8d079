//! The guide for programmers, `docs/api.md`: every example of it is run as it is
//! printed, in one shell from the first to the last, and what the page shows as the
//! answer has the form of the real one.

use std::{
    collections::BTreeSet,
    fmt::Write as _,
    fs,
    path::Path,
    process::{Command, Stdio},
    time::Duration,
};

use serde_json::Value;

use super::served::{Served, roots};
use crate::support::{Outcome, Place, parse};

const GUIDE: &str = include_str!("../../../../../docs/api.md");
const DOCUMENT: &str = include_str!("../../../openapi.json");
/// The longest that the whole page may take.
const PAGE: Duration = Duration::from_secs(200);
/// Stands for whatever else there is in an object.
const MORE: &str = "…";

/// Something that the page says to type.
#[derive(Debug)]
struct Example {
    text: String,
    /// What the page says that comes of it.
    answer: Option<Value>,
}

impl Example {
    /// Whether it shows what goes wrong.
    fn is_refused(&self) -> bool {
        self.answer.as_ref().is_some_and(|answer| !answer["error"].is_null())
    }
}

/// Returns the examples of a page, each with the answer that stands below it.
fn examples(page: &str) -> Vec<Example> {
    let mut examples: Vec<Example> = Vec::new();
    let mut lines = page.lines();
    while let Some(line) = lines.next() {
        let Some(sort) = line.strip_prefix("```") else { continue };
        let text: Vec<_> = lines.by_ref().take_while(|line| *line != "```").collect();
        let text = text.join("\n");
        match sort {
            "sh" => examples.push(Example { text, answer: None }),
            "json" => {
                let example = examples.last_mut().expect("an example stands above its answer");
                example.answer = Some(parse(&text));
            }
            _ => {}
        }
    }
    examples
}

/// Returns the script that runs the examples, each with files of its own for what
/// it printed and for how it ended.
fn script(examples: &[Example], folder: &Path) -> String {
    let mut script = String::from("set -eu\n");
    for (number, example) in examples.iter().enumerate() {
        fs::write(folder.join(format!("{number}.sh")), format!("{}\n", example.text)).unwrap();
        let prints = format!("> {number}.out 2> {number}.err");
        let line = if example.is_refused() {
            // In a shell of its own, which ends with what is refused.
            format!("if (. ./{number}.sh) {prints}; then false; fi; : > {number}.ok")
        } else {
            format!(". ./{number}.sh {prints}; : > {number}.ok")
        };
        writeln!(script, "{line}").unwrap();
    }
    script
}

/// Says how a real answer differs from the form of the one that is shown.
fn difference(shown: &Value, real: &Value, at: &str) -> Option<String> {
    match (shown, real) {
        // What can be nothing is shown as either.
        (Value::Null, _) | (_, Value::Null) => None,
        (Value::Object(shown), Value::Object(real)) => {
            let has_more = shown.contains_key(MORE);
            let names: BTreeSet<_> = shown.keys().filter(|name| *name != MORE).collect();
            let missing = names.iter().find(|name| !real.contains_key(**name));
            let unknown = real.keys().find(|name| !has_more && !names.contains(name));
            let wrong = missing.map(|name| format!("{at} has no {name:?}"));
            let wrong =
                wrong.or_else(|| unknown.map(|name| format!("{at} has {name:?}, not shown")));
            let mut inner = names.iter().filter_map(|name| Some((name, real.get(*name)?)));
            wrong.or_else(|| {
                inner.find_map(|(name, real)| {
                    difference(&shown[*name], real, &format!("{at}.{name}"))
                })
            })
        }
        (Value::Array(shown), Value::Array(real)) => match (shown.first(), real.first()) {
            (None, _) => None,
            (Some(_), None) => Some(format!("{at} is empty")),
            (Some(shown), Some(real)) => difference(shown, real, &format!("{at}[0]")),
        },
        (Value::Bool(_), Value::Bool(_))
        | (Value::Number(_), Value::Number(_))
        | (Value::String(_), Value::String(_)) => None,
        (shown, real) => Some(format!("{at} is {real}, not such as {shown}")),
    }
}

#[test]
fn every_example_of_the_guide_does_what_the_guide_says() {
    let place = Place::new();
    let served = Served::start(&place);
    roots(&place);
    // Whatever is refused ends the example. More patient than any example, which waits for a minute.
    let strict = "fail-with-body\nsilent\nshow-error\nmax-time = 120\n";
    fs::write(place.path("home/.curlrc"), strict).unwrap();
    let examples = examples(GUIDE);
    let folder = place.work();
    let program = Path::new(env!("CARGO_BIN_EXE_ostler")).parent().unwrap();
    let mut command = Command::new("sh");
    command
        .args(["-c", &script(&examples, &folder)])
        .env_clear()
        .env("PATH", format!("{}:/usr/local/bin:/usr/bin:/bin", program.display()))
        .env("HOME", place.path("home"))
        .env("OSTLER_DATA_DIR", place.path("data"))
        .env("OSTLER_CONFIG", place.path("ostler.json5"))
        .env("OSTLER", served.url())
        .current_dir(&folder)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let outcome = Outcome::within(PAGE, command, None);
    for (number, example) in examples.iter().enumerate() {
        let read = |end: &str| fs::read_to_string(folder.join(format!("{number}.{end}")));
        let (out, err) = (read("out").unwrap_or_default(), read("err").unwrap_or_default());
        let text = &example.text;
        assert!(read("ok").is_ok(), "it failed:\n{text}\n{out}\n{err}\n{}", outcome.stderr);
        if let Some(shown) = &example.answer {
            let real = serde_json::from_str(&out);
            let real = real.unwrap_or_else(|error| panic!("{error}:\n{text}\n{out}"));
            let difference = difference(shown, &real, "the answer");
            assert_eq!(difference, None, "\n{text}\n{out}");
        }
    }
    assert_eq!(outcome.code, Some(0), "{}", outcome.stderr);
    served.stop();
}

#[test]
fn the_guide_names_every_operation_that_there_is_and_no_other() {
    let document = parse(DOCUMENT);
    let mut there = BTreeSet::new();
    for (path, item) in document["paths"].as_object().unwrap() {
        for method in item.as_object().unwrap().keys() {
            there.insert(format!("{} {path}", method.to_uppercase()));
        }
    }
    let code = GUIDE.split('`').skip(1).step_by(2);
    let is_operation = |text: &&str| {
        let method = text.split(" /").next().unwrap_or_default();
        ["GET", "POST", "PUT", "PATCH", "DELETE"].contains(&method) && text.contains(" /")
    };
    let named: BTreeSet<_> = code.filter(is_operation).map(str::to_owned).collect();
    assert_eq!(named, there);
}

#[test]
fn an_answer_of_another_form_is_seen() {
    let shown = parse(r#"{"a":1,"b":[{"c":"x"}],"d":null,"e":{"f":1,"…":0}}"#);
    for (real, says) in [
        (r#"{"a":2,"b":[{"c":"y"},{}],"d":{"x":1},"e":{"f":2,"g":3}}"#, None),
        (r#"{"a":2,"b":[{"c":"y"}],"d":1,"e":{"g":3}}"#, Some("the answer.e has no \"f\"")),
        (
            r#"{"a":"2","b":[{"c":"y"}],"d":1,"e":null}"#,
            Some("the answer.a is \"2\", not such as 1"),
        ),
        (r#"{"a":2,"b":[],"d":1,"e":null}"#, Some("the answer.b is empty")),
        (
            r#"{"a":2,"b":[{"c":"y","z":1}],"d":1,"e":null}"#,
            Some("the answer.b[0] has \"z\", not shown"),
        ),
    ] {
        assert_eq!(difference(&shown, &parse(real), "the answer").as_deref(), says, "{real}");
    }
    let page = "text\n```sh\ncurl x\n```\n\n```json\n{\"error\":{}}\n```\n```sh\ny\n```\n";
    let found = examples(page);
    assert_eq!((found.len(), found[0].is_refused(), found[1].is_refused()), (2, true, false));
}

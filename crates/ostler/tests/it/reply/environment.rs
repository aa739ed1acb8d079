//! The variables of deployments that are configured by their environment alone,
//! each by what it does to a running gateway.

use std::{
    io::{Read as _, Write as _},
    net::TcpListener,
    sync::mpsc,
};

use serde_json::{Value, json};

use super::rig::{Rig, serve};
use crate::support::{LIMIT, Outcome, Place, until};

fn rig(variables: &[(&str, &str)]) -> Rig {
    Rig::with(&Value::Null, variables)
}

/// Returns what a gateway says that does not start.
fn refused(variables: &[(&str, &str)]) -> String {
    let place = Place::new();
    let outcome = Outcome::of_input(serve(&place, &Value::Null, variables), None);
    assert_eq!(outcome.code, Some(2), "{}", outcome.stderr);
    outcome.stderr
}

#[test]
fn an_environment_with_every_variable_starts_the_gateway_and_answers() {
    let place = Place::new();
    let folder = place.path("prompts");
    std::fs::create_dir(&folder).unwrap();
    let variables = [
        ("AGENT_BACKEND", "claude"),
        ("BACKEND_CLI_PATH", "claude"),
        ("BACKEND_MODEL", "opus"),
        ("BACKEND_MAX_TURNS", "9"),
        ("ALLOWED_TOOLS", "Read,Grep"),
        ("QUERY_TIMEOUT_MS", "60000"),
        ("MAX_CONCURRENT_QUERIES", "2"),
        ("MAX_QUEUE_DEPTH", "10"),
        ("CONFIG_DIR", folder.to_str().unwrap()),
        ("PERMISSION_MODE", "bypassPermissions"),
        ("LOG_LEVEL", "debug"),
        ("DISCORD_BOT_TOKEN", "token"),
        ("OUTPUT_CHANNEL_ID", "123456789"),
        ("CODE_AGENT_DEFAULT", "claudecode"),
        ("OPENCODE_ENABLED", "false"),
        ("OPENCODE_URL", "http://127.0.0.1:4096"),
        ("OPENCODE_USERNAME", "opencode"),
        ("OPENCODE_PASSWORD", "secret"),
        ("TWILIO_ACCOUNT_SID", "AC00000000000000000000000000000000"),
        ("TWILIO_AUTH_TOKEN", "token"),
        ("TWILIO_API_KEY", "SK00000000000000000000000000000000"),
        ("TWILIO_API_SECRET", "secret"),
        ("TWILIO_WHATSAPP_FROM", "whatsapp:+14155238886"),
        ("WOODPECKER_URL", "http://127.0.0.1:8000"),
        ("WOODPECKER_API_TOKEN", "token"),
    ];
    let rig = Rig::start(place, &Value::Null, &variables);
    let call = rig.ask("hello");
    assert_eq!((call.value_of("--model"), call.value_of("--max-turns")), (Some("opus"), Some("9")));
    assert!(call.has("--dangerously-skip-permissions") && call.has("--allowedTools"), "{call:?}");
    assert_eq!(rig.reply()["text"], "answer 0");
}

#[test]
fn agent_backend_says_who_answers_and_a_wrong_one_is_an_error() {
    assert_eq!(rig(&[("AGENT_BACKEND", "pi")]).ask("hello").argv[0], "pi");
    assert_eq!(rig(&[]).ask("hello").argv[0], "claude");
    for wrong in ["", "Claude", "claudecode"] {
        let said = refused(&[("AGENT_BACKEND", wrong)]);
        assert!(said.contains("claude, codex, gemini, opencode, pi"), "{said}");
    }
}

#[test]
fn backend_cli_path_names_the_program() {
    assert_eq!(rig(&[("BACKEND_CLI_PATH", "wrapper")]).ask("hello").argv[0], "wrapper");
}

#[test]
fn backend_model_is_the_model() {
    assert_eq!(rig(&[("BACKEND_MODEL", "opus")]).ask("hello").value_of("--model"), Some("opus"));
}

#[test]
fn backend_max_turns_is_a_limit_and_a_wrong_one_is_25_and_a_warning() {
    let set = rig(&[("BACKEND_MAX_TURNS", "7")]);
    assert_eq!(set.ask("hello").value_of("--max-turns"), Some("7"));
    let wrong = rig(&[("BACKEND_MAX_TURNS", "many")]);
    assert_eq!(wrong.ask("hello").value_of("--max-turns"), Some("25"));
    assert!(wrong.log().contains("BACKEND_MAX_TURNS"), "{}", wrong.log());
}

#[test]
fn allowed_tools_are_the_only_ones() {
    let call = rig(&[("ALLOWED_TOOLS", "Read, Grep")]).ask("hello");
    let at = call.argv.iter().position(|word| word == "--tools").unwrap();
    let tools = call.argv[at + 1..].join(" ");
    assert!(tools.starts_with("Read,Grep") || tools.starts_with("Read Grep"), "{call:?}");
}

#[test]
fn query_timeout_ms_ends_a_turn_that_takes_longer() {
    let rig = rig(&[("QUERY_TIMEOUT_MS", "500")]);
    let job = rig.send("hang-here", &json!({ "retries": 0 }));
    assert_eq!(rig.end_of(&job)["state"], "dead");
    assert_eq!(rig.reply()["error"]["message"], "Query timed out");
    assert!(refused(&[("QUERY_TIMEOUT_MS", "0")]).contains("invalid timeout"));
}

#[test]
fn max_concurrent_queries_is_how_many_turns_run_at_once() {
    let rig = rig(&[("MAX_CONCURRENT_QUERIES", "1")]);
    let first = rig.send("hang-here", &json!({}));
    rig.call(0);
    let second = rig.send("hello", &json!({ "conversation": "local:other" }));
    let standing = rig.client().ask(&json!({ "type": "status" })).unwrap();
    assert_eq!((&standing["turns_running"], &standing["queue"]["ready"]), (&json!(1), &json!(1)));
    rig.client().ask(&json!({ "type": "cancel", "job": first })).unwrap();
    assert_eq!(rig.end_of(&second)["state"], "done");
}

#[test]
fn max_queue_depth_is_how_many_messages_may_wait() {
    let rig = rig(&[("MAX_QUEUE_DEPTH", "1")]);
    rig.send("hang-here", &json!({}));
    rig.call(0);
    rig.send("waits", &json!({}));
    assert_eq!(rig.try_send("too much", &json!({}))["code"], "queue_full");
}

#[test]
fn permission_mode_says_what_the_agent_may_do() {
    let has = |mode: &str| {
        rig(&[("PERMISSION_MODE", mode)]).ask("hello").has("--dangerously-skip-permissions")
    };
    assert!(has("bypassPermissions") && !has("plan"));
    assert!(refused(&[("PERMISSION_MODE", "everything")]).contains("PERMISSION_MODE"));
}

#[test]
fn log_level_says_how_much_is_logged() {
    // The first key is shown whatever is logged.
    let is_told = |log: &str| log.contains(" info ");
    let quiet = rig(&[("LOG_LEVEL", "error")]).log();
    assert!(!is_told(&quiet), "{quiet}");
    let talkative = rig(&[("LOG_LEVEL", "info")]);
    until("something is logged", || is_told(&talkative.log()).then_some(()));
}

#[test]
fn code_agent_default_takes_the_older_name_and_no_stranger() {
    rig(&[("CODE_AGENT_DEFAULT", "claudecode")]).ask("hello");
    assert!(refused(&[("CODE_AGENT_DEFAULT", "duck")]).contains("invalid agent provider"));
}

/// Answers one call as a healthy server of OpenCode; what it heard is sent.
fn server() -> (String, mpsc::Receiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let (sender, heard) = mpsc::channel();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let mut request = [0; 4096];
            let n_read = stream.read(&mut request).unwrap_or(0);
            sender.send(String::from_utf8_lossy(&request[..n_read]).into_owned()).ok();
            let body = r#"{"healthy":true,"version":"1.18.33"}"#;
            let length = body.len();
            let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {length}\r\nconnection: close");
            stream.write_all(format!("{head}\r\n\r\n{body}").as_bytes()).ok();
        }
    });
    (url, heard)
}

/// Starts a gateway with a server of OpenCode; returns what that heard first.
fn heard_by_server(variables: &[(&str, &str)]) -> String {
    let (url, heard) = server();
    let mut all =
        vec![("AGENT_BACKEND", "opencode"), ("OPENCODE_ENABLED", "true"), ("OPENCODE_URL", &url)];
    all.extend(variables);
    let _rig = rig(&all);
    heard.recv_timeout(LIMIT).unwrap().to_ascii_lowercase()
}

#[test]
fn opencode_enabled_and_opencode_url_lead_to_a_server_that_runs() {
    let heard = heard_by_server(&[]);
    assert!(heard.starts_with("get /global/health"), "{heard}");
    let off = rig(&[("AGENT_BACKEND", "opencode"), ("OPENCODE_URL", "http://127.0.0.1:1")]);
    assert_eq!(off.ask("hello").argv[0], "opencode", "without the switch it is a program");
    let bad = [("OPENCODE_ENABLED", "true"), ("OPENCODE_URL", "ftp://h")];
    assert!(refused(&bad).contains("OPENCODE_URL"));
    assert!(refused(&[("OPENCODE_ENABLED", "maybe")]).contains("OPENCODE_ENABLED"));
}

#[test]
fn opencode_username_and_opencode_password_are_its_login() {
    // opencode:secret and me:secret, as basic authentication has them.
    let default = heard_by_server(&[("OPENCODE_PASSWORD", "secret")]);
    assert!(default.contains(&"authorization: basic b3BlbmNvZGU6c2VjcmV0".to_ascii_lowercase()));
    let own = heard_by_server(&[("OPENCODE_USERNAME", "me"), ("OPENCODE_PASSWORD", "secret")]);
    assert!(own.contains(&"authorization: basic bWU6c2VjcmV0".to_ascii_lowercase()), "{own}");
}

#[test]
fn a_dotenv_file_says_the_same_and_every_wrong_variable_is_told_at_once() {
    let place = Place::new();
    std::fs::write(place.work().join(".env"), "AGENT_BACKEND=pi\nBACKEND_MODEL=m\n").unwrap();
    let rig = Rig::start(place, &Value::Null, &[]);
    assert_eq!(rig.ask("hello").argv[0], "pi");
    let said =
        refused(&[("AGENT_BACKEND", "x"), ("MAX_QUEUE_DEPTH", "0"), ("QUERY_TIMEOUT_MS", "x")]);
    for name in ["AGENT_BACKEND", "MAX_QUEUE_DEPTH", "QUERY_TIMEOUT_MS"] {
        assert!(said.contains(name), "{said}");
    }
}

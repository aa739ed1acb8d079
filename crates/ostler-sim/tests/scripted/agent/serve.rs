//! `opencode serve` as it is played: every call, with what can go wrong, and the
//! stream of events.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Stdio};

use serde_json::{Value, json};
use tempfile::TempDir;

use super::command;

/// `opencode:secret`.
const LOGIN: &str = "Basic b3BlbmNvZGU6c2VjcmV0";

struct Server {
    child: Child,
    address: String,
    home: TempDir,
}

impl Server {
    fn start(args: &[&str], variables: &[(&str, &str)]) -> Self {
        let home = tempfile::tempdir().unwrap();
        let all = [&["serve", "--hostname", "127.0.0.1", "--port", "0"], args].concat();
        let mut command = command("opencode", home.path(), &all);
        command.env("OPENCODE_SERVER_PASSWORD", "secret").envs(variables.iter().copied());
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let address = line.trim().strip_prefix("opencode server listening on http://");
        let address = address.unwrap().to_owned();
        Self { child, address, home }
    }

    fn connect(&self, method: &str, path: &str, login: &str, body: &str) -> BufReader<TcpStream> {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        let length = body.len();
        let head = format!(
            "{method} {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\
             authorization: {login}\r\ncontent-length: {length}\r\n\r\n{body}"
        );
        stream.write_all(head.as_bytes()).unwrap();
        BufReader::new(stream)
    }

    fn call_as(&self, login: &str, method: &str, path: &str, body: &str) -> (u16, String) {
        let mut text = String::new();
        self.connect(method, path, login, body).read_to_string(&mut text).unwrap();
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        (head.split(' ').nth(1).unwrap().parse().unwrap(), body.to_owned())
    }

    fn call(&self, method: &str, path: &str, body: &Value) -> (u16, Value) {
        let body = if body.is_null() { String::new() } else { body.to_string() };
        let (status, text) = self.call_as(LOGIN, method, path, &body);
        (status, serde_json::from_str(&text).unwrap_or(Value::String(text)))
    }

    fn session(&self) -> String {
        let (status, session) =
            self.call("POST", "/session?directory=%2Fa", &json!({ "title": "t" }));
        assert_eq!(status, 200);
        assert_eq!(session.get("directory"), Some(&"/a".into()));
        assert_eq!(session.get("title"), Some(&"t".into()));
        session.get("id").and_then(Value::as_str).unwrap().to_owned()
    }

    fn prompt(&self, session: &str, text: &str) -> (u16, Value) {
        self.call("POST", &format!("/session/{session}/prompt_async"), &parts(text))
    }

    fn listen(&self, path: &str) -> Events {
        let mut events = Events(self.connect("GET", path, LOGIN, ""));
        assert_eq!(kind_of(&events.next().unwrap()), "server.connected");
        events
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

/// A stream, event by event; ends where the connection does.
struct Events(BufReader<TcpStream>);

impl Iterator for Events {
    type Item = Value;

    fn next(&mut self) -> Option<Value> {
        loop {
            let mut line = String::new();
            if self.0.read_line(&mut line).ok()? == 0 {
                return None;
            }
            if let Some(data) = line.strip_prefix("data: ") {
                let event: Value = serde_json::from_str(data.trim()).unwrap();
                return Some(event.get("payload").cloned().unwrap_or(event));
            }
        }
    }
}

impl Events {
    /// The kinds of what is told until this is.
    fn until(&mut self, kind: &str) -> Vec<String> {
        let mut kinds = Vec::new();
        for event in self {
            kinds.push(kind_of(&event).to_owned());
            if kind_of(&event) == kind {
                break;
            }
        }
        assert_eq!(kinds.last().map(String::as_str), Some(kind), "{kinds:?}");
        kinds
    }

    fn find(&mut self, kind: &str) -> Value {
        Iterator::find(self, |event| kind_of(event) == kind).unwrap()
    }
}

fn kind_of(event: &Value) -> &str {
    event.get("type").and_then(Value::as_str).unwrap_or_default()
}

fn parts(text: &str) -> Value {
    json!({ "parts": [{ "type": "text", "text": text }] })
}

#[test]
fn whoever_does_not_know_the_password_hears_nothing() {
    let server = Server::start(&[], &[]);
    for login in ["", "Bearer secret", "Basic b3BlbmNvZGU6d3Jvbmc="] {
        for path in ["/global/health", "/session/status", "/event"] {
            let (status, body) = server.call_as(login, "GET", path, "");
            assert_eq!((status, body.as_str()), (401, ""), "{path} as {login}");
        }
    }
    let (status, health) = server.call("GET", "/global/health", &Value::Null);
    assert_eq!((status, &health["healthy"]), (200, &true.into()));
}

#[test]
fn a_turn_is_told_in_the_order_of_the_real_server() {
    let server = Server::start(&[], &[]);
    let session = server.session();
    let mut events = server.listen("/event?directory=%2Fa");
    assert_eq!(server.prompt(&session, "hello"), (204, Value::String(String::new())));
    let mut kinds = events.until("session.idle");
    kinds.dedup();
    assert_eq!(
        kinds,
        [
            "message.updated",
            "message.part.updated",
            "session.status",
            "message.updated",
            "message.part.updated",
            "message.part.delta",
            "message.part.updated",
            "message.updated",
            "session.status",
            "session.idle",
        ]
    );
    let (_, messages) = server.call("GET", &format!("/session/{session}/message"), &Value::Null);
    assert_eq!(messages[0]["parts"][0]["text"], "hello");
    assert_eq!(messages[1]["info"]["parentID"], messages[0]["info"]["id"]);
    assert_eq!(messages[1]["info"]["finish"], "stop");
    let text = messages[1]["parts"][1]["text"].as_str().unwrap();
    assert!(text.contains("scripted agent playing opencode"), "{text}");
}

#[test]
fn a_stream_of_one_directory_tells_nothing_of_another() {
    let server = Server::start(&[], &[]);
    let session = server.session();
    let mut other = server.listen("/event?directory=%2Fb");
    let mut all = server.listen("/global/event");
    server.prompt(&session, "hello");
    all.until("session.idle");
    server.call("POST", "/session?directory=%2Fb", &json!({}));
    assert_eq!(other.next().unwrap()["type"], "session.created");
}

#[test]
fn a_message_that_is_waited_for_comes_back_whole() {
    let server = Server::start(&[], &[]);
    let session = server.session();
    let (status, last) = server.call("POST", &format!("/session/{session}/message"), &parts("hi"));
    assert_eq!((status, &last["info"]["finish"]), (200, &"stop".into()), "{last}");
    let (_, last) =
        server.call("POST", &format!("/session/{session}/message"), &parts("sim:error"));
    assert_eq!(last["info"]["error"]["name"], "APIError", "{last}");
}

#[test]
fn what_is_wrong_with_a_call_is_said_as_the_real_server_does() {
    let server = Server::start(&[], &[]);
    let session = server.session();
    let prompt = format!("/session/{session}/prompt_async");
    let unknown = "/session/ses_0000000000000000000000000";
    for (method, path, body, status, name) in [
        ("GET", unknown, Value::Null, 404, "NotFoundError"),
        ("POST", &format!("{unknown}/message"), parts("hi"), 404, "NotFoundError"),
        ("GET", "/session/nonsense", Value::Null, 500, "UnknownError"),
        ("POST", &prompt, json!({ "model": {} }), 400, "BadRequest"),
        ("POST", &prompt, parts("sim:http=500"), 500, "UnknownError"),
        ("POST", &prompt, parts("sim:http=400"), 400, "BadRequest"),
        (
            "POST",
            "/permission/per_1/reply",
            json!({ "reply": "once" }),
            404,
            "PermissionNotFoundError",
        ),
        ("POST", "/permission/per_1/reply", json!({}), 400, "BadRequest"),
        (
            "POST",
            "/question/que_1/reply",
            json!({ "answers": [["x"]] }),
            404,
            "PermissionNotFoundError",
        ),
    ] {
        let (told, error) = server.call(method, path, &body);
        assert_eq!((told, &error["name"]), (status, &name.into()), "{method} {path} {body}");
    }
    assert_eq!(server.call_as(LOGIN, "POST", &prompt, "{").0, 500);
    assert_eq!(server.call("POST", &prompt, &parts("sim:http=401")), (401, json!("")));
    let (status, page) = server.call("GET", "/health", &Value::Null);
    assert!(status == 200 && page.as_str().unwrap().starts_with("<!doctype"), "{page}");
    let (_, done) = server.call("POST", &format!("{unknown}/abort"), &Value::Null);
    assert_eq!(done, true, "also what does not exist is ended");
}

#[test]
fn a_permission_is_asked_listed_and_answered() {
    let server = Server::start(&[], &[("OPENCODE_PERMISSION", r#"{"bash":"ask"}"#)]);
    let session = server.session();
    let mut events = server.listen("/event?directory=%2Fa");
    for (answer, says, is_old) in [
        (json!({ "reply": "once" }), "pretended", false),
        (json!({ "response": "once" }), "pretended", true),
        (json!({ "reply": "reject", "message": "no" }), "not allowed", false),
    ] {
        server.prompt(&session, "sim:tool");
        let asked = events.find("permission.asked")["properties"].clone();
        let id = asked["id"].as_str().unwrap();
        assert_eq!(server.call("GET", "/permission", &Value::Null).1, json!([asked]));
        let (_, busy) = server.call("GET", "/session/status", &Value::Null);
        assert_eq!(busy[&session]["type"], "busy");
        let path = match is_old {
            true => format!("/session/{session}/permissions/{id}"),
            false => format!("/permission/{id}/reply"),
        };
        assert_eq!(server.call("POST", &path, &answer), (200, true.into()));
        events.until("session.idle");
        assert_eq!(server.call("GET", "/permission", &Value::Null).1, json!([]));
        assert_eq!(server.call("GET", "/session/status", &Value::Null).1, json!({}));
        let (_, all) = server.call("GET", &format!("/session/{session}/message"), &Value::Null);
        let last = all.as_array().unwrap().last().unwrap()["parts"][1]["text"].as_str().unwrap();
        assert!(last.contains(says), "{last}");
    }
    server.prompt(&session, "sim:tool");
    let asked = events.find("permission.asked")["properties"]["id"].clone();
    let path = format!("/permission/{}/reply", asked.as_str().unwrap());
    server.call("POST", &path, &json!({ "reply": "reject" }));
    events.until("session.idle");
    let (_, all) = server.call("GET", &format!("/session/{session}/message"), &Value::Null);
    let last = all.as_array().unwrap().last().unwrap();
    assert_eq!(last["info"]["finish"], "tool-calls", "a denial without a word ends the turn");
}

#[test]
fn a_question_waits_for_its_answer() {
    let server = Server::start(&[], &[]);
    let session = server.session();
    let mut events = server.listen("/event?directory=%2Fa");
    for (verb, body, says) in [
        ("reply", json!({ "answers": [["Green"]] }), "You chose Green."),
        ("reject", json!({}), "You chose nothing."),
    ] {
        server.prompt(&session, "sim:question");
        let id = events.find("question.asked")["properties"]["id"].clone();
        assert_eq!(server.call("GET", "/question", &Value::Null).1[0]["id"], id);
        let path = format!("/question/{}/{verb}", id.as_str().unwrap());
        assert_eq!(server.call("POST", &path, &body).0, 200);
        events.until("session.idle");
        let (_, all) =
            server.call("GET", &format!("/session/{session}/message?limit=1"), &Value::Null);
        let text = all[0]["parts"][1]["text"].as_str().unwrap();
        assert!(text.ends_with(says), "{text}");
    }
}

#[test]
fn an_abort_ends_a_turn_and_tells_it_twice() {
    let server = Server::start(&[], &[]);
    let session = server.session();
    let mut events = server.listen("/event?directory=%2Fa");
    server.prompt(&session, "sim:never-idle");
    events.find("message.part.delta");
    assert_eq!(server.call("POST", &format!("/session/{session}/abort"), &Value::Null).1, true);
    let error = events.find("session.error");
    assert_eq!(error["properties"]["error"]["name"], "MessageAbortedError");
    events.until("session.idle");
    assert_eq!(events.until("session.idle"), ["message.updated", "session.status", "session.idle"]);
    assert_eq!(server.call("GET", "/session/status", &Value::Null).1, json!({}));
}

#[test]
fn a_second_prompt_is_taken_into_the_turn_that_runs() {
    let server = Server::start(&[], &[]);
    let session = server.session();
    let mut events = server.listen("/event?directory=%2Fa");
    server.prompt(&session, "sim:delay=300");
    server.prompt(&session, "and this");
    let kinds = events.until("session.idle");
    assert_eq!(kinds.iter().filter(|kind| *kind == "session.status").count(), 2, "{kinds:?}");
    let (_, all) = server.call("GET", &format!("/session/{session}/message"), &Value::Null);
    assert_eq!(all.as_array().unwrap().len(), 4);
}

#[test]
fn the_streams_break_off_where_a_prompt_says_so() {
    let server = Server::start(&[], &[]);
    let session = server.session();
    let events = server.listen("/event?directory=%2Fa");
    server.prompt(&session, "sim:cut");
    let kinds: Vec<Value> = events.map(|event| event["type"].clone()).collect();
    assert_eq!(kinds.last(), Some(&"message.part.delta".into()), "{kinds:?}");
}

#[test]
fn under_the_flat_names_only_texts_tools_and_the_end_are_told() {
    let server = Server::start(&["--scripted-events", "flat"], &[]);
    let session = server.session();
    let mut events = server.listen("/event?directory=%2Fa");
    server.prompt(&session, "sim:tool");
    let mut kinds = events.until("session.completed");
    kinds.dedup();
    assert_eq!(
        kinds,
        [
            "tool.started",
            "tool.completed",
            "message.created",
            "message.updated",
            "session.completed"
        ]
    );
    server.prompt(&session, "sim:error");
    assert_eq!(events.until("error"), ["error"]);
}

#[test]
fn a_session_outlives_the_server() {
    let server = Server::start(&[], &[]);
    let session = server.session();
    server.call("POST", &format!("/session/{session}/message"), &parts("first"));
    let files = std::fs::read_dir(server.home.path().join("opencode")).unwrap().count();
    assert_eq!(files, 1);
}

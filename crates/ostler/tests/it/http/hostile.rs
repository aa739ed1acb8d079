//! Requests of people who mean no good, and of programs that are broken: whatever
//! comes over the wire, nothing fails inside, whoever is owed an answer gets one in
//! the envelope, and the gateway goes on.

mod reading;

use std::{fs, io::Write as _};

use serde_json::{Value, json};

use self::reading::{answers, check, one, some};
use super::served::{Served, admin, roots};
use crate::support::{Place, until};

/// A key as they look, that is none.
const NO_KEY: &str = "ost_0123456789abcdefghijABCDEFGHIJ01";
const PROJECT: &str = "prj_01890a5d000070008000000000000000";

/// Returns a request with these headers in addition, after which nothing follows.
fn request(line: &str, headers: &str, body: &[u8]) -> Vec<u8> {
    let length = body.len();
    let head = format!(
        "{line} HTTP/1.1\r\nHost: ostler\r\nContent-Length: {length}\r\n\
         Connection: close\r\n{headers}\r\n"
    );
    [head.as_bytes(), body].concat()
}

/// Returns a request with a body of JSON, and a key.
fn posted(path: &str, key: &str, body: &[u8]) -> Vec<u8> {
    let headers = format!("Authorization: Bearer {key}\r\nContent-Type: application/json\r\n");
    request(&format!("POST {path}"), &headers, body)
}

#[test]
fn what_is_no_request_is_refused() {
    let place = Place::new();
    let mut served = Served::start(&place);
    let long = "a".repeat(1024 * 1024);
    let many = "X-A: b\r\n".repeat(2000);
    let texts = [
        "\r\n\r\n\r\n\r\n".to_owned(),
        "hello\r\n\r\n".to_owned(),
        "GET\r\n\r\n".to_owned(),
        "GET /ready\r\n\r\n".to_owned(),
        "GET /ready HTTP/9.9\r\n\r\n".to_owned(),
        "GET /ready HTTP/1.1\r\nHost : ostler\r\n\r\n".to_owned(),
        "GET /ready HTTP/1.1\r\n: none\r\n\r\n".to_owned(),
        "GET /ready HTTP/1.1\r\nHost: a\r\n b\r\n\r\n".to_owned(),
        "GET /ready HTTP/1.1\r\nHost: a\0b\r\nConnection: close\r\n\r\n".to_owned(),
        "GET /re ady HTTP/1.1\r\nHost: ostler\r\n\r\n".to_owned(),
        "G\u{e4}T /ready HTTP/1.1\r\nHost: ostler\r\n\r\n".to_owned(),
        "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_owned(),
        "\u{16}\u{3}\u{1}\u{2}\0\u{1}\0\u{1}\u{fc}\u{3}\u{3}\r\n\r\n".to_owned(),
        "POST /projects HTTP/1.1\r\nContent-Length: -1\r\n\r\n".to_owned(),
        "POST /projects HTTP/1.1\r\nContent-Length: 1e3\r\n\r\n".to_owned(),
        "POST /projects HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab".to_owned(),
        "POST /projects HTTP/1.1\r\nContent-Length: 99999999999999999999999\r\n\r\n".to_owned(),
        "POST /projects HTTP/1.1\r\nTransfer-Encoding: gzip\r\n\r\n".to_owned(),
        "POST /projects HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n".to_owned(),
        format!("GET /{long} HTTP/1.1\r\n\r\n"),
        format!("GET /ready HTTP/1.1\r\nX-Long: {long}\r\n\r\n"),
        format!("GET /ready HTTP/1.1\r\n{many}\r\n"),
    ];
    let mut silent = Vec::new();
    for text in &texts {
        let start: String = text.chars().take(60).collect();
        let told = served.cut(text.as_bytes());
        if told.is_empty() {
            silent.push(start.clone());
            continue;
        }
        for answer in some(&told, &start) {
            assert!(answer.status >= 400 || text.contains("Host: a"), "{start:?}: {answer:?}");
        }
        served.must_live();
    }
    // Nothing was asked, and another protocol is spoken.
    assert_eq!(silent, ["\r\n\r\n\r\n\r\n", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"]);
    served.must_live();
    served.stop();
}

#[test]
fn a_strange_target_leads_nowhere_or_where_it_says() {
    let place = Place::new();
    let mut served = Served::start(&place);
    let (slash, id) = ("%2F", PROJECT);
    for (target, status) in [
        ("/ready", 200),
        ("http://ostler/ready", 200),
        ("http://other:1/ready", 200),
        ("/ready?", 200),
        ("/ready?a=%ff&%00", 200),
        ("/ready/", 404),
        ("//ready", 404),
        ("/./ready", 404),
        ("/../ready", 404),
        ("/health/../ready", 404),
        ("/health/%2e%2e/ready", 404),
        ("/%2e%2e/%2e%2e/etc/passwd", 404),
        ("/..%2f..%2fetc%2fpasswd", 404),
        ("/%", 404),
        ("/%zz", 404),
        ("/%ff%fe", 404),
        ("/nothing%00", 404),
        ("/openapi.json/..", 404),
    ] {
        let answer = one(&served.exchange(&request(&format!("GET {target}"), "", b"")), target);
        assert_eq!(answer.status, status, "{target}: {answer:?}");
    }
    // With what is behind keys, whether it is there is not told.
    for path in [
        format!("/projects/{id}"),
        "/projects/%00".to_owned(),
        "/projects/%ff".to_owned(),
        format!("/projects/%70{}", &id[1..]),
        format!("/projects/..{slash}keys"),
        format!("/projects/{id}{slash}events"),
        format!("/projects/{}", "a".repeat(10_000)),
        "/projects/' OR 1=1 --".replace(' ', "%20"),
        format!("/projects/{id}/commands/%00/events?after=-1&limit=1e9"),
        "/keys/key_%F0%9F%92%A9".to_owned(),
    ] {
        let answer = one(&served.exchange(&request(&format!("GET {path}"), "", b"")), &path);
        assert!([401, 404].contains(&answer.status), "{path}: {answer:?}");
    }
    for line in ["OPTIONS *", "CONNECT ostler:80", "TRACE /ready", "BREW /ready", "PURGE /"] {
        for answer in some(&served.exchange(&request(line, "", b"")), line) {
            assert!((400..500).contains(&answer.status), "{line}: {answer:?}");
        }
    }
    served.must_live();
    served.stop();
}

#[test]
fn strange_headers_change_nothing() {
    let place = Place::new();
    let mut served = Served::start(&place);
    for headers in [
        "Host: other\r\n",
        "Host:\r\n",
        "Authorization: Bearer\r\n",
        "Authorization: Bearer \u{fffd}\r\n",
        "Authorization: Basic YTpi\r\nAuthorization: Bearer x\r\n",
        "X-Request-Id: a\r\nX-Request-Id: b\r\n",
        "X-Forwarded-For: 10.0.0.1, nonsense, ::1\r\nForwarded: for=\"[\r\n",
        "Upgrade: h2c\r\nHTTP2-Settings: AAA\r\n",
        "Expect: a-miracle\r\n",
        "Range: bytes=0-0\r\nIf-None-Match: *\r\n",
        "Accept: nothing/at-all;q=9\r\nAccept-Encoding: \u{1}\r\n",
        "Content-Type: application/json; charset=\u{e4}\r\n",
        "Origin: null\r\nAccess-Control-Request-Method: DELETE\r\n",
        "Cookie: a=b; c\r\nTE: trailers\r\nTrailer: X\r\n",
    ] {
        let bytes = request("GET /ready", headers, b"");
        for answer in some(&served.exchange(&bytes), headers) {
            assert!([200, 400].contains(&answer.status), "{headers:?}: {answer:?}");
        }
        let bytes = request("GET /projects", headers, b"");
        for answer in some(&served.exchange(&bytes), headers) {
            assert!(answer.status >= 400, "{headers:?}: {answer:?}");
        }
    }
    served.must_live();
    served.stop();
}

#[test]
fn requests_in_one_piece_are_answered_in_their_order() {
    let place = Place::new();
    let mut served = Served::start(&place);
    let mut all = Vec::new();
    for number in 0..100 {
        let end = if number == 99 { "Connection: close\r\n" } else { "" };
        let path = if number % 3 == 0 { "/nothing" } else { "/ready" };
        let line =
            format!("GET {path} HTTP/1.1\r\nHost: o\r\nX-Request-Id: n{number}\r\n{end}\r\n");
        all.extend(line.into_bytes());
    }
    let answers = answers(&served.exchange(&all));
    assert_eq!(answers.len(), 100);
    for (number, answer) in answers.iter().enumerate() {
        check(answer, "pipelined");
        assert_eq!(answer.header("x-request-id"), Some(format!("n{number}").as_str()));
        assert_eq!(answer.status, if number % 3 == 0 { 404 } else { 200 });
    }
    // What is within the body of one is not another.
    let inner = request("GET /nothing", "", b"");
    let outer = request("GET /ready", "", &inner);
    assert_eq!(one(&served.exchange(&outer), "smuggled").status, 200);
    let chunked = "POST /nothing HTTP/1.1\r\nHost: o\r\nContent-Length: 4\r\n\
                   Transfer-Encoding: chunked\r\nConnection: close\r\n\r\n\
                   0\r\n\r\nGET /ready HTTP/1.1\r\nHost: o\r\n\r\n";
    let found = reading::answers(&served.exchange(chunked.as_bytes()));
    assert!(found.len() <= 1 && found.iter().all(|answer| answer.status >= 400), "{found:?}");
    served.must_live();
    served.stop();
}

#[test]
fn those_who_never_finish_hold_up_nobody() {
    let place = Place::new();
    let mut served = Served::start(&place);
    let whole = posted(&format!("/projects/{PROJECT}/prompt"), NO_KEY, br#"{"prompt":"hello"}"#);
    let mut waiting = Vec::new();
    for length in 0..whole.len() {
        let mut stream = served.connect();
        stream.write_all(&whole[..length]).unwrap();
        waiting.push(stream);
    }
    served.must_live();
    drop(waiting);
    let head = whole.windows(4).position(|four| four == b"\r\n\r\n").unwrap() + 4;
    for length in (0..head).step_by(3) {
        for answer in answers(&served.cut(&whole[..length])) {
            check(&answer, &format!("cut after {length}"));
        }
    }
    // Whose key is none is told so, whatever becomes of the body.
    for length in head..whole.len() {
        let answer = one(&served.cut(&whole[..length]), &format!("cut after {length}"));
        // After some of them, that it is too much.
        assert!([401, 429].contains(&answer.status), "{answer:?}");
    }
    served.must_live();
    served.stop();
}

#[test]
fn requests_with_some_bytes_changed_are_answered_or_not_but_break_nothing() {
    let place = Place::new();
    let mut served = Served::start(&place);
    let whole = posted(&format!("/projects/{PROJECT}/prompt"), NO_KEY, br#"{"prompt":"hello"}"#);
    // The same numbers in every run.
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut next = |below: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        usize::try_from(state % below as u64).unwrap()
    };
    let mut n_answers = 0;
    for _ in 0..400 {
        let mut bytes = whole.clone();
        for _ in 0..=next(4) {
            let place = next(bytes.len());
            match next(3) {
                0 => bytes[place] = u8::try_from(next(256)).unwrap(),
                1 => drop(bytes.remove(place)),
                _ => bytes.insert(place, u8::try_from(next(256)).unwrap()),
            }
        }
        let answers = answers(&served.cut(&bytes));
        n_answers += answers.len();
        for answer in answers {
            check(&answer, &String::from_utf8_lossy(&bytes));
            assert!(answer.status >= 400, "{answer:?} to {}", String::from_utf8_lossy(&bytes));
        }
    }
    // Most are still requests, or nearly so.
    assert!(n_answers > 200, "{n_answers}");
    served.must_live();
    served.stop();
}

#[test]
fn bodies_that_are_not_what_they_should_be_are_refused_with_the_reason() {
    let place = Place::new();
    let mut served = Served::start(&place);
    let key = admin(&place);
    let deep = [b"{\"name\":".to_vec(), b"[".repeat(100_000)].concat();
    let objects = b"{\"a\":".repeat(50_000);
    let long = format!(r#"{{"name":"{}"}}"#, "a".repeat(2 * 1024 * 1024)).into_bytes();
    let bodies: [(&[u8], &[u16]); 19] = [
        (b"", &[400]),
        (b" \n", &[400]),
        (b"null", &[400]),
        (b"[]", &[400]),
        (b"\"text\"", &[400]),
        (b"{", &[400]),
        (b"{}", &[400]),
        (b"{}{}", &[400]),
        (b"{'name':'a'}", &[400]),
        (br#"{"name":1e999,"directory":"a"}"#, &[400]),
        (br#"{"name":99999999999999999999999999,"directory":"a"}"#, &[400]),
        (br#"{"name":"a","name":"b","directory":"a"}"#, &[400]),
        (br#"{"name":"\ud800","directory":"a"}"#, &[400]),
        (b"{\"name\":\"\xff\xfe\",\"directory\":\"a\"}", &[400]),
        (b"\xef\xbb\xbf{}", &[400]),
        (br#"{"name":"a","directory":"a","__proto__":{}}"#, &[400]),
        (&deep, &[400]),
        (&objects, &[400]),
        (&long, &[413]),
    ];
    for path in ["/projects", "/keys", "/webhooks"] {
        for (body, statuses) in bodies {
            let start = String::from_utf8_lossy(&body[..body.len().min(60)]).into_owned();
            let answer = one(&served.exchange(&posted(path, &key, body)), &start);
            assert!(statuses.contains(&answer.status), "{path} {start}: {answer:?}");
        }
        for sort in ["text/plain", "application/x-www-form-urlencoded", "application/jsonx", ""] {
            let headers = format!("Authorization: Bearer {key}\r\nContent-Type: {sort}\r\n");
            let bytes = request(&format!("POST {path}"), &headers, br#"{"name":"a"}"#);
            assert_eq!(one(&served.exchange(&bytes), sort).status, 415, "{path} {sort}");
        }
    }
    let endless = "Transfer-Encoding: chunked\r\nContent-Type: application/json\r\n";
    let head = format!(
        "POST /projects HTTP/1.1\r\nHost: o\r\nAuthorization: Bearer {key}\r\n{endless}\
         Connection: close\r\n\r\n"
    );
    let chunk = [b"10000\r\n".to_vec(), vec![b' '; 0x10000], b"\r\n".to_vec()].concat();
    let bytes = [head.clone().into_bytes(), chunk.repeat(32)].concat();
    assert_eq!(one(&served.exchange(&bytes), "endless").status, 413);
    let bad = format!("{head}zz\r\nabc\r\n");
    assert_eq!(one(&served.exchange(bad.as_bytes()), "a chunk of no length").status, 400);
    served.must_live();
    served.stop();
}

#[test]
fn what_is_not_there_or_makes_no_sense_is_a_plain_error() {
    let place = Place::new();
    let mut served = Served::start(&place);
    let key = admin(&place);
    let none = PROJECT.trim_start_matches("prj_");
    for (method, path, body, status) in [
        ("GET", format!("/projects/{PROJECT}"), "", 404),
        ("POST", format!("/projects/{PROJECT}/prompt"), r#"{"prompt":"hello"}"#, 404),
        ("POST", format!("/projects/{PROJECT}/commands/cmd_{none}/cancel"), "", 404),
        (
            "POST",
            format!("/projects/{PROJECT}/permissions/prm_{none}"),
            r#"{"decision":"allow"}"#,
            404,
        ),
        ("DELETE", format!("/projects/{PROJECT}"), "", 404),
        ("DELETE", format!("/keys/key_{none}"), "", 404),
        ("DELETE", format!("/webhooks/whk_{none}"), "", 404),
        ("GET", "/projects?limit=0".to_owned(), "", 400),
        ("GET", "/projects?limit=1&limit=2".to_owned(), "", 400),
        ("GET", "/projects?limit=99999999999999999999".to_owned(), "", 400),
        ("GET", "/projects?cursor=nothing".to_owned(), "", 400),
        ("GET", "/keys?limit=-1".to_owned(), "", 400),
        ("GET", "/audit?since=yesterday".to_owned(), "", 400),
    ] {
        let body = if body.is_empty() { Value::Null } else { serde_json::from_str(body).unwrap() };
        let (answered, told) = served.call(method, &path, &key, &body);
        assert_eq!(answered, status, "{method} {path}: {told}");
        assert!(told["error"]["code"].is_string(), "{method} {path}: {told}");
    }
    served.must_live();
    served.stop();
}

/// A project, and somebody who may do everything in it.
struct Owner<'a> {
    served: &'a Served,
    key: String,
    project: String,
}

impl<'a> Owner<'a> {
    fn new(place: &Place, served: &'a Served) -> Self {
        let (key, folder) = (admin(place), roots(place).join("own"));
        fs::create_dir_all(&folder).unwrap();
        let mut owner = Self { served, key, project: String::new() };
        let made = owner.must("POST", "/projects", &json!({ "name": "own", "directory": folder }));
        owner.project = format!("/projects/{}", made["id"].as_str().unwrap());
        owner
    }

    /// Makes a request that does what it asks for, and returns what came of it.
    #[track_caller]
    fn must(&self, method: &str, path: &str, body: &Value) -> Value {
        let (status, told) = self.served.call(method, path, &self.key, body);
        assert!((200..300).contains(&status), "{method} {path}: {status} {told}");
        told["data"].clone()
    }

    /// Makes a request that is refused.
    #[track_caller]
    fn refused(&self, method: &str, path: &str, body: &Value, wanted: (u16, &str)) {
        let (status, told) = self.served.call(method, path, &self.key, body);
        let code = told["error"]["code"].as_str().unwrap_or_else(|| panic!("{path}: {told}"));
        assert_eq!((status, code), wanted, "{method} {path}: {told}");
    }

    /// Gives a prompt, and returns the path of the command.
    fn prompt(&self, body: &Value) -> String {
        let given = self.must("POST", &format!("{}/prompt", self.project), body);
        format!("{}/commands/{}", self.project, given["command_id"].as_str().unwrap())
    }

    /// Waits until a command stands there, and returns it.
    fn until(&self, command: &str, state: &str) -> Value {
        until(state, || {
            let told = self.must("GET", command, &Value::Null);
            (told["state"] == state).then_some(told)
        })
    }
}

const CONFLICT: (u16, &str) = (409, "CONFLICT");
const NOT_FOUND: (u16, &str) = (404, "NOT_FOUND");

#[test]
fn commands_can_be_asked_for_too_early_and_ended_twice_or_too_late() {
    let place = Place::new();
    let mut served = Served::start(&place);
    let owner = Owner::new(&place, &served);
    let hello = owner.prompt(&json!({ "prompt": "Say hello" }));
    let session = owner.until(&hello, "completed")["result"]["session_id"].clone();
    let slow = json!({ "prompt": "Take your time", "session_id": session });
    let (runs, waits) = (owner.prompt(&slow), owner.prompt(&slow));
    let cancel = |command: &str| format!("{command}/cancel");
    // Too early: of what waits for another, nothing has happened yet.
    owner.until(&runs, "running");
    assert_eq!(owner.must("GET", &waits, &Value::Null)["state"], "queued");
    let happened = owner.must("GET", &format!("{waits}/events"), &Value::Null);
    assert_eq!(happened, json!([]));
    // Twice: what has not begun is over with the first, what runs takes a moment.
    let cancelled = owner.must("POST", &cancel(&waits), &Value::Null);
    assert_eq!(cancelled["state"], "cancelled");
    owner.refused("POST", &cancel(&waits), &Value::Null, CONFLICT);
    let cancelled = owner.must("POST", &cancel(&runs), &Value::Null);
    assert_eq!(cancelled["state"], "cancel_requested");
    let (status, told) = served.call("POST", &cancel(&runs), &owner.key, &Value::Null);
    assert!([202, 409].contains(&status), "{status} {told}");
    // Too late.
    owner.until(&runs, "cancelled");
    for over in [&runs, &waits, &hello] {
        owner.refused("POST", &cancel(over), &Value::Null, CONFLICT);
        let happened = owner.must("GET", &format!("{over}/events"), &Value::Null);
        let ends = happened.as_array().unwrap().iter().filter(|it| it["type"] == "complete");
        assert_eq!(ends.count(), 1, "{happened}");
    }
    served.must_live();
    served.stop();
}

#[test]
fn an_agent_can_be_answered_once_and_not_when_it_waits_no_more() {
    let place = Place::new();
    let mut served = Served::start(&place);
    let owner = Owner::new(&place, &served);
    let permissions = format!("{}/permissions", owner.project);
    let asked = || {
        let command = owner.prompt(&json!({ "prompt": "Run the tests", "permissions": "ask" }));
        let id = until("the agent asks", || {
            let open = owner.must("GET", &permissions, &Value::Null);
            open[0]["id"].as_str().map(str::to_owned)
        });
        (command, format!("{permissions}/{id}"))
    };
    let answer = json!({ "decision": "allow" });
    let (command, request) = asked();
    owner.must("POST", &request, &answer);
    owner.refused("POST", &request, &answer, CONFLICT);
    owner.until(&command, "completed");
    owner.refused("POST", &request, &json!({ "decision": "deny" }), CONFLICT);
    let (command, request) = asked();
    owner.must("POST", &format!("{command}/cancel"), &Value::Null);
    owner.until(&command, "cancelled");
    owner.refused("POST", &request, &answer, CONFLICT);
    served.must_live();
    served.stop();
}

#[test]
fn what_was_deleted_or_revoked_can_be_so_again_without_harm() {
    let place = Place::new();
    let mut served = Served::start(&place);
    let owner = Owner::new(&place, &served);
    let project = owner.project.trim_start_matches("/projects/");
    let body = json!({
        "url": "https://example.org/", "events": ["command.failed"], "project_id": project,
    });
    let webhook = owner.must("POST", "/webhooks", &body);
    let webhook = format!("/webhooks/{}", webhook["id"].as_str().unwrap());
    owner.must("DELETE", &webhook, &Value::Null);
    owner.refused("DELETE", &webhook, &Value::Null, NOT_FOUND);
    let body = json!({ "name": "other", "scopes": ["projects:read"] });
    let key = owner.must("POST", "/keys", &body);
    let key = format!("/keys/{}", key["id"].as_str().unwrap());
    let revoked = owner.must("DELETE", &key, &Value::Null);
    assert_eq!(revoked["state"], "revoked");
    let again = owner.must("DELETE", &key, &Value::Null);
    assert_eq!(again["revoked_at"], revoked["revoked_at"]);
    let command = owner.prompt(&json!({ "prompt": "Take your time" }));
    let deleted = owner.must("DELETE", &owner.project, &Value::Null);
    assert_eq!(deleted["cancelled_commands"], 1);
    for (method, path) in [
        ("DELETE", owner.project.clone()),
        ("GET", owner.project.clone()),
        ("POST", format!("{}/prompt", owner.project)),
        ("GET", format!("{}/events", owner.project)),
        ("POST", format!("{command}/cancel")),
    ] {
        let is_prompt = path.ends_with("/prompt");
        let body = if is_prompt { json!({ "prompt": "Say hello" }) } else { Value::Null };
        owner.refused(method, &path, &body, NOT_FOUND);
    }
    served.must_live();
    served.stop();
}

#[test]
fn a_body_that_does_not_come_is_given_up() {
    let place = Place::new();
    let mut served = Served::start(&place);
    let key = admin(&place);
    let whole = posted("/projects", &key, br#"{"name":"a","directory":"b"}"#);
    let answer = served.exchange(&whole[..whole.len() - 1]);
    assert_eq!(one(&answer, "half a body").status, 408);
    served.must_live();
    served.stop();
}

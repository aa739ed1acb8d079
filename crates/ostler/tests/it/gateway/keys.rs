//! Keys from outside: the first one, those of the command line, and what they open.

use std::{
    io::{Read as _, Write as _},
    net::TcpStream,
};

use serde_json::json;

use super::daemon::{Daemon, configure, end_of, serve};
use crate::support::{Outcome, Place, until};

/// Runs `ostler keys` on the store of the place.
fn keys(place: &Place, args: &[&str]) -> Outcome {
    let config = place.path("ostler.json5");
    let mut all = vec!["keys", "--config", config.to_str().unwrap()];
    all.extend(args);
    place.run(&all)
}

/// Returns the keys that are in what was printed.
fn words(text: &str) -> Vec<&str> {
    let is_one = |word: &&str| word.starts_with("ost_") && word.len() == 36;
    text.split_whitespace().filter(is_one).collect()
}

/// Asks for the keys, and returns the status and the body.
fn ask(daemon: &Daemon, key: &str) -> String {
    let port = until("it says where it listens", || {
        let log = daemon.log();
        let rest = log.split_once("http=")?.1;
        rest.split_whitespace().next()?.rsplit(':').next()?.parse::<u16>().ok()
    });
    let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
    let call = format!(
        "GET /keys HTTP/1.1\r\nHost: ostler\r\nX-API-Key: {key}\r\nConnection: close\r\n\r\n"
    );
    stream.write_all(call.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

#[test]
fn the_first_start_shows_a_key_that_works_and_no_later_one_does() {
    let place = Place::new();
    let daemon = Daemon::start(&place, &json!({}));
    let log = daemon.log();
    let shown = words(&log);
    assert_eq!(shown.len(), 1, "{log}");
    assert!(ask(&daemon, shown[0]).starts_with("HTTP/1.1 200"));
    assert!(ask(&daemon, "ost_").contains("UNAUTHORIZED"));
    assert_eq!(daemon.stop(), Some(0));
    let daemon = Daemon::start_again(&place);
    assert!(ask(&daemon, shown[0]).starts_with("HTTP/1.1 200"));
    assert_eq!(words(&daemon.log()), [""; 0]);
    assert_eq!(daemon.stop(), Some(0));
}

#[test]
fn others_may_reach_a_gateway_only_once_there_is_a_key() {
    let place = Place::new();
    configure(&place, &json!({ "gateway": { "listen": "0.0.0.0:0" } }));
    let refused = end_of(serve(&place));
    assert_eq!(refused.code, Some(1), "{}", refused.stderr);
    assert!(refused.stderr.contains("ostler keys create --name admin --scope admin"));
    assert_eq!(words(&refused.stderr), [""; 0], "none is made");
    let made = keys(&place, &["create", "--name", "admin", "--scope", "admin"]);
    let key = made.stdout.trim();
    assert_eq!((made.code, words(&made.stdout)), (Some(0), vec![key]), "{}", made.stderr);
    let daemon = Daemon::start_again(&place);
    assert!(ask(&daemon, key).starts_with("HTTP/1.1 200"));
    assert_eq!(words(&daemon.log()), [""; 0]);
    assert_eq!(daemon.stop(), Some(0));
}

#[test]
fn keys_are_made_listed_and_revoked_beside_a_gateway_that_runs() {
    let place = Place::new();
    configure(&place, &json!({}));
    // Before there is a store, too.
    let admin = keys(&place, &["create", "--name", "admin", "--scope", "admin"]);
    assert_eq!(admin.code, Some(0), "{}", admin.stderr);
    let daemon = Daemon::start_again(&place);
    let made = keys(
        &place,
        &[
            "create",
            "--name",
            "ci",
            "--scope",
            "keys:read",
            "--scope",
            "projects:read",
            "--network",
            "127.0.0.0/8",
            "--expires",
            "30d",
            "--output",
            "json",
        ],
    )
    .json();
    let (id, key) = (made["id"].as_str().unwrap(), made["key"].as_str().unwrap());
    assert_eq!(made["scopes"], json!(["projects:read", "keys:read"]));
    assert!(ask(&daemon, key).starts_with("HTTP/1.1 200"));
    let listed = keys(&place, &["list", "--output", "json"]);
    assert!(!listed.stdout.contains(key) && !listed.stdout.contains("hash"), "{}", listed.stdout);
    let listed = listed.json();
    assert_eq!(listed["keys"][0]["id"], id);
    assert_eq!(listed["keys"][1]["name"], "admin");
    let text = keys(&place, &["list"]).stdout;
    assert!(text.contains("ci") && text.contains("127.0.0.0/8"), "{text}");
    let prefix = made["prefix"].as_str().unwrap();
    let revoked = keys(&place, &["revoke", prefix]);
    assert_eq!(revoked.code, Some(0), "{}", revoked.stderr);
    assert!(ask(&daemon, key).contains("KEY_REVOKED"));
    assert_eq!(keys(&place, &["revoke", id]).code, Some(0));
    let last = listed["keys"][1]["id"].as_str().unwrap();
    let refused = keys(&place, &["revoke", last]);
    assert_eq!(refused.code, Some(1));
    assert!(refused.stderr.contains("last admin key"), "{}", refused.stderr);
    for (args, code, says) in [
        (vec!["revoke", "key_0"], 1, "no key"),
        (vec!["create", "--name", "x", "--scope", "root"], 2, "projects:read"),
        (vec!["create", "--name", "x"], 2, "--scope"),
        (vec!["create", "--name", " ", "--scope", "admin"], 2, "name"),
        (vec!["create", "--name", "x", "--scope", "admin", "--network", "home"], 2, "10.0.0.0/8"),
        (vec!["create", "--name", "x", "--scope", "admin", "--expires", "soon"], 2, "7d"),
        (
            vec![
                "create",
                "--name",
                "x",
                "--scope",
                "admin",
                "--project",
                "prj_00000000000000000000000000000000",
            ],
            1,
            "no project",
        ),
    ] {
        let outcome = keys(&place, &args);
        assert_eq!(outcome.code, Some(code), "{args:?}: {}", outcome.stderr);
        assert!(outcome.stderr.contains(says), "{args:?}: {}", outcome.stderr);
        assert_eq!(outcome.stdout, "");
    }
    assert_eq!(daemon.stop(), Some(0));
}

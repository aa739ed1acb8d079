//! What a gateway does not start on, and how it says so.

use std::{fs, os::unix::fs::PermissionsExt as _};

use serde_json::json;
use sqlx::{Connection as _, SqliteConnection, sqlite::SqliteConnectOptions};

use super::daemon::{Daemon, configure, end_of, ended, send, serve, with_own_mounts};
use crate::support::{Outcome, Place};

/// Says that a gateway did not start, for this reason, and that it left nothing.
fn check(outcome: &Outcome, code: i32, says: &[&str]) {
    assert_eq!(outcome.code, Some(code), "{}", outcome.stderr);
    for part in says {
        assert!(outcome.stderr.contains(part), "{part:?} is not in {}", outcome.stderr);
    }
    assert_eq!(outcome.stdout, "");
}

#[test]
fn a_second_gateway_on_a_store_is_told_of_the_first_which_goes_on() {
    let place = Place::new();
    let daemon = Daemon::start(&place, &json!({}));
    let pid = format!("another gateway (process {})", daemon.pid());
    check(&end_of(serve(&place)), 1, &[&pid, "ostler.db"]);
    let mut client = daemon.client();
    let job = send(&mut client, "main", "hello");
    assert_eq!(ended(&mut client, &job)["state"], "done");
    assert_eq!(daemon.stop(), Some(0));
}

#[test]
fn a_database_that_cannot_be_reached_is_named_without_its_password() {
    let place = Place::new();
    configure(&place, &json!({}));
    // A port that was free a moment ago, on which nobody listens.
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let mut command = serve(&place);
    command.env("OSTLER_DATABASE_URL", format!("postgres://me:very-secret@127.0.0.1:{port}/d"));
    let outcome = end_of(command);
    check(&outcome, 1, &["out of reach", "127.0.0.1"]);
    assert!(!outcome.stderr.contains("very-secret"), "{}", outcome.stderr);
}

#[test]
fn a_database_of_a_newer_version_is_left_as_it_is() {
    let place = Place::new();
    assert_eq!(Daemon::start(&place, &json!({})).stop(), Some(0));
    let store = place.path("data/ostler.db");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let options = SqliteConnectOptions::new().filename(&store);
        let mut connection = SqliteConnection::connect_with(&options).await.unwrap();
        let sql = "INSERT INTO _sqlx_migrations
                   (version, description, installed_on, success, checksum, execution_time)
                   VALUES (9999, 'of a later time', CURRENT_TIMESTAMP, TRUE, x'00', 0)";
        sqlx::query(sql).execute(&mut connection).await.unwrap();
        connection.close().await.unwrap();
    });
    let before = fs::read(&store).unwrap();
    check(&end_of(serve(&place)), 1, &["schema version 9999", "newer"]);
    assert_eq!(fs::read(&store).unwrap(), before);
}

#[test]
fn a_data_folder_that_is_a_file_is_named() {
    let place = Place::new();
    configure(&place, &json!({}));
    let file = place.path("file");
    fs::write(&file, "mine").unwrap();
    let mut command = serve(&place);
    command.env("OSTLER_DATA_DIR", &file);
    check(&end_of(command), 1, &[file.to_str().unwrap()]);
    assert_eq!(fs::read_to_string(file).unwrap(), "mine");
}

#[test]
fn a_data_folder_that_cannot_be_written_to_is_named() {
    let place = Place::new();
    configure(&place, &json!({}));
    // Permissions do not hold root back; a mount does.
    let script = "mount --bind \"$DATA\" \"$DATA\"\n\
                  mount -o remount,ro,bind \"$DATA\"\n\
                  exec \"$@\"";
    let Some(command) = with_own_mounts(&place, script) else { return };
    let data = place.path("data");
    check(&end_of(command), 1, &[data.to_str().unwrap(), "Read-only"]);
}

/// Runs a gateway with a configuration that it cannot have.
fn refused(text: &str, says: &[&str]) {
    let place = Place::new();
    fs::write(place.path("ostler.json5"), text).unwrap();
    check(&end_of(serve(&place)), 2, says);
    assert!(!place.path("data/ostler.db").exists(), "nothing is begun");
}

#[test]
fn a_typo_in_a_key_is_shown_with_its_place_and_the_key_that_was_meant() {
    refused(
        "{\n  gateway: { lissten: '127.0.0.1:0' },\n}",
        &["ostler.json5:2:14", "gateway.lissten", "`listen`"],
    );
}

#[test]
fn a_value_of_another_type_is_shown_with_its_place() {
    refused("{ gateway: { max_queue_depth: 'many' } }", &["1:31", "gateway.max_queue_depth"]);
}

#[test]
fn an_agent_that_there_is_not_is_shown_with_those_that_there_are() {
    refused("{ agent: { default: 'clyde' } }", &["agent.default", "clyde", "codex"]);
}

#[test]
fn a_reply_without_its_agent_is_an_error() {
    refused("{ inbound: { reply: { mode: 'command' } } }", &["inbound.reply", "agent"]);
}

#[test]
fn an_agent_that_is_not_installed_is_named_and_nothing_is_left_running() {
    let place = Place::new();
    for (settings, says) in [
        (json!({ "agent": { "path": "/no/such/agent" } }), ["claude", "/no/such/agent"]),
        (json!({ "agent": { "default": "pi", "path": null } }), ["pi", "PATH"]),
    ] {
        configure(&place, &settings);
        let mut command = serve(&place);
        command.env("PATH", place.path("bin"));
        check(&end_of(command), 1, &says);
        assert!(!place.path("data/daemon.sock").exists());
    }
}

#[test]
fn an_address_that_is_taken_is_named() {
    let place = Place::new();
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    configure(&place, &json!({ "gateway": { "listen": address } }));
    check(&end_of(serve(&place)), 1, &[&address]);
}

#[test]
fn a_socket_of_a_gateway_that_was_killed_is_no_hindrance() {
    let place = Place::new();
    let daemon = Daemon::start(&place, &json!({}));
    daemon.signal("KILL");
    assert_eq!(daemon.wait(), None);
    assert!(place.path("data/daemon.sock").exists());
    assert_eq!(Daemon::start_again(&place).stop(), Some(0));
}

#[test]
fn the_socket_is_for_its_owner_alone() {
    let place = Place::new();
    let daemon = Daemon::start(&place, &json!({}));
    let mode = fs::metadata(place.path("data/daemon.sock")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    assert_eq!(daemon.stop(), Some(0));
}

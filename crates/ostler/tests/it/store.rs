//! The commands for the store and the queue, where there is nothing to see.

use super::support::Place;

#[test]
fn without_a_store_the_commands_say_so_and_make_none() {
    let place = Place::new();
    for args in [
        &["store", "check"][..],
        &["store", "backup", "copy.db"],
        &["queue", "list"],
        &["queue", "stats", "--output", "json"],
    ] {
        let outcome = place.run(args);
        assert_eq!(outcome.code, Some(1), "{args:?}");
        assert!(outcome.stderr.contains("no store at"), "{}", outcome.stderr);
        assert_eq!(outcome.stdout, "");
    }
    assert!(!place.path("data/ostler.db").exists());
}

#[test]
fn an_id_or_a_state_that_is_none_is_wrong_usage() {
    let place = Place::new();
    for (args, says) in [
        (&["queue", "show", "trn_1"][..], "not the id of a job"),
        (&["queue", "cancel", "*"], "not the id of a job"),
        (&["queue", "list", "--state", "lost"], "none of waiting"),
        (&["queue", "list", "--limit", "0"], "0 is not in"),
    ] {
        let outcome = place.run(args);
        assert_eq!(outcome.code, Some(2), "{args:?}");
        assert!(outcome.stderr.contains(says), "{}", outcome.stderr);
    }
}

#[test]
fn a_database_url_that_cannot_be_used_is_named_without_its_password() {
    let place = Place::new();
    for url in ["mysql://me:very-secret@host/d", "sqlite::memory:", "nonsense"] {
        let mut command = place.ostler(&["queue", "list"]);
        command.env("OSTLER_DATABASE_URL", url);
        let outcome = super::support::Outcome::of_input(command, None);
        assert_eq!(outcome.code, Some(2), "{url}");
        assert!(outcome.stderr.contains("OSTLER_DATABASE_URL"), "{}", outcome.stderr);
        assert!(!outcome.stderr.contains("very-secret"), "{}", outcome.stderr);
    }
}

#[test]
fn a_server_that_does_not_answer_is_out_of_reach() {
    let place = Place::new();
    // A port that was free a moment ago, on which nobody listens.
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let mut command = place.ostler(&["store", "check"]);
    command.env("OSTLER_DATABASE_URL", format!("postgres://me:very-secret@127.0.0.1:{port}/d"));
    let outcome = super::support::Outcome::of_input(command, None);
    assert_eq!(outcome.code, Some(1));
    assert!(outcome.stderr.contains("out of reach"), "{}", outcome.stderr);
    assert!(!outcome.stderr.contains("very-secret"), "{}", outcome.stderr);
}

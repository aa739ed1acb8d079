//! Letting people in who asked in a chat, beside a gateway that runs and without one.

use serde_json::{Value, json};
use sqlx::{Connection as _, SqliteConnection, sqlite::SqliteConnectOptions};

use super::daemon::{Daemon, configure};
use crate::support::{Outcome, Place};

/// Runs `ostler pairing` on the store of the place.
fn pairing(place: &Place, args: &[&str]) -> Outcome {
    let config = place.path("ostler.json5");
    let mut all = vec!["pairing", "--config", config.to_str().unwrap()];
    all.extend(args);
    place.run(&all)
}

fn object(place: &Place, args: &[&str]) -> Value {
    let outcome = pairing(place, &[args, &["--output", "json"]].concat());
    assert_eq!(outcome.code, Some(0), "{args:?}: {}{}", outcome.stdout, outcome.stderr);
    outcome.json()
}

/// Stores that somebody asked, as a chat would.
fn asked(place: &Place, sender: &str, code: &str, expires_at: i64) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let options = SqliteConnectOptions::new().filename(place.path("data/ostler.db"));
        let mut store = SqliteConnection::connect_with(&options).await.unwrap();
        let sql = "INSERT INTO pairings (channel, sender, name, code, state, asked_at, expires_at)
                   VALUES ('discord', $1, 'Ann', $2, 'asked', 1, $3)";
        let insert = sqlx::query(sql).bind(sender).bind(code).bind(expires_at);
        insert.execute(&mut store).await.unwrap();
        store.close().await.unwrap();
    });
}

#[test]
fn strangers_are_let_in_rejected_and_forgotten_with_and_without_a_gateway() {
    let place = Place::new();
    configure(&place, &json!({}));
    let missing = pairing(&place, &["list"]);
    assert_eq!(missing.code, Some(1), "{}", missing.stdout);
    let daemon = Daemon::start_again(&place);
    assert_eq!(object(&place, &["list"]), json!({ "pairings": [] }));
    let later = i64::MAX / 2;
    asked(&place, "1", "K7WQ2MXP", later);
    asked(&place, "2", "ABCDEFGH", later);
    asked(&place, "3", "JKLMNPQR", 2);
    let listed = object(&place, &["list"]);
    assert_eq!(listed["pairings"].as_array().unwrap().len(), 2, "{listed}");
    assert_eq!(listed["pairings"][0]["code"], "K7WQ2MXP");
    let text = pairing(&place, &["list"]).stdout;
    assert!(text.contains("ABCDEFGH") && text.contains("discord:2 (Ann)"), "{text}");

    let approved = object(&place, &["approve", "k7wq-2mxp"]);
    assert_eq!(
        (&approved["outcome"], &approved["pairing"]["sender"]),
        (&json!("approved"), &json!("1"))
    );
    assert_eq!(approved["pairing"]["code"], json!(null));
    assert_eq!(daemon.stop(), Some(0));

    assert_eq!(object(&place, &["reject", "ABCDEFGH"])["outcome"], "rejected");
    let listed = object(&place, &["list"]);
    let states: Vec<_> =
        listed["pairings"].as_array().unwrap().iter().map(|row| &row["state"]).collect();
    assert_eq!(states, ["approved", "rejected"]);
    let removed = pairing(&place, &["remove", "discord:2"]);
    assert_eq!(removed.stdout.trim(), "discord:2 (Ann): removed");
    for (args, code, says) in [
        (&["approve", "K7WQ2MXP"], 1, "nobody has the code K7WQ2MXP"),
        (&["approve", "JKLMNPQR"], 1, "nobody has the code"),
        (&["reject", "K7WQ2MX0"], 2, "is no code"),
        (&["remove", "discord:2"], 1, "discord:2 was neither let in nor rejected"),
        (&["remove", "2"], 2, "such as discord:1234567890"),
    ] {
        let outcome = pairing(&place, args);
        assert_eq!(outcome.code, Some(code), "{args:?}: {}", outcome.stderr);
        assert!(outcome.stderr.contains(says), "{args:?}: {}", outcome.stderr);
    }
}

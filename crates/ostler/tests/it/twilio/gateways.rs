//! Several gateways on one store: Twilio calls any of them, one sends, and another
//! takes over.

use std::{
    net::{Ipv4Addr, TcpListener},
    path::PathBuf,
    process::Command,
    sync::atomic::{AtomicU32, Ordering},
};

use serde_json::{Value, json};

use super::rig::{ANN, post};
use crate::{
    gateway::daemon::{Daemon, configure, serve},
    support::{LIMIT, Place},
    twilio_double::{Inbound, Twilio, encoded},
};

/// A database of a test's own, on the server that the tests have.
struct Database {
    name: String,
    server: String,
}

impl Database {
    /// Makes one; `None`, with a word about it, where there is no server.
    fn make() -> Option<Self> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let Ok(server) = std::env::var("OSTLER_TEST_POSTGRES") else {
            let is_ci = std::env::var_os("CI").is_some_and(|value| value == "true");
            assert!(!is_ci, "OSTLER_TEST_POSTGRES names no server");
            eprintln!("skipped: OSTLER_TEST_POSTGRES names no server");
            return None;
        };
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("twilio_{}_{number}", std::process::id());
        let database = Self { name, server };
        database.say("CREATE DATABASE");
        Some(database)
    }

    fn url(&self) -> String {
        self.server.replace("/postgres?", &format!("/{}?", self.name))
    }

    fn say(&self, what: &str) {
        let psql = PathBuf::from(std::env::var_os("OSTLER_TEST_POSTGRES_BIN").unwrap());
        let statement = format!("{what} {} ", self.name);
        let done = Command::new(psql.join("psql"))
            .args(["--quiet", "--no-psqlrc", "--command", &statement])
            .arg(&self.server)
            .output()
            .unwrap();
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            self.say("DROP DATABASE");
        }
    }
}

/// Starts a gateway with files of its own on a store that others use, too.
fn start(place: &Place, settings: &Value, database: &Database) -> Daemon {
    configure(place, settings);
    let mut command = serve(place);
    command.env("OSTLER_DATABASE_URL", database.url());
    Daemon::start_by(place, command, |_| place.path("data/daemon.sock"))
}

/// Returns an address where nobody else listens.
fn free_address() -> String {
    let [_, _, high, low] = std::process::id().to_be_bytes();
    let listener = TcpListener::bind((Ipv4Addr::new(127, 81, high, low), 0)).unwrap();
    listener.local_addr().unwrap().to_string()
}

#[test]
fn another_gateway_goes_on_when_the_one_that_sends_is_killed() {
    let Some(database) = Database::make() else { return };
    let twilio = Twilio::start();
    let addresses = [free_address(), free_address()];
    let settings = |number: usize| {
        json!({
            "agent": { "permissions": "bypass" },
            "gateway": { "lease": "5s", "listen": addresses[number] },
            "twilio": {
                "account_sid": twilio.account_sid(),
                "auth_token": twilio.auth_token(),
                "whatsapp_from": twilio.whatsapp_number(),
                "public_url": "https://chat.example.org",
                "allow_from": [ANN],
                "messages_per_minute": 1000,
                "api_url": twilio.api_url(),
            },
        })
    };
    let (first, second) = (Place::new(), Place::new());
    let sends = start(&first, &settings(0), &database);
    twilio.wait_for("it asks", LIMIT, |world| (!world.requests().is_empty()).then_some(()));
    let waits = start(&second, &settings(1), &database);
    let (ann, own) = (format!("whatsapp:{ANN}"), format!("whatsapp:{}", twilio.whatsapp_number()));
    let ask = |number: usize, text: &str| {
        // Signed for the public address, by which each of them can be reached.
        let sid = twilio.say_unheard(&Inbound::new(&ann, &own, text));
        let said = twilio.params(&sid);
        let signature = twilio.sign("https://chat.example.org/twilio/messages", &said);
        post(
            &format!("http://{}/twilio/messages", addresses[number]),
            Some(&signature),
            encoded(&said),
        )
    };
    let wait_for = |text: &str| {
        twilio.wait_for(text, LIMIT, |world| {
            world.messages_to(&ann).iter().any(|it| it.body.contains(text)).then_some(())
        });
    };
    for number in 0..4 {
        assert_eq!(ask(number % 2, &format!("sim:echo=before-{number}")).0, 200);
    }
    for number in 0..4 {
        wait_for(&format!("You said before-{number}."));
    }
    assert_eq!(ask(0, "sim:slow=1500 sim:echo=between").0, 200);
    assert_eq!(ask(1, "sim:echo=with").0, 200);
    drop(sends);
    assert_eq!(ask(1, "sim:echo=after").0, 200);
    let words = ["before-0", "before-1", "before-2", "before-3", "between", "with", "after"];
    for text in words {
        wait_for(&format!("You said {text}."));
    }
    let sent = twilio.messages_to(&ann);
    let texts: Vec<String> = sent.into_iter().map(|message| message.body).collect();
    for text in words {
        let text = format!("You said {text}.");
        assert_eq!(texts.concat().matches(&text).count(), 1, "{text}: {texts:#?}");
    }
    assert_eq!(waits.stop(), Some(0));
}

//! Several gateways on one store: one speaks, and another takes over.

use std::{
    path::PathBuf,
    process::Command,
    sync::atomic::{AtomicU32, Ordering},
};

use serde_json::{Value, json};

use crate::{
    discord_double::Discord,
    gateway::daemon::{Daemon, configure, serve},
    support::{LIMIT, Place},
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
        let name = format!("discord_{}_{number}", std::process::id());
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

#[test]
fn another_gateway_goes_on_when_the_one_that_speaks_is_killed() {
    let Some(database) = Database::make() else { return };
    let discord = Discord::start();
    let guild = discord.guild("Stable");
    let channel = discord.channel(guild, "yard");
    let ann = discord.user("ann");
    let settings = json!({
        "agent": { "permissions": "bypass" },
        "gateway": { "lease": "5s" },
        "discord": {
            "token": discord.token(),
            "guilds": [guild.to_string()],
            "api_url": discord.api_url(),
            "gateway_url": discord.gateway_url(),
        },
    });
    let (first, second) = (Place::new(), Place::new());
    let speaks = start(&first, &settings, &database);
    discord.wait_until_ready(LIMIT);
    let waits = start(&second, &settings, &database);
    let ask = |text: &str| discord.say(channel, ann, &format!("<@{}> {text}", discord.bot_id()));
    let wait_for = |text: &str| {
        discord.wait_for(text, LIMIT, |world| {
            world.messages(channel).iter().any(|it| it.content.contains(text)).then_some(())
        });
    };
    // Whichever of them runs the turn, the one that speaks sends what comes of it.
    for number in 0..4 {
        ask(&format!("sim:echo=before-{number}"));
        wait_for(&format!("You said before-{number}."));
    }
    assert_eq!(discord.look(|world| world.open_connections()), 1);
    ask("sim:slow=1500 sim:echo=between");
    wait_for("This is Ostler's");
    drop(speaks);
    ask("sim:echo=meanwhile");
    wait_for("You said between.");
    wait_for("You said meanwhile.");
    ask("sim:echo=after");
    wait_for("You said after.");
    let said: Vec<String> =
        discord.messages(channel).into_iter().map(|message| message.content).collect();
    for text in ["before-0", "before-1", "before-2", "before-3", "between", "meanwhile", "after"] {
        let text = format!("You said {text}.");
        assert_eq!(said.iter().filter(|it| it.contains(&text)).count(), 1, "{text}: {said:#?}");
    }
    // Seven questions, and seven answers: no draft was left behind.
    assert_eq!(said.len(), 14, "{said:#?}");
    assert_eq!(waits.stop(), Some(0));
}

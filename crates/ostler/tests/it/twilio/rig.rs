//! An account with numbers, people, and a gateway that answers there.

use std::net::{Ipv4Addr, TcpListener};

use serde_json::{Value, json};
use sqlx::{Connection as _, SqliteConnection, sqlite::SqliteConnectOptions};

use crate::{
    gateway::daemon::Daemon,
    support::{LIMIT, Place, until},
    twilio_double::{Inbound, Message, Twilio},
};

/// Everything that a conversation through Twilio takes.
pub(crate) struct Rig {
    pub(crate) place: Place,
    pub(crate) twilio: Twilio,
    pub(crate) daemon: Option<Daemon>,
    /// Where Twilio reaches the gateway.
    pub(crate) url: String,
    /// The numbers of two people, and those of the gateway, as Twilio writes them.
    pub(crate) ann: String,
    pub(crate) bob: String,
    pub(crate) own: String,
    pub(crate) sms: String,
}

/// The numbers of the two people.
pub(crate) const ANN: &str = "+15551110001";
pub(crate) const BOB: &str = "+15551110002";

impl Rig {
    /// Starts a gateway to which both people may write.
    pub(crate) fn start() -> Self {
        Self::with(|_, _| {})
    }

    /// Starts one whose settings were changed.
    pub(crate) fn with(change: impl FnOnce(&Self, &mut Value)) -> Self {
        let twilio = Twilio::start();
        let (place, address) = (Place::new(), free_address());
        let own = format!("whatsapp:{}", twilio.whatsapp_number());
        let mut rig = Self {
            place,
            daemon: None,
            url: format!("http://{address}"),
            ann: format!("whatsapp:{ANN}"),
            bob: format!("whatsapp:{BOB}"),
            own,
            sms: twilio.sms_number(),
            twilio,
        };
        let mut settings = json!({
            "gateway": { "listen": address },
            "agent": { "permissions": "bypass" },
            "twilio": {
                "account_sid": rig.twilio.account_sid(),
                "auth_token": rig.twilio.auth_token(),
                "whatsapp_from": rig.twilio.whatsapp_number(),
                "sms_from": rig.twilio.sms_number(),
                "public_url": rig.url,
                "allow_from": [ANN, BOB],
                "api_url": rig.twilio.api_url(),
            },
        });
        change(&rig, &mut settings);
        rig.twilio.set_webhook(&format!("{}/twilio/messages", rig.url));
        rig.twilio.set_conversation_webhook(&format!("{}/twilio/groups", rig.url));
        rig.daemon = Some(Daemon::start(&rig.place, &settings));
        rig
    }

    /// Writes to the gateway by WhatsApp.
    pub(crate) fn ask(&self, text: &str) -> String {
        self.twilio.say(&self.ann, &self.own, text)
    }

    /// Writes to the gateway by WhatsApp more than text.
    pub(crate) fn hand_in(&self, change: impl FnOnce(Inbound) -> Inbound) -> String {
        self.twilio.hand_in(&change(Inbound::new(&self.ann, &self.own, "")))
    }

    /// Makes a group of both people.
    pub(crate) fn group(&self) -> String {
        self.twilio.group("stable", &[&self.ann, &self.bob])
    }

    /// Waits until the gateway has said something in a group that has this in it.
    pub(crate) fn wait_for_said(&self, group: &str, text: &str) -> String {
        self.twilio.wait_for(text, LIMIT, |world| {
            world.said_in(group).into_iter().map(|(_, said)| said).find(|said| said.contains(text))
        })
    }

    /// Waits until the gateway knows that everything arrived that it sent. Before that
    /// nobody can have answered it.
    pub(crate) fn wait_until_noted(&self) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let options = SqliteConnectOptions::new().filename(self.place.path("data/ostler.db"));
        until("everything is noted", || {
            runtime.block_on(async {
                let mut store = SqliteConnection::connect_with(&options).await.ok()?;
                let on_its_way = sqlx::query("SELECT 1 FROM posts WHERE message = ''");
                let found = on_its_way.fetch_optional(&mut store).await.ok()?;
                store.close().await.ok()?;
                found.is_none().then_some(())
            })
        });
    }

    /// Waits until so many turns run.
    pub(crate) fn wait_until_running(&self, count: u64) {
        self.daemon.as_ref().unwrap().wait_until_running(count);
    }

    /// Waits until what somebody was sent is this.
    pub(crate) fn wait_for(
        &self,
        what: &str,
        whom: &str,
        is_it: impl Fn(&[Message]) -> bool,
    ) -> Vec<Message> {
        self.twilio.wait_for(what, LIMIT, |world| {
            let sent: Vec<Message> = world.messages_to(whom).into_iter().cloned().collect();
            is_it(&sent).then_some(sent)
        })
    }

    /// Waits until somebody was sent a message that has this in it.
    pub(crate) fn wait_for_text(&self, whom: &str, text: &str) -> Message {
        let sent = self
            .wait_for(text, whom, |sent| sent.iter().any(|message| message.body.contains(text)));
        sent.into_iter().find(|message| message.body.contains(text)).unwrap()
    }

    /// Returns the texts that somebody was sent.
    pub(super) fn texts(&self, whom: &str) -> Vec<String> {
        self.twilio.messages_to(whom).into_iter().map(|message| message.body).collect()
    }

    /// Waits until somebody was sent this many messages, and returns their texts.
    pub(super) fn wait_for_texts(&self, whom: &str, count: usize) -> Vec<String> {
        let sent = self.wait_for("enough messages", whom, |sent| sent.len() >= count);
        sent.into_iter().map(|message| message.body).collect()
    }

    /// Waits until what was not delivered is said to be this.
    pub(super) fn wait_for_undelivered(&self, text: &str) -> String {
        until(text, || {
            let listed = self.place.run(&["queue", "undelivered"]).stdout;
            listed.contains(text).then_some(listed)
        })
    }

    /// Says something to the store, and returns the texts that it answers with.
    pub(super) fn store(&self, sql: &'static str) -> Vec<String> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let options = SqliteConnectOptions::new()
                .filename(self.place.path("data/ostler.db"))
                .busy_timeout(LIMIT);
            let mut connection = SqliteConnection::connect_with(&options).await.unwrap();
            let rows: Vec<(String,)> =
                sqlx::query_as(sql).fetch_all(&mut connection).await.unwrap();
            rows.into_iter().map(|(text,)| text).collect()
        })
    }

    /// Does something while nobody can write to the store.
    pub(super) fn with_store_locked(&self, act: impl FnOnce()) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let options = SqliteConnectOptions::new()
            .filename(self.place.path("data/ostler.db"))
            .busy_timeout(LIMIT);
        let mut connection = runtime.block_on(SqliteConnection::connect_with(&options)).unwrap();
        let mut say = |sql: &'static str| {
            runtime.block_on(sqlx::query(sql).execute(&mut connection)).unwrap();
        };
        say("BEGIN IMMEDIATE");
        act();
        say("ROLLBACK");
    }

    /// Calls the gateway as somebody does, with a signature or without; returns the
    /// status and what was said.
    pub(super) fn call(
        &self,
        path: &str,
        signature: Option<&str>,
        body: impl Into<Vec<u8>>,
    ) -> (u16, String) {
        post(&format!("{}{path}", self.url), signature, body)
    }

    pub(crate) fn log(&self) -> String {
        self.daemon.as_ref().unwrap().log()
    }

    /// Ends the gateway as a crash does.
    pub(crate) fn crash(&mut self) {
        drop(self.daemon.take());
    }

    /// Starts it again.
    pub(crate) fn start_again(&mut self) {
        self.daemon = Some(Daemon::start_again(&self.place));
    }
}

/// Lets the agent be one that answers with what it was asked, as it was asked.
pub(crate) fn parrot(settings: &mut Value) {
    settings["inbound"] = json!({ "reply": {
        "agent": { "kind": "claude", "identityPrefix": "", "format": "text" },
        "command": ["printf", "%s", "{{Body}}"],
    } });
}

/// Lets the agent ask before it does something, and `sed` change what it says. What
/// it hears is written down beside it.
pub(crate) fn asking(rig: &Rig, settings: &mut Value, sed: &str) {
    let ostler = env!("CARGO_BIN_EXE_ostler");
    let script = format!(
        "#!/bin/sh\ntee -a \"$0.heard\" | '{ostler}' scripted --as claude -- \"$@\" \
         | sed -u '{sed}'\n"
    );
    settings["agent"]["path"] = json!(rig.place.program("asking-claude", &script));
    settings["agent"]["permissions"] = json!("ask");
}

/// Calls a gateway as somebody does; returns the status and what was said.
pub(super) fn post(url: &str, signature: Option<&str>, body: impl Into<Vec<u8>>) -> (u16, String) {
    let client = reqwest::Client::builder().no_proxy().tls_certs_only([]).build().unwrap();
    let mut request = client
        .post(url)
        .header("content-type", "application/x-www-form-urlencoded")
        .timeout(LIMIT)
        .body(body.into());
    if let Some(signature) = signature {
        request = request.header("x-twilio-signature", signature);
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let response = request.send().await.unwrap();
        (response.status().as_u16(), response.text().await.unwrap())
    })
}

/// Returns an address on this machine where nobody else listens: the process has one
/// of its own.
pub(super) fn free_address() -> String {
    let [_, _, high, low] = std::process::id().to_be_bytes();
    let ip = Ipv4Addr::new(127, 80, high, low);
    let listener = TcpListener::bind((ip, 0)).unwrap();
    listener.local_addr().unwrap().to_string()
}

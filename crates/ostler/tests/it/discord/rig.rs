//! A server with a channel in it, people, and a gateway whose bot is there.

use std::{path::PathBuf, time::Duration};

use serde_json::{Value, json};

use crate::{
    discord_double::{ChangeKind, Discord, Fault, Message},
    gateway::daemon::Daemon,
    support::{LIMIT, Place, until},
};

/// How long an interaction waits for its answer, where no test is about that. Discord
/// waits for three seconds, which a machine that is busy may need.
const PATIENCE: Duration = Duration::from_secs(30);

/// Everything that a conversation on Discord takes.
pub(crate) struct Rig {
    pub(crate) place: Place,
    pub(crate) discord: Discord,
    pub(crate) daemon: Option<Daemon>,
    pub(crate) guild: u64,
    pub(crate) channel: u64,
    pub(crate) ann: u64,
    pub(crate) bob: u64,
}

impl Rig {
    /// Starts a gateway whose bot talks to everybody in the server.
    pub(crate) fn start() -> Self {
        Self::with(|_, _| {})
    }

    /// Starts one whose settings were changed.
    pub(crate) fn with(change: impl FnOnce(&Self, &mut Value)) -> Self {
        let rig = Self::unready(change);
        rig.discord.wait_until_ready(LIMIT);
        rig
    }

    /// Starts one that need not get through to Discord.
    pub(crate) fn unready(change: impl FnOnce(&Self, &mut Value)) -> Self {
        Self::in_world(Discord::start(), change)
    }

    /// Starts one in a world in which everything was made so long ago.
    pub(crate) fn behind(behind: Duration, change: impl FnOnce(&Self, &mut Value)) -> Self {
        let rig = Self::in_world(Discord::start_behind(behind), change);
        rig.discord.wait_until_ready(LIMIT);
        rig
    }

    fn in_world(discord: Discord, change: impl FnOnce(&Self, &mut Value)) -> Self {
        discord.patience(PATIENCE);
        let guild = discord.guild("Stable");
        let channel = discord.channel(guild, "yard");
        let (ann, bob) = (discord.user("ann"), discord.user("bob"));
        let place = Place::new();
        let mut rig = Self { place, discord, daemon: None, guild, channel, ann, bob };
        let mut settings = json!({
            "agent": { "permissions": "bypass" },
            "discord": {
                "token": rig.discord.token(),
                "guilds": [guild.to_string()],
                "api_url": rig.discord.api_url(),
                "gateway_url": rig.discord.gateway_url(),
            },
        });
        change(&rig, &mut settings);
        rig.daemon = Some(Daemon::start(&rig.place, &settings));
        rig
    }

    /// Says something to the bot in the channel.
    pub(crate) fn ask(&self, text: &str) -> u64 {
        self.discord.say(self.channel, self.ann, &self.mentioning(text))
    }

    /// Has a message wait for the thread that it begins, and everything in the channel for
    /// the message.
    pub(crate) fn hold(&self) {
        let path = format!("POST /channels/{}/messages/", self.channel);
        self.discord.plan(1, &path, Fault::Hang);
        self.ask("sim:echo=slow");
        self.discord
            .wait_for("a call that hangs", LIMIT, |world| (world.faults_left() == 0).then_some(()));
    }

    /// Gives a command by its slash, once Discord knows it.
    pub(crate) fn slash(&self, channel: u64, user: u64, command: &str, options: Value) -> u64 {
        self.discord
            .wait_for("the commands", LIMIT, |world| (!world.commands().is_empty()).then_some(()));
        self.discord.slash(channel, user, command, options)
    }

    /// Returns a text that mentions the bot.
    pub(crate) fn mentioning(&self, text: &str) -> String {
        format!("<@{}> {text}", self.discord.bot_id())
    }

    /// Waits until the bot has answered a message, and returns what it said: all
    /// messages of the channel by the bot, once they are this.
    pub(crate) fn wait_for(
        &self,
        what: &str,
        channel: u64,
        is_it: impl Fn(&[Message]) -> bool,
    ) -> Vec<Message> {
        let bot = self.discord.bot_id();
        self.discord.wait_for(what, LIMIT, |world| {
            let said: Vec<Message> = world
                .messages(channel)
                .into_iter()
                .filter(|it| it.author == bot)
                .cloned()
                .collect();
            is_it(&said).then_some(said)
        })
    }

    /// Waits until an answer of the played agent stands there to its last word.
    pub(crate) fn wait_for_answer(&self, channel: u64) -> Message {
        let is_whole = |message: &Message| message.content.ends_with("characters.");
        let said = self.wait_for("an answer", channel, |said| said.iter().any(is_whole));
        said.iter().find(|message| is_whole(message)).unwrap().clone()
    }

    /// Returns what the bot said in a channel.
    pub(crate) fn said(&self, channel: u64) -> Vec<Message> {
        self.wait_for("what was said", channel, |_| true)
    }

    /// Waits until the bot said something in a channel.
    pub(crate) fn wait_for_text_in(&self, channel: u64, text: &str) -> Message {
        let is_it = |message: &&Message| message.content.contains(text);
        let said = self.wait_for(text, channel, |said| said.iter().any(|it| is_it(&it)));
        said.iter().find(is_it).unwrap().clone()
    }

    /// Waits until the log says of somebody somewhere that he was not let in, so often.
    pub(crate) fn wait_for_stranger(&self, place: u64, sender: u64, times: usize) {
        let (place, sender) = (place.to_string(), sender.to_string());
        until("a stranger was not let in", || {
            let log = self.log();
            let is_it = |line: &&str| {
                line.contains("a stranger was not let in")
                    && line.contains(&place)
                    && line.contains(&sender)
            };
            (log.lines().filter(is_it).count() >= times).then_some(())
        });
    }

    /// Waits for a message of the bot's that has this in it.
    pub(crate) fn wait_for_text(&self, text: &str) -> Message {
        self.wait_for_text_in(self.channel, text)
    }

    /// Waits until somebody is asked for a permission, and returns the message.
    pub(crate) fn asked(&self) -> Message {
        self.asked_in(self.channel)
    }

    pub(crate) fn asked_in(&self, channel: u64) -> Message {
        let is_asked = |message: &Message| !message.custom_ids().is_empty();
        let said = self.wait_for("a request", channel, |said| said.iter().any(is_asked));
        said.into_iter().find(is_asked).unwrap()
    }

    /// Waits until somebody was told privately what came of a button.
    pub(crate) fn refusal(&self, pressed: u64) -> String {
        self.discord.wait_for("a refusal", LIMIT, |world| {
            world.interaction(pressed).follow_ups.first().map(|it| it.content.clone())
        })
    }

    /// Waits until a command was answered for good, and returns what was said.
    pub(crate) fn told(&self, slash: u64) -> String {
        self.discord.wait_for("the answer to a command", LIMIT, |world| {
            world.interaction(slash).content.filter(|content| !content.is_empty())
        })
    }

    /// Makes an agent that, when it is started, waits until it is told to go on.
    pub(crate) fn patient_agent(&self) -> PathBuf {
        let ostler = env!("CARGO_BIN_EXE_ostler").replace('\'', r"'\''");
        let [here, go] = ["agent-is-here", "agent-may-go"].map(|name| self.place.path(name));
        let wait = format!(
            "touch '{}'\nwhile [ ! -e '{}' ]; do sleep 0.02; done",
            here.display(),
            go.display()
        );
        let script = format!(
            "#!/bin/sh\ncase \"$*\" in *--version*) ;; *) {wait} ;; esac\n\
             exec '{ostler}' scripted --as claude -- \"$@\"\n"
        );
        self.place.program("patient-claude", &script)
    }

    /// Waits until such an agent was started.
    pub(crate) fn wait_for_agent(&self) {
        let here = self.place.path("agent-is-here");
        until("the agent is started", || here.exists().then_some(()));
    }

    /// Tells it to go on.
    pub(crate) fn release_agent(&self) {
        std::fs::write(self.place.path("agent-may-go"), "").unwrap();
    }

    /// Returns how many messages the bot sent to the channel.
    pub(crate) fn n_sent(&self) -> usize {
        let changes = self.discord.changes(self.channel);
        changes.iter().filter(|change| change.kind == ChangeKind::Sent).count()
    }

    pub(crate) fn log(&self) -> String {
        self.daemon.as_ref().unwrap().log()
    }

    /// Changes the configuration, and starts the gateway again with it.
    pub(crate) fn configure(&mut self, change: impl FnOnce(&mut Value)) {
        assert_eq!(self.daemon.take().unwrap().stop(), Some(0));
        let path = self.place.path("ostler.json5");
        let mut all = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
        change(&mut all);
        std::fs::write(&path, all.to_string()).unwrap();
        self.discord.wait_for("the connection is gone", LIMIT, |world| {
            (world.open_connections() == 0).then_some(())
        });
        self.daemon = Some(Daemon::start_again(&self.place));
        self.discord.wait_until_ready(LIMIT);
    }

    /// Ends the gateway as a crash does, and starts it again.
    pub(crate) fn crash_and_start(&mut self) {
        drop(self.daemon.take());
        self.daemon = Some(Daemon::start_again(&self.place));
    }
}

/// Returns the button of a message that stands for a choice.
pub(crate) fn button(message: &Message, choice: &str) -> String {
    let ids = message.custom_ids();
    let found = ids.iter().find(|id| id.ends_with(&format!(":{choice}")));
    found.unwrap_or_else(|| panic!("{ids:?}")).clone()
}

//! A gateway that is in a chat, and the chat.

use std::{path::Path, time::Duration};

use serde_json::{Value, json};

use crate::{
    daemon::gateway::{Daemon, Ground},
    discord_double::Discord,
};

/// How long a bot may take to be there.
const PATIENCE: Duration = Duration::from_secs(30);

/// A gateway whose bot is in a server of Discord.
pub(super) struct OnDiscord {
    pub(super) daemon: Daemon,
    pub(super) discord: Discord,
    guild: u64,
}

/// A channel of that server in which one person writes.
#[derive(Clone, Copy)]
pub(super) struct Talk {
    pub(super) channel: u64,
    user: u64,
}

impl OnDiscord {
    /// Starts one whose part `gateway` of the settings is this, and whose part
    /// `discord` is what is needed and this.
    pub(super) fn start(place: &Path, gateway: &Value, discord: &Value) -> Self {
        let double = Discord::start();
        let guild = double.guild("bench");
        let mut settings = json!({
            "token": double.token(),
            "api_url": double.api_url(),
            "gateway_url": double.gateway_url(),
            "guilds": [guild.to_string()],
            "messages_per_minute": 10_000,
        });
        for (key, value) in discord.as_object().unwrap() {
            settings[key] = value.clone();
        }
        let ground = Ground::new(place, gateway).with_part("discord", &settings);
        let daemon = Daemon::start(&ground);
        double.wait_until_ready(PATIENCE);
        Self { daemon, discord: double, guild }
    }

    /// Opens a channel for somebody new.
    pub(super) fn open(&self, name: &str) -> Talk {
        let channel = self.discord.channel(self.guild, name);
        Talk { channel, user: self.discord.user(name) }
    }

    /// Says something to the bot; returns the message.
    pub(super) fn say(&self, talk: Talk, text: &str) -> u64 {
        let text = format!("<@{}> {text}", self.discord.bot_id());
        self.discord.say(talk.channel, talk.user, &text)
    }
}

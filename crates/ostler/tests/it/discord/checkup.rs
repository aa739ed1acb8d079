//! What `ostler doctor` says of the bot.

use serde_json::{Value, json};

use crate::{
    checkup::{Finding, check, check_well, examined},
    discord_double::Discord,
    gateway::daemon::configure,
    support::Place,
};

const SEND_MESSAGES: u64 = 1 << 11;

/// Asks the doctor about the bot of a double that was changed.
fn findings(change: impl FnOnce(&Discord, u64, &mut Value)) -> Vec<Finding> {
    let discord = Discord::start();
    let guild = discord.guild("Stable");
    let channel = discord.channel(guild, "yard");
    let mut settings = json!({ "discord": {
        "token": discord.token(),
        "guilds": [guild.to_string()],
        "channels": [channel.to_string()],
        "api_url": discord.api_url(),
        "gateway_url": discord.gateway_url(),
    }});
    change(&discord, channel, &mut settings);
    let place = Place::new();
    configure(&place, &settings);
    examined(&place, &[discord.token()])
}

#[test]
fn a_bot_with_all_that_it_needs_is_well() {
    let findings = findings(|_, _, _| {});
    check_well(&findings, &["token", "may read", "gateway", "in the server", "\"yard\"", "clock"]);
}

#[test]
fn what_is_missing_is_named() {
    check(&findings(|discord, _, _| discord.reject_token()), "token");
    check(&findings(|discord, _, _| discord.forbid_content()), "may not read");
    check(&findings(|discord, channel, _| discord.refuse_channel(channel)), "may not see");
    check(
        &findings(|discord, channel, _| discord.deny(channel, SEND_MESSAGES)),
        "lacks Send Messages in",
    );
    check(
        &findings(|_, _, settings| settings["discord"]["guilds"] = json!(["1"])),
        "server 1 cannot",
    );
}

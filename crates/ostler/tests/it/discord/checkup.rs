//! What `ostler doctor` says of the bot.

use serde_json::{Value, json};

use crate::{
    discord_double::Discord,
    gateway::daemon::configure,
    support::{Outcome, Place},
};

const SEND_MESSAGES: u64 = 1 << 11;

/// Asks the doctor about the bot of a double that was changed; returns what was found
/// of channels, each with its level.
fn findings(change: impl FnOnce(&Discord, u64, &mut Value)) -> Vec<(String, String)> {
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
    let config = place.path("ostler.json5");
    let args = ["doctor", "--output", "json", "--config", config.to_str().unwrap()];
    let said = Outcome::of_input(place.ostler(&args), None);
    assert!(!said.stdout.contains(&discord.token()));
    let said = said.json();
    let all = said["findings"].as_array().unwrap().iter();
    let text = |finding: &Value, field: &str| finding[field].as_str().unwrap().to_owned();
    all.filter(|finding| finding["area"] == "channels")
        .map(|finding| (text(finding, "level"), text(finding, "message")))
        .collect()
}

/// Returns the messages of those that are errors.
fn errors(findings: &[(String, String)]) -> Vec<&str> {
    let errors = findings.iter().filter(|(level, _)| level == "error");
    errors.map(|(_, message)| message.as_str()).collect()
}

#[test]
fn a_bot_with_all_that_it_needs_is_well() {
    let findings = findings(|_, _, _| {});
    assert_eq!(errors(&findings), [""; 0], "{findings:#?}");
    for about in ["token", "may read", "gateway", "in the server", "\"yard\"", "clock"] {
        let is_told = findings.iter().any(|(_, message)| message.contains(about));
        assert!(is_told, "{about}: {findings:#?}");
    }
}

#[test]
fn what_is_missing_is_named() {
    let all = findings(|discord, _, _| discord.reject_token());
    assert!(matches!(errors(&all)[..], [one] if one.contains("token")), "{all:#?}");
    let all = findings(|discord, _, _| discord.forbid_content());
    assert!(matches!(errors(&all)[..], [one] if one.contains("may not read")), "{all:#?}");
    let all = findings(|discord, channel, _| discord.refuse_channel(channel));
    assert!(matches!(errors(&all)[..], [one] if one.contains("may not see")), "{all:#?}");
    let all = findings(|discord, channel, _| discord.deny(channel, SEND_MESSAGES));
    assert!(
        matches!(errors(&all)[..], [one] if one.contains("lacks Send Messages in")),
        "{all:#?}"
    );
    let all = findings(|_, _, settings| settings["discord"]["guilds"] = json!(["1"]));
    assert!(matches!(errors(&all)[..], [one] if one.contains("server 1 cannot")), "{all:#?}");
}

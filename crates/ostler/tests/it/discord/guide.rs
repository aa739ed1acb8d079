//! The page for users, followed to the letter.

use std::fs;

use crate::{
    checkup::of_channels,
    discord_double::Discord,
    gateway::daemon::Daemon,
    support::{LIMIT, Place},
};

const PAGE: &str = include_str!("../../../../../docs/channels/discord.md");

/// Returns the first block of a language, with its lines moved to the margin.
fn block(language: &str) -> String {
    let lines = PAGE.lines().skip_while(|line| line.trim() != format!("```{language}")).skip(1);
    let block: Vec<&str> = lines.map(str::trim_start).take_while(|line| *line != "```").collect();
    assert!(!block.is_empty(), "the page has no {language}");
    block.join("\n")
}

#[test]
fn the_page_leads_to_a_first_answer() {
    let discord = Discord::start();
    let guild = discord.guild("Stable");
    let channel = discord.channel(guild, "yard");
    let ann = discord.user("ann");
    let place = Place::new();
    let ostler = env!("CARGO_BIN_EXE_ostler");
    let agent = place
        .program("claude", &format!("#!/bin/sh\nexec '{ostler}' scripted --as claude -- \"$@\"\n"));
    // As it stands there, but for what is another's, and where Discord is.
    place.write_down_secret(PAGE, "~/.config/ostler/discord-token", &discord.token());
    let (api, gateway) = (discord.api_url(), discord.gateway_url());
    let here = format!("api_url: '{api}', gateway_url: '{gateway}',");
    let agent = agent.display();
    let rest = format!(
        "gateway: {{ listen: '127.0.0.1:0' }}, agent: {{ default: 'claude', path: '{agent}' }},"
    );
    let written = block("json5");
    for part in ["~/.config/ostler/discord-token", "1234567890", "discord: {"] {
        assert_eq!(written.matches(part).count(), 1, "{part}: {written}");
    }
    let written = written
        .replace("1234567890", &guild.to_string())
        .replace("discord: {", &format!("{rest} discord: {{ {here}"));
    assert!(PAGE.contains("`~/.config/ostler/ostler.json5`"));
    let folder = place.path("home/.config/ostler");
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("ostler.json5"), written).unwrap();
    let found = of_channels(&place.run(&["doctor", "--output", "json"]));
    assert!(found.len() >= 5, "{found:#?}");
    assert!(found.iter().all(|it| it.level == "ok"), "{found:#?}");
    let _daemon =
        Daemon::start_by(&place, place.ostler(&["serve"]), |_| place.path("data/daemon.sock"));
    discord.wait_until_ready(LIMIT);
    let question = format!("<@{}> what does this project do?", discord.bot_id());
    let asked = discord.say(channel, ann, &question);
    discord.wait_for("an answer", LIMIT, |world| {
        let is_it = |answer: &str| answer.contains("Your prompt has");
        let mut said = world.messages(channel).into_iter();
        said.any(|it| it.reply_to == Some(asked) && is_it(&it.content)).then_some(())
    });
}

#[test]
fn the_address_of_the_invitation_asks_for_what_the_page_lists() {
    // By their places among Discord's permissions.
    let listed = [
        ("View Channels", 10),
        ("Send Messages", 11),
        ("Send Messages in Threads", 38),
        ("Create Public Threads", 35),
        ("Attach Files", 15),
        ("Read Message History", 16),
    ];
    let number = listed.iter().fold(0_u64, |all, (name, bit)| {
        assert!(PAGE.contains(&format!("*{name}*")), "{name}");
        all | 1 << bit
    });
    assert!(PAGE.contains(&format!("&permissions={number}")), "{number}");
    assert!(PAGE.contains("scope=bot+applications.commands"));
}

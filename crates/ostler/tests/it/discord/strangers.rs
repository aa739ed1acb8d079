//! Who is let in, and who is not.

use serde_json::json;

use super::rig::Rig;

#[test]
fn by_default_nobody_is_answered() {
    let rig = Rig::with(|_, settings| settings["discord"]["guilds"] = json!([]));
    rig.ask("hello");
    let direct = rig.discord.direct(rig.ann);
    rig.discord.say(direct, rig.ann, "hello");
    // Whoever is let in is answered after both.
    rig.discord.ask_reconnect();
    rig.discord.wait_until_ready(crate::support::LIMIT);
    assert!(rig.discord.changes(rig.channel).is_empty());
    assert!(rig.discord.changes(direct).is_empty());
}

#[test]
fn without_a_mention_and_by_other_bots_nothing_is_meant() {
    let rig = Rig::start();
    rig.discord.say(rig.channel, rig.ann, "hello all");
    rig.discord.bot_says(rig.channel, &rig.mentioning("hello"));
    rig.discord.webhook_says(rig.channel, &rig.mentioning("hello"));
    rig.ask("sim:echo=me");
    rig.wait_for_text("You said me.");
    assert_eq!(rig.n_sent(), 1);
}

#[test]
fn a_stranger_gets_a_code_and_is_let_in_by_it() {
    let rig = Rig::with(|_, settings| settings["discord"]["pairing"] = json!(true));
    let direct = rig.discord.direct(rig.bob);
    rig.discord.say(direct, rig.bob, "hello");
    let said = rig.wait_for("a code", direct, |said| !said.is_empty());
    let (_, rest) = said[0].content.split_once("ostler pairing approve ").unwrap();
    let code: String = rest.chars().take_while(char::is_ascii_alphanumeric).collect();
    let outcome = rig.place.run(&["pairing", "approve", &code]);
    assert_eq!(outcome.code, Some(0), "{}", outcome.stderr);
    rig.discord.say(direct, rig.bob, "sim:echo=in");
    rig.wait_for("an answer", direct, |said| {
        said.iter().any(|message| message.content.contains("You said in."))
    });
}

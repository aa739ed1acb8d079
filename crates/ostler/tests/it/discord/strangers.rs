//! Who is let in, and who is not.

use serde_json::json;

use super::rig::Rig;
use crate::support::{LIMIT, pairing_code};

#[test]
fn nobody_is_answered_who_is_not_listed() {
    let rig = Rig::with(|rig, settings| {
        settings["discord"]["guilds"] = json!([]);
        settings["discord"]["users"] = json!([rig.bob.to_string()]);
    });
    rig.ask("hello");
    let of_ann = rig.discord.direct(rig.ann);
    rig.discord.say(of_ann, rig.ann, "hello");
    let slash = rig.slash(rig.channel, rig.ann, "ask", json!({ "prompt": "hello" }));
    rig.wait_for_stranger(rig.channel, rig.ann, 1);
    rig.wait_for_stranger(of_ann, rig.ann, 1);
    assert!(rig.discord.changes(rig.channel).is_empty());
    // What is said in a place is dealt with in its order.
    rig.discord.say(rig.channel, rig.bob, &rig.mentioning("sim:echo=me"));
    rig.wait_for_text("You said me.");
    assert_eq!(rig.n_sent(), 1, "{:?}", rig.said(rig.channel));
    assert!(rig.discord.changes(of_ann).is_empty());
    rig.discord.wait_for("a refusal", LIMIT, |world| {
        world.interaction(slash).content.clone().filter(|text| text.contains("may not talk"))
    });
}

#[test]
fn a_role_lets_its_members_in_for_as_long_as_they_have_it() {
    let mut role = 0;
    let rig = Rig::with(|rig, settings| {
        role = rig.discord.give_role(rig.guild, rig.ann);
        settings["discord"]["roles"] = json!([role.to_string()]);
    });
    rig.discord.say(rig.channel, rig.bob, &rig.mentioning("sim:echo=bob"));
    rig.ask("sim:echo=ann");
    rig.wait_for_text("You said ann.");
    rig.discord.take_role(rig.guild, rig.ann, role);
    rig.ask("sim:echo=later");
    rig.wait_for_stranger(rig.channel, rig.ann, 1);
    let slash = rig.slash(rig.channel, rig.ann, "ask", json!({ "prompt": "hello" }));
    assert!(rig.told(slash).contains("may not talk"));
    // Who has it still is answered after that.
    let carl = rig.discord.user("carl");
    rig.discord.lend_role(rig.guild, carl, role);
    rig.discord.say(rig.channel, carl, &rig.mentioning("sim:echo=carl"));
    rig.wait_for_text("You said carl.");
    let said = rig.said(rig.channel);
    assert_eq!(said.len(), 2, "{said:?}");
}

#[test]
fn by_default_that_is_everybody() {
    let rig = Rig::with(|_, settings| settings["discord"]["guilds"] = json!([]));
    for channel in [rig.channel, rig.discord.direct(rig.ann)] {
        rig.discord.say(channel, rig.ann, &rig.mentioning("hello"));
        rig.wait_for_stranger(channel, rig.ann, 1);
        // What is said in a place is dealt with in its order.
        let slash = rig.slash(channel, rig.ann, "ask", json!({ "prompt": "hello" }));
        rig.discord.wait_for("a refusal", LIMIT, |world| {
            world.interaction(slash).content.clone().filter(|text| text.contains("may not talk"))
        });
        assert!(rig.discord.changes(channel).is_empty());
    }
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
    let code = pairing_code(&said[0].content);
    let outcome = rig.place.run(&["pairing", "approve", &code]);
    assert_eq!(outcome.code, Some(0), "{}", outcome.stderr);
    rig.discord.say(direct, rig.bob, "sim:echo=in");
    rig.wait_for("an answer", direct, |said| {
        said.iter().any(|message| message.content.contains("You said in."))
    });
}

//! What must not be in the log: what people write, and what opens doors.

use std::time::Duration;

use serde_json::json;

use super::rig::Rig;
use crate::{
    discord_double::Fault,
    support::{LIMIT, pairing_code},
};

#[test]
fn the_log_has_neither_words_of_people_nor_the_token() {
    let rig = Rig::with(|_, settings| {
        settings["gateway"] = json!({ "listen": "127.0.0.1:0", "log_level": "debug" });
        settings["discord"]["pairing"] = json!(true);
        settings["agent"]["permissions"] = json!("ask");
    });
    // Each of them has the word in it, and each goes another way.
    let post = format!("POST /channels/{}/messages", rig.channel);
    rig.discord.plan(2, &post, Fault::Fail(500));
    rig.discord.plan(1, "PATCH ", Fault::Fail(400));
    rig.ask("sim:echo=xyzzy sim:slow=300");
    rig.wait_for_text("You said xyzzy.");
    rig.ask("/agent xyzzy");
    rig.wait_for("what is said of the agent", rig.channel, |said| {
        said.iter().any(|it| it.content.contains("xyzzy") && !it.content.contains("You said"))
    });
    rig.discord.webhook_says(rig.channel, &rig.mentioning("xyzzy"));
    let direct = rig.discord.direct(rig.bob);
    rig.discord.say(direct, rig.bob, "xyzzy");
    let said = rig.wait_for("a code", direct, |said| !said.is_empty());
    let code = pairing_code(&said[0].content);
    let slash = rig.slash(rig.channel, rig.ann, "ask", json!({ "prompt": "sim:echo=xyzzy-2" }));
    rig.wait_for_text("You said xyzzy-2.");
    rig.discord.interact_again(slash);
    // Nobody answers that.
    rig.discord.patience(Duration::from_secs(3));
    let forged = rig.discord.forge(rig.channel, rig.ann, slash, "xyzzy");
    rig.discord.dispatch("MESSAGE_CREATE", &json!({ "content": "xyzzy", "id": "no id" }));
    rig.discord.say_with(
        rig.channel,
        rig.ann,
        &rig.mentioning("sim:echo=last"),
        &[("xyzzy.txt", b"xyzzy".as_slice())],
    );
    rig.wait_for_text("You said last.");
    rig.discord.wait_for("it gives up", LIMIT, |world| {
        let state = world.interaction(forged);
        (state.answered || state.failed).then_some(())
    });
    let log = rig.log();
    assert!(log.contains("connected to Discord"), "{log}");
    for word in ["xyzzy", "Your prompt has", &rig.discord.token(), &code] {
        let lines: Vec<&str> = log.lines().filter(|line| line.contains(word)).collect();
        assert!(lines.is_empty(), "{word}: {lines:#?}");
    }
}

//! Several gateways on one store: one speaks, and another takes over.

use serde_json::json;

use crate::{
    discord_double::Discord,
    gateway::database::Database,
    support::{LIMIT, Place},
};

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
    let speaks = database.start_gateway(&first, &settings);
    discord.wait_until_ready(LIMIT);
    let waits = database.start_gateway(&second, &settings);
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

//! What is made of messages, buttons and commands as Discord sends them.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

const BOT: &str = "900";

/// Makes a message that differs from a plain one in these fields.
fn message(changes: Value) -> Message {
    let mut message = json!({
        "id": "100", "channel_id": "50", "guild_id": "10", "type": 0, "content": "hello",
        "author": user("7", "ada"), "member": member(json!({"roles": ["21", "22"]})),
        "attachments": [], "components": [], "edited_timestamp": null, "embeds": [],
        "mention_channels": [], "mention_everyone": false, "mention_roles": [], "mentions": [],
        "message_snapshots": [], "pinned": false, "reactions": [], "sticker_items": [],
        "timestamp": "2026-11-18T01:00:00.000000+00:00", "tts": false,
    });
    message.as_object_mut().unwrap().extend(changes.as_object().unwrap().clone());
    serde_json::from_value(message).unwrap()
}

fn user(id: &str, name: &str) -> Value {
    json!({"id": id, "username": name, "discriminator": "0", "avatar": null, "bot": id == BOT})
}

fn member(changes: Value) -> Value {
    let mut member = json!({"roles": [], "deaf": false, "mute": false, "flags": 0,
        "joined_at": "2026-01-01T00:00:00.000000+00:00"});
    member.as_object_mut().unwrap().extend(changes.as_object().unwrap().clone());
    member
}

fn mention() -> Value {
    json!([{"id": BOT, "username": "ostler", "discriminator": "0", "avatar": null, "bot": true,
        "public_flags": 0}])
}

fn hear(changes: Value) -> Option<Heard> {
    let mut places = Places::default();
    places.put("50", Place::new(Some("general"), None));
    places.put("60", Place::new(Some("a thread"), Some("50".to_owned())));
    heard(&message(changes), BOT, &places)
}

#[test]
fn a_message_is_heard_with_its_place_and_its_author() {
    let attached = json!([{"id": "1", "filename": "../plan.md", "size": 12, "url": "https://a/b",
        "proxy_url": "https://c/d", "content_type": "text/markdown"}]);
    let expected = Heard {
        message: "100".into(),
        channel: "60".into(),
        guild: Some("10".into()),
        parent: Some("50".into()),
        is_astray: false,
        channel_name: Some("a thread".into()),
        author: Person { id: "7".into(), name: "ada".into(), is_bot: false },
        roles: vec!["21".into(), "22".into()],
        text: "hello".into(),
        is_unranked: false,
        is_mentioned: false,
        attachments: vec![Attached {
            name: "plan.md".into(),
            url: "https://a/b".into(),
            bytes: 12,
            media_type: Some("text/markdown".into()),
        }],
        answers_bot: false,
    };
    assert_eq!(hear(json!({"channel_id": "60", "attachments": attached})), Some(expected));
}

#[test]
fn a_direct_message_has_no_server_and_no_roles() {
    let heard = hear(json!({"channel_id": "77", "guild_id": null, "member": null})).unwrap();
    assert_eq!((heard.guild, heard.parent, heard.channel_name), (None, None, None));
    assert_eq!(heard.roles, Vec::<String>::new());
}

#[test]
fn nobody_but_people_is_heard_and_nothing_but_their_words() {
    for (what, changes) in [
        ("the bot", json!({"author": user(BOT, "ostler")})),
        ("a webhook", json!({"webhook_id": "5"})),
        ("a pin", json!({"type": 6})),
        ("someone who joined", json!({"type": 7})),
        ("the start of a thread", json!({"type": 21})),
        ("a command", json!({"type": 20})),
        ("a type of tomorrow", json!({"type": 200})),
    ] {
        assert_eq!(hear(changes), None, "{what}");
    }
    let mut other = user("8", "other");
    other["bot"] = true.into();
    assert_eq!(hear(json!({"author": other})), None);
    let mut discord = user("9", "Discord");
    discord["system"] = true.into();
    assert_eq!(hear(json!({"author": discord})), None);
}

#[test]
fn the_mention_of_the_bot_is_not_part_of_the_text() {
    for (content, text) in [
        ("<@900> fix it", "fix it"),
        ("<@!900> fix it", "fix it"),
        ("fix <@900> it", "fix it"),
        ("fix it, <@900>", "fix it,"),
        ("<@900>\nfix it", "fix it"),
        ("<@900><@!900>", ""),
        ("<@900> ask <@901>", "ask <@901>"),
    ] {
        let heard = hear(json!({"content": content, "mentions": mention()})).unwrap();
        assert_eq!((heard.text.as_str(), heard.is_mentioned), (text, true), "{content}");
    }
}

#[test]
fn a_mention_that_discord_does_not_see_is_none() {
    let heard = hear(json!({"content": "`<@900>` is you"})).unwrap();
    assert_eq!((heard.text.as_str(), heard.is_mentioned), ("`<@900>` is you", false));
}

#[test]
fn a_reply_to_the_bot_is_known_as_one_and_is_no_mention() {
    let answered = |by: &str| {
        let answered = message(json!({"author": user(by, "somebody")}));
        let changes = json!({"type": 19, "mentions": mention(), "referenced_message": answered});
        let heard = hear(changes).unwrap();
        (heard.answers_bot, heard.is_mentioned)
    };
    assert_eq!(answered(BOT), (true, false));
    assert_eq!(answered("7"), (false, false));
    assert!(!hear(json!({"type": 19, "referenced_message": null})).unwrap().answers_bot);
}

#[test]
fn somebody_is_called_as_where_he_spoke_and_always_something() {
    for (nick, global, name, expected) in [
        (Some("Boss"), Some("Ada"), "ada", "Boss"),
        (None, Some("Ada"), "ada", "Ada"),
        (Some("\u{202e}"), None, "ada", "ada"),
        (None, None, "\u{7}", "7"),
    ] {
        let mut author = user("7", name);
        author["global_name"] = json!(global);
        let member = member(json!({"nick": nick}));
        let heard = hear(json!({"author": author, "member": member})).unwrap();
        assert_eq!(heard.author.name, expected);
    }
}

fn interaction(kind: u8, data: Value) -> Interaction {
    serde_json::from_value(json!({
        "id": "300", "application_id": "800", "type": kind, "token": "very-secret", "version": 1,
        "guild_id": "10", "channel_id": "60", "data": data, "entitlements": [],
        "channel": {"id": "60", "type": 11, "parent_id": "50", "name": "a thread"},
        "member": member(json!({"user": user("7", "ada"), "roles": ["21"]})),
        "authorizing_integration_owners": {}, "attachment_size_limit": 1,
        "message": message(json!({"id": "101", "author": user(BOT, "ostler")})),
    }))
    .unwrap()
}

#[test]
fn a_button_is_pressed_by_somebody_under_a_message() {
    let data = json!({"custom_id": "allow:1", "component_type": 2, "values": []});
    let seen = interacted(&interaction(3, data), &Places::default());
    let Some(Interacted::Pressed(pressed)) = seen else { panic!("{seen:?}") };
    assert!(!format!("{pressed:?}").contains("secret"));
    let ticket =
        Ticket { application: "800".into(), id: "300".into(), token: "very-secret".into() };
    let expected = Pressed {
        ticket,
        channel: "60".into(),
        guild: Some("10".into()),
        parent: Some("50".into()),
        message: Some("101".into()),
        person: Person { id: "7".into(), name: "ada".into(), is_bot: false },
        roles: vec!["21".into()],
        id: "allow:1".into(),
        text: None,
    };
    assert_eq!(pressed, expected);
}

#[test]
fn a_form_brings_what_was_typed() {
    let input = json!({"type": 4, "id": 2, "custom_id": "text", "value": "not there"});
    for part in [
        json!({"type": 1, "id": 1, "components": [input]}),
        json!({"type": 18, "id": 1, "component": input}),
    ] {
        let data = json!({"custom_id": "deny:1", "components": [part]});
        let seen = interacted(&interaction(5, data), &Places::default());
        let Some(Interacted::Pressed(pressed)) = seen else { panic!("{seen:?}") };
        assert_eq!((pressed.id.as_str(), pressed.text.as_deref()), ("deny:1", Some("not there")));
    }
}

#[test]
fn a_command_comes_with_its_options_as_words() {
    let data = json!({"id": "1", "name": "ask", "type": 1, "options": [
        {"name": "prompt", "type": 3, "value": "why?"}, {"name": "n", "type": 4, "value": 3}]});
    let seen = interacted(&interaction(2, data), &Places::default());
    let Some(Interacted::Slash(slash)) = seen else { panic!("{seen:?}") };
    assert_eq!((slash.name.as_str(), slash.parent.as_deref()), ("ask", Some("50")));
    assert_eq!((slash.guild.as_deref(), slash.channel.as_str()), (Some("10"), "60"));
    let options = [("prompt".to_owned(), "why?".to_owned()), ("n".to_owned(), "3".to_owned())];
    assert_eq!(slash.options, options);
}

proptest! {
    #[test]
    fn no_text_is_heard_with_a_mention_of_the_bot_in_it(content in "(<@!?900>|[a-z <@>!\n]){0,20}") {
        let heard = hear(json!({"content": content, "mentions": mention()})).unwrap();
        prop_assert!(!heard.text.contains("<@900>") && !heard.text.contains("<@!900>"));
        prop_assert_eq!(heard.text.trim(), heard.text.as_str());
    }
}

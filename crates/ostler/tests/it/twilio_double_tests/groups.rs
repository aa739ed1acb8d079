//! Conversations and their media.

use reqwest::Method;
use serde_json::{Value, json};

use super::rig::{ADA, BOB, Rig};
use crate::{
    support::LIMIT,
    twilio_double::{Attached, Purpose, signature},
};

#[test]
fn the_webhook_is_told_what_is_said_in_a_group() {
    let rig = Rig::new();
    let hook = rig.server.url("/groups");
    rig.twilio.set_conversation_webhook(&hook);
    let group = rig.twilio.group("stable", &[ADA, BOB]);
    let path = format!("/v1/Conversations/{group}");
    assert_eq!(rig.get(&path).json()["friendly_name"], "stable");
    let people = rig.get(&format!("{path}/Participants")).json();
    let ada = &people["participants"][0];
    assert_eq!(ada["messaging_binding"]["address"], ADA);
    assert_eq!(ada["messaging_binding"]["proxy_address"], rig.ours(ADA));
    let photo = Attached::new("image/png", b"a horse").named("horse.png");
    let sid = rig.twilio.say_in_group_with(&group, ADA, "look", &[photo]);
    let post = rig.twilio.told(&sid).unwrap();
    assert_eq!(post.purpose, Purpose::Conversation);
    assert_eq!(post.signature, signature(&hook, &post.params, &rig.twilio.auth_token()));
    let service = rig.twilio.chat_service();
    for (name, value) in [
        ("EventType", "onMessageAdded"),
        ("ConversationSid", group.as_str()),
        ("ChatServiceSid", &service),
        ("MessageSid", &sid),
        ("ParticipantSid", ada["sid"].as_str().unwrap()),
        ("Author", ADA),
        ("Body", "look"),
        ("Index", "0"),
        ("Source", "WHATSAPP"),
    ] {
        assert_eq!(post.param(name), Some(value), "{name}");
    }
    let media: Value = serde_json::from_str(post.param("Media").unwrap()).unwrap();
    let media_sid = media[0]["Sid"].as_str().unwrap();
    let wanted = json!({
        "Sid": media_sid,
        "ContentType": "image/png",
        "Filename": "horse.png",
        "Size": 7,
    });
    assert_eq!(media, json!([wanted]));
    let described = rig.get(&format!("/v1/Services/{service}/Media/{media_sid}")).json();
    let link = described["links"]["content_direct_temporary"].as_str().unwrap();
    let file = rig.call_as("", "", Method::GET, link, &[]).unwrap();
    assert_eq!(file.bytes, b"a horse");
}

#[test]
fn what_is_said_over_the_api_has_an_author_and_media() {
    let rig = Rig::new();
    rig.twilio.set_webhook(&rig.server.url("/"));
    let group = rig.twilio.group("stable", &[ADA]);
    let service = rig.twilio.chat_service();
    let upload = rig.upload(&format!("/v1/Services/{service}/Media"), "image/png", b"png");
    assert_eq!(upload.status, 201);
    let media = upload.json()["sid"].as_str().unwrap().to_owned();
    let path = format!("/v1/Services/{service}/Conversations/{group}/Messages");
    let say = |form: &[(&str, &str)]| rig.call(Method::POST, &path, form);
    let said = say(&[("Author", "ostler"), ("Body", "hello"), ("MediaSid", &media)]);
    assert_eq!(said.status, 201);
    assert_eq!(said.json()["media"][0]["sid"], media);
    assert_eq!(say(&[("Body", "x")]).json()["author"], "system");
    assert_eq!(say(&[("Author", "ostler")]).code(), (400, 50503));
    assert_eq!(say(&[("Body", &"a".repeat(1601))]).code(), (400, 50504));
    assert_eq!(say(&[("MediaSid", "ME1")]).code(), (400, 50510));
    let told = rig.twilio.said_in(&group);
    let pair = |author: &str, text: &str| (author.to_owned(), text.to_owned());
    assert_eq!(told, [pair("ostler", "hello"), pair("system", "x")]);
    assert!(rig.twilio.posts().is_empty(), "nobody asked for the webhook to be told");
    let said = rig.call_telling(&path, &[("Author", "ostler"), ("Body", "aloud")]).json();
    let source = rig.twilio.wait_for("the webhook was told", LIMIT, |world| {
        let mut posts = world.posts_of(said["sid"].as_str()?, Purpose::Conversation);
        posts.next()?.param("Source").map(ToOwned::to_owned)
    });
    assert_eq!(source, "API");
}

#[test]
fn a_group_is_made_and_people_are_brought_into_it_over_the_api() {
    let rig = Rig::new();
    let post = |path: &str, form: &[(&str, &str)]| rig.call(Method::POST, path, form);
    let made = post("/v1/Conversations", &[("FriendlyName", "stable")]);
    assert_eq!((made.status, &made.json()["friendly_name"]), (201, &json!("stable")));
    let long = "a".repeat(257);
    assert_eq!(post("/v1/Conversations", &[("FriendlyName", &long)]).code(), (400, 20001));
    let group = made.json()["sid"].as_str().unwrap().to_owned();
    let path = format!("/v1/Conversations/{group}/Participants");
    let (address, proxy) = ("MessagingBinding.Address", "MessagingBinding.ProxyAddress");
    let ours = rig.ours(ADA);
    let join = |theirs: &str, ours: &str| post(&path, &[(address, theirs), (proxy, ours)]);
    let joined = join(ADA, &ours);
    assert_eq!(joined.status, 201);
    let binding = &joined.json()["messaging_binding"];
    let wanted = json!({ "type": "whatsapp", "address": ADA, "proxy_address": ours });
    assert_eq!(*binding, wanted);
    assert_eq!(rig.get(&path).json()["participants"][0]["sid"], joined.json()["sid"]);
    for (theirs, proxy, code) in [
        // A plus that is not encoded is a blank.
        ("whatsapp: 4915112345678", ours.as_str(), 50407),
        (BOB, "+15005550000", 50408),
        (&ours, &ours, 50409),
        (BOB, "", 50412),
        (BOB, &ours, 50414),
    ] {
        assert_eq!(join(theirs, proxy).code(), (400, code), "{theirs} {proxy}");
    }
    assert_eq!(join(ADA, &ours).code(), (409, 50416));
    // One that is closed holds nobody.
    rig.twilio.close_group(&group);
    let other = rig.twilio.group("barn", &[]);
    let path = format!("/v1/Conversations/{other}/Participants");
    assert_eq!(post(&path, &[(address, ADA), (proxy, &ours)]).status, 201);
    let nowhere = "/v1/Conversations/CH00000000000000000000000000000000/Participants";
    assert_eq!(post(nowhere, &[(address, ADA), (proxy, &ours)]).code(), (404, 20404));
}

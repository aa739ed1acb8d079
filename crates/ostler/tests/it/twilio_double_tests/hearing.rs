//! What people write, how the webhook is told of it, and typing.

use std::time::Duration;

use reqwest::Method;

use super::rig::{ADA, BOB, Rig};
use crate::twilio_double::{Attached, ChangeKind, Inbound, encoded, signature};

#[test]
fn the_webhook_is_told_what_somebody_wrote_and_its_answer_is_kept() {
    let rig = Rig::new();
    let hook = rig.server.url("/twilio?x=1");
    rig.twilio.set_webhook(&hook);
    let ours = rig.ours(ADA);
    let inbound = Inbound::new(ADA, &ours, "ein Roß 🐎 & mehr").by("Ada L.");
    let sid = rig.twilio.hand_in(&inbound.pressing("Yes", "yes-1").replying_to("SM1"));
    let heard = rig.server.heard("POST").remove(0);
    let post = rig.twilio.told(&sid).unwrap();
    assert_eq!(heard.body, encoded(&post.params));
    let kind = "application/x-www-form-urlencoded; charset=utf-8";
    assert_eq!(heard.headers["content-type"], kind);
    assert_eq!(heard.headers["i-twilio-idempotency-token"], post.idempotency_token);
    let signed = signature(&hook, &post.params, &rig.twilio.auth_token());
    assert_eq!(heard.headers["x-twilio-signature"], signed);
    assert_eq!(rig.twilio.sign(&hook, &post.params), signed);
    for (name, value) in [
        ("MessageSid", sid.as_str()),
        ("SmsMessageSid", &sid),
        ("AccountSid", &rig.twilio.account_sid()),
        ("From", ADA),
        ("To", &ours),
        ("Body", "ein Roß 🐎 & mehr"),
        ("NumMedia", "0"),
        ("ProfileName", "Ada L."),
        ("WaId", &ADA["whatsapp:+".len()..]),
        ("MessageType", "button"),
        ("ButtonText", "Yes"),
        ("ButtonPayload", "yes-1"),
        ("OriginalRepliedMessageSid", "SM1"),
        ("SmsStatus", "received"),
        ("ApiVersion", "2010-04-01"),
    ] {
        assert_eq!(post.param(name), Some(value), "{name}");
    }
    let answered = post.answered.as_ref().unwrap();
    assert_eq!((answered.status, answered.body.as_str()), (200, "<Response/>"));
    assert_eq!((answered.header("content-type"), post.alert()), (Some("text/xml"), None));
}

#[test]
fn an_sms_says_where_it_is_from_and_has_no_profile() {
    let rig = Rig::new();
    rig.twilio.set_webhook(&rig.server.url("/"));
    let sid = rig.twilio.say(BOB, &rig.twilio.sms_number(), "hello");
    let post = rig.twilio.told(&sid).unwrap();
    assert_eq!((post.param("FromCountry"), post.param("ProfileName")), (Some("US"), None));
}

#[test]
fn a_message_can_be_told_again_late_or_never() {
    let rig = Rig::new();
    rig.twilio.set_webhook(&rig.server.url("/"));
    let ours = rig.ours(ADA);
    let first = rig.twilio.say_unheard(&Inbound::new(ADA, &ours, "first"));
    let second = rig.twilio.say(ADA, &ours, "second");
    assert_eq!(rig.server.heard("POST").len(), 1);
    rig.twilio.deliver(&first);
    rig.twilio.deliver_again(&second);
    let posts = rig.twilio.posts();
    let order: Vec<&str> = posts.iter().map(|post| post.sid.as_str()).collect();
    assert_eq!(order, [&second, &first, &second]);
    assert_eq!(posts[0].params, posts[2].params);
    assert_ne!(posts[0].idempotency_token, posts[2].idempotency_token);
}

#[test]
fn the_webhook_is_tried_again_only_where_its_address_asks_for_that() {
    let rig = Rig::new();
    let ours = rig.ours(ADA);
    rig.twilio.set_webhook(&rig.server.url("/once"));
    rig.server.answer_next(&[503, 503, 503, 404]);
    let sid = rig.twilio.say(ADA, &ours, "x");
    assert_eq!(rig.twilio.told(&sid).unwrap().alert(), Some(11200));
    assert_eq!(rig.server.heard("POST").len(), 1);
    rig.twilio.set_webhook(&rig.server.url("/again#rc=3&rp=5xx"));
    let sid = rig.twilio.say(ADA, &ours, "x");
    let posts: Vec<_> = rig.twilio.posts().into_iter().filter(|post| post.sid == sid).collect();
    assert_eq!(posts.len(), 3, "twice 503, then 404");
    assert!(posts.iter().all(|post| post.idempotency_token == posts[0].idempotency_token));
    assert_eq!(posts[0].url, rig.server.url("/again"));
}

#[test]
fn a_webhook_that_answers_late_or_not_at_all_is_given_up() {
    let rig = Rig::new();
    rig.server.never_answer();
    rig.twilio.set_webhook(&rig.server.url("/#rt=100"));
    let sid = rig.twilio.say(ADA, &rig.ours(ADA), "x");
    let post = rig.twilio.told(&sid).unwrap();
    assert!(post.answered.is_err() && post.took >= Duration::from_millis(100));
    rig.twilio.set_webhook("http://127.0.0.1:1/");
    let sid = rig.twilio.say(ADA, &rig.ours(ADA), "x");
    assert!(rig.twilio.told(&sid).unwrap().answered.is_err());
}

#[test]
fn media_of_people_need_credentials_and_then_a_link() {
    let rig = Rig::new();
    rig.twilio.set_webhook(&rig.server.url("/"));
    let inbound = Inbound::new(ADA, &rig.ours(ADA), "")
        .with(Attached::new("audio/ogg", b"a voice"))
        .with(Attached::elsewhere("image/png", "http://127.0.0.1:1/secret"));
    let sid = rig.twilio.hand_in(&inbound);
    let post = rig.twilio.told(&sid).unwrap();
    assert_eq!((post.param("NumMedia"), post.param("MessageType")), (Some("2"), Some("audio")));
    assert_eq!(post.param("MediaContentType0"), Some("audio/ogg"));
    let link = post.param("MediaUrl0").unwrap();
    let answer = rig.call_as("", "", Method::GET, link, &[]).unwrap();
    assert_eq!(answer.code(), (401, 20003));
    let answer = rig.get(link);
    assert_eq!(answer.status, 307);
    let file = rig.call_as("", "", Method::GET, &answer.headers["location"], &[]).unwrap();
    assert_eq!(
        (file.headers["content-type"].as_str(), file.bytes.as_slice()),
        ("audio/ogg", &b"a voice"[..])
    );
    assert_eq!(rig.get(&format!("{link}.json")).json()["content_type"], "audio/ogg");
    let elsewhere = rig.get(post.param("MediaUrl1").unwrap());
    assert_eq!(elsewhere.headers["location"], "http://127.0.0.1:1/secret");
}

#[test]
fn typing_is_shown_to_who_wrote_on_whatsapp() {
    let rig = Rig::new();
    let sid = rig.twilio.say(ADA, &rig.ours(ADA), "x");
    let sms = rig.twilio.say(BOB, &rig.ours(BOB), "x");
    let path = "/v2/Indicators/Typing.json";
    let ask = |channel: &str, sid: &str| {
        rig.call(Method::POST, path, &[("channel", channel), ("messageId", sid)])
    };
    assert_eq!(ask("whatsapp", &sid).json()["success"], true);
    assert_eq!(ask("sms", &sid).code(), (400, 20001));
    assert_eq!(ask("whatsapp", &sms).code(), (400, 20001));
    assert_eq!(ask("whatsapp", "SM1").code(), (404, 20404));
    let changes = rig.twilio.changes();
    assert_eq!((changes.len(), changes[0].kind), (1, ChangeKind::Typed));
    assert_eq!((changes[0].sid.as_str(), changes[0].address.as_str()), (sid.as_str(), ADA));
}

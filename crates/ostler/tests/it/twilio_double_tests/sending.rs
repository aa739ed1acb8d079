//! The way of messages that were taken: statuses, media, the window of WhatsApp.

use super::rig::{ADA, BOB, Rig};
use crate::{
    support::LIMIT,
    twilio_double::{ChangeKind, Inbound, Post, Purpose, Status, signature},
};

impl Rig {
    /// Waits for the status callbacks of a message up to a status.
    fn told(&self, sid: &str, last: &str) -> Vec<Post> {
        self.twilio.wait_for("the status was told", LIMIT, |world| {
            let posts: Vec<Post> = world.posts_of(sid, Purpose::Status).cloned().collect();
            let is_last = posts.last()?.param("MessageStatus") == Some(last);
            is_last.then_some(posts)
        })
    }
}

fn statuses(posts: &[Post]) -> Vec<&str> {
    posts.iter().map(|post| post.param("MessageStatus").unwrap()).collect()
}

#[test]
fn a_message_that_is_taken_is_answered_as_documented() {
    let rig = Rig::new();
    let from = rig.ours(BOB);
    let answer = rig.send(&[("To", BOB), ("From", &from), ("Body", "ein Roß 🐎")]);
    assert_eq!(answer.status, 201);
    let json = answer.json();
    let sid = json["sid"].as_str().unwrap();
    assert!(sid.starts_with("SM") && sid.len() == 34);
    assert_eq!((&json["status"], &json["direction"]), (&"queued".into(), &"outbound-api".into()));
    assert_eq!((&json["num_media"], &json["num_segments"]), (&"0".into(), &"1".into()));
    assert_eq!((&json["body"], &json["to"]), (&"ein Roß 🐎".into(), &BOB.into()));
    assert!(json["error_code"].is_null() && json["date_sent"].is_null());
    assert!(json["date_created"].as_str().unwrap().ends_with(" +0000"));
    let path = rig.path(&format!("/Messages/{sid}"));
    assert_eq!(json["uri"], format!("{path}.json"));
    assert_eq!(json["subresource_uris"]["media"], format!("{path}/Media.json"));
    assert_eq!(rig.ended(sid), ("delivered", None));
    let read = rig.get(&format!("{path}.json")).json();
    assert_eq!(read["status"], "delivered");
    assert!(read["date_sent"].is_string());
}

#[test]
fn a_message_goes_its_way_and_each_step_is_told_and_signed() {
    let rig = Rig::new();
    rig.twilio.open_window(ADA);
    let callback = rig.server.url("/status?turn=1");
    let sid = rig.sent(ADA, &[("Body", "x"), ("StatusCallback", &callback)]);
    let posts = rig.told(&sid, "read");
    assert_eq!(statuses(&posts), ["sent", "delivered", "read"]);
    let token = rig.twilio.auth_token();
    for (post, heard) in posts.iter().zip(rig.server.heard("POST")) {
        assert_eq!(post.signature, signature(&callback, &post.params, &token));
        assert_eq!(heard.headers["x-twilio-signature"], post.signature);
        assert_eq!(heard.path, "/status?turn=1");
        assert!(heard.body.contains(&format!("MessageSid={sid}")));
        assert_eq!(post.param("SmsStatus"), post.param("MessageStatus"));
        assert_eq!(post.param("ChannelPrefix"), Some("whatsapp"));
        assert_eq!(post.param("ErrorCode"), None);
    }
    let kinds: Vec<ChangeKind> = rig.twilio.changes().iter().map(|one| one.kind).collect();
    let status = ChangeKind::Status;
    assert_eq!(kinds, [ChangeKind::Sent, status, status, status, status]);
}

#[test]
fn a_message_of_a_service_is_accepted_before_it_is_queued() {
    let rig = Rig::new();
    let (service, callback) = (rig.twilio.messaging_service(), rig.server.url("/"));
    let form = [("To", BOB), ("MessagingServiceSid", &service), ("Body", "x")];
    let form: Vec<_> = form.into_iter().chain([("StatusCallback", callback.as_str())]).collect();
    let json = rig.send(&form).json();
    assert_eq!(json["status"], "accepted");
    let posts = rig.told(json["sid"].as_str().unwrap(), "delivered");
    assert_eq!(statuses(&posts), ["queued", "sent", "delivered"]);
}

#[test]
fn a_message_comes_as_far_as_the_test_lets_it() {
    let rig = Rig::new();
    let callback = rig.server.url("/");
    rig.twilio.walk_to(Status::Sent);
    let sid = rig.sent(BOB, &[("Body", "x"), ("StatusCallback", &callback)]);
    assert_eq!(statuses(&rig.told(&sid, "sent")), ["sent"]);
    rig.twilio.doom(BOB, 30003);
    let sid = rig.sent(BOB, &[("Body", "x"), ("StatusCallback", &callback)]);
    let posts = rig.told(&sid, "undelivered");
    assert_eq!(posts[0].param("ErrorCode"), Some("30003"));
    let read = rig.get(&rig.path(&format!("/Messages/{sid}.json"))).json();
    assert_eq!((&read["error_code"], &read["status"]), (&30003.into(), &"undelivered".into()));
    rig.twilio.spare(BOB);
    rig.twilio.walk_to(Status::Read);
    assert_eq!(rig.ended(&rig.sent(BOB, &[("Body", "x")])), ("delivered", None));
}

#[test]
fn a_text_of_ones_own_goes_only_to_who_wrote_within_a_day() {
    let rig = Rig::new();
    let send = || rig.ended(&rig.sent(ADA, &[("Body", "x")]));
    assert_eq!(send(), ("undelivered", Some(63016)));
    rig.twilio.say(ADA, &rig.ours(ADA), "hello");
    assert_eq!(send(), ("read", None));
    rig.twilio.close_window(ADA);
    assert_eq!(send(), ("undelivered", Some(63016)));
    let send_template = |sid: &str| rig.ended(&rig.sent(ADA, &[("ContentSid", sid)]));
    assert_eq!(send_template(&rig.twilio.template("x")), ("read", None));
    let other = rig.twilio.template_not_approved("x");
    assert_eq!(send_template(&other), ("undelivered", Some(63016)));
    rig.twilio.open_window(ADA);
    assert_eq!(send(), ("read", None));
    assert_eq!(send_template(&other), ("read", None));
}

#[test]
fn media_are_fetched_once_and_kept() {
    let rig = Rig::new();
    rig.twilio.open_window(ADA);
    let link = rig.server.file("/horse", "image/png; x=y", b"a horse");
    let sid = rig.sent(ADA, &[("MediaUrl", &link), ("Body", "look")]);
    assert!(sid.starts_with("MM"));
    assert_eq!(rig.ended(&sid), ("read", None));
    let media = rig.twilio.media_of(&sid);
    assert_eq!(media[0].bytes(), b"a horse");
    assert_eq!(
        (media[0].content_type.as_str(), media[0].name.as_deref()),
        ("image/png", Some("horse.png"))
    );
    let fetches = rig.twilio.media_fetches();
    assert_eq!((fetches.len(), fetches[0].status, fetches[0].size), (1, 200, 7));
    assert_eq!(rig.server.heard("GET").len(), 1);
    // Asked what it is before that, and after it.
    assert_eq!(rig.server.heard("HEAD").len(), 2);
    let listed = rig.get(&rig.path(&format!("/Messages/{sid}/Media.json"))).json();
    assert_eq!(listed["media_list"][0]["sid"], media[0].sid);
}

#[test]
fn media_that_cannot_be_had_or_are_not_taken_fail_the_message() {
    let rig = Rig::new();
    rig.twilio.open_window(ADA);
    let none = rig.server.url("/none");
    let empty = rig.server.file("/empty", "image/png", b"");
    let text = rig.server.file("/text", "text/plain", b"x");
    let large = rig.server.file("/large", "image/png", &vec![0; 5 * 1024 * 1024 + 1]);
    let video = rig.server.file("/video", "video/mp4", &vec![0; 16 * 1024 * 1024 + 1]);
    let failed = |to: &str, link: &str| {
        let callback = rig.server.url("/");
        let sid = rig.sent(to, &[("MediaUrl", link), ("StatusCallback", &callback)]);
        let posts = rig.told(&sid, "failed");
        assert_eq!(posts.len(), 1);
        posts[0].param("ErrorCode").unwrap().parse::<u32>().unwrap()
    };
    for link in [none.as_str(), &empty, "http://127.0.0.1:1/"] {
        assert_eq!((failed(ADA, link), failed(BOB, link)), (63019, 11200));
    }
    assert_eq!((failed(ADA, &text), failed(BOB, &text)), (63021, 12300));
    assert_eq!((failed(ADA, &large), failed(BOB, &large)), (11751, 11751));
    assert_eq!(failed(ADA, &video), 11751);
}

#[test]
fn who_sends_stop_by_sms_is_sent_nothing_until_start() {
    let rig = Rig::new();
    let ours = rig.ours(BOB);
    let code = || rig.send(&[("To", BOB), ("From", &ours), ("Body", "x")]);
    rig.twilio.say_unheard(&Inbound::new(BOB, &ours, " Stop "));
    assert_eq!(code().code(), (400, 21610));
    rig.twilio.say_unheard(&Inbound::new(BOB, &ours, "start"));
    assert_eq!(code().status, 201);
    rig.twilio.say_unheard(&Inbound::new(ADA, &rig.ours(ADA), "stop"));
    assert_eq!(rig.ended(&rig.sent(ADA, &[("Body", "x")])), ("read", None));
}

#[test]
fn whoever_has_not_joined_the_sandbox_gets_nothing_until_he_does() {
    let rig = Rig::new();
    rig.twilio.is_sandbox();
    rig.twilio.open_window(ADA);
    let send = || rig.ended(&rig.sent(ADA, &[("Body", "x")]));
    assert_eq!(send(), ("failed", Some(63015)));
    rig.twilio.say(ADA, &rig.ours(ADA), "join calm-horse");
    assert_eq!(send(), ("read", None));
}

#[test]
fn a_file_that_gets_lost_fails_its_message_though_the_link_was_used() {
    let rig = Rig::new();
    rig.twilio.open_window(ADA);
    let link = rig.server.file("/horse.png", "image/png", b"png");
    rig.twilio.lose_files(1);
    let send = || rig.ended(&rig.sent(ADA, &[("MediaUrl", &link)]));
    assert_eq!((send(), send()), (("failed", Some(63019)), ("read", None)));
    let fetched: Vec<u16> = rig.twilio.media_fetches().iter().map(|it| it.status).collect();
    assert_eq!(fetched, [200, 200]);
}

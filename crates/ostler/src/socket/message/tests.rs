//! What is said is read back, and nothing that is said breaks anything.

use proptest::{option, prelude::*};

use super::*;
use crate::gateway::inbound::Group;

fn line_of(request: &Request) -> String {
    request.to_line().unwrap()
}

fn any_request() -> impl Strategy<Value = Request> {
    let rest = (option::of("[a-z]{1,8}"), option::of(any::<u64>()), any::<bool>());
    let rest = rest.prop_map(|(agent, timeout_ms, cold)| {
        let cwd = Some("/workspace".into());
        (Wishes { agent, timeout_ms, cold, cwd, ..Wishes::default() }, cold)
    });
    let names = (option::of("[^\\p{Cc}]{1,20}"), option::of("[^\\p{Cc}]{1,20}"));
    let details = option::of(any::<String>()).prop_map(|transcript| {
        let group = transcript.clone().map(|subject| Group { subject, ..Group::default() });
        Details { transcript, group, ..Details::default() }
    });
    let send = ("[a-z]{1,9}", "[^\\p{Cc}]{1,40}", any::<String>(), names, (rest, details))
        .prop_map(|(channel, key, text, (id, sender), ((wishes, is_bare), details))| {
            let conversation = Address::new(&channel, &key).unwrap();
            let message = Message { conversation, text, id, sender, wishes, is_bare, details };
            Request::Send(Box::new(message))
        });
    let to = option::of("[a-z]{1,9}:[^\\p{Cc}]{1,40}");
    let names = (option::of("[^\\p{Cc}]{1,20}"), option::of("[^\\p{Cc}]{1,20}"));
    let deliver = (to, any::<String>(), names).prop_map(|(to, text, (id, from))| {
        let to = to.map_or(Target::Newest, |to| Target::At(to.parse().unwrap()));
        Request::Deliver(Box::new(Outgoing { to, text, id, from }))
    });
    let conversation = option::of(Just(())).prop_map(|some| some.map(|()| ConversationId::new()));
    let log = (conversation, 0..i64::MAX)
        .prop_map(|(conversation, after)| Request::Follow(Follow::Log { conversation, after }));
    let decision =
        prop_oneof![Just(Decision::Allow), Just(Decision::AllowAlways), Just(Decision::Deny)];
    let answer = (decision, option::of(any::<String>())).prop_map(|(decision, text)| {
        Request::Answer { request: PermissionId::new(), answer: Answer { decision, text } }
    });
    let heartbeat = option::of(("[a-z]{1,9}", "[^\\p{Cc}]{1,40}")).prop_map(|place| {
        Request::Heartbeat(place.map(|(channel, key)| Address::new(&channel, &key).unwrap()))
    });
    prop_oneof![
        send,
        log,
        answer,
        heartbeat,
        Just(()).prop_map(|()| Request::Follow(Follow::Job(JobId::new()))),
        Just(()).prop_map(|()| Request::Cancel(Cancel::Job(JobId::new()))),
        Just(()).prop_map(|()| Request::Cancel(Cancel::Conversation(ConversationId::new()))),
        deliver,
        Just(Request::Status),
        Just(Request::Look),
    ]
}

proptest! {
    #[test]
    fn what_is_written_is_read_back_and_is_one_line(request in any_request()) {
        let line = line_of(&request);
        prop_assert!(!line.contains('\n'));
        prop_assert_eq!(Request::read(line.as_bytes()), Ok(request));
    }

    #[test]
    fn any_bytes_are_refused_or_understood(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        Request::read(&bytes).ok();
    }

    #[test]
    fn a_line_that_was_cut_is_refused(request in any_request(), at in 0.0..1.0) {
        let line = line_of(&request);
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "below the length")]
        let cut = (line.len() as f64 * at) as usize;
        prop_assert!(Request::read(&line.as_bytes()[..cut]).is_err());
    }

    #[test]
    fn a_line_with_something_changed_is_refused_or_understood(
        request in any_request(),
        at in any::<proptest::sample::Index>(),
        byte in any::<u8>(),
    ) {
        let mut line = line_of(&request).into_bytes();
        let at = at.index(line.len());
        line[at] = byte;
        Request::read(&line).ok();
    }
}

#[test]
fn fields_that_are_not_known_pass() {
    let job = JobId::new();
    let line = json!({ "type": "follow", "job": job, "of_tomorrow": [1] }).to_string();
    assert_eq!(Request::read(line.as_bytes()), Ok(Request::Follow(Follow::Job(job))));
    let line = r#"{"type":"send","conversation":"local:a:b","text":"hi","more":{},"model":"m"}"#;
    let Ok(Request::Send(message)) = Request::read(line.as_bytes()) else { panic!() };
    assert_eq!((message.conversation.channel(), message.conversation.key()), ("local", "a:b"));
    assert_eq!(message.wishes.model.as_deref(), Some("m"));
}

#[test]
fn what_is_known_of_a_message_is_read_and_what_is_of_tomorrow_passes() {
    let line = |details: &str| {
        format!(r#"{{"type":"send","conversation":"local:a","text":"hi","details":{details}}}"#)
    };
    let read = |details: &str| match Request::read(line(details).as_bytes()) {
        Ok(Request::Send(message)) => Ok(message.details),
        Ok(other) => panic!("{other:?}"),
        Err(error) => Err(error.to_string()),
    };
    let details = read(
        r#"{"sender_name":"Ann","group":{"members":["Ann"],"icon":1},"media":[{"type":"a/b"}],
            "mood":"good"}"#,
    )
    .unwrap();
    assert_eq!(details.sender_name.as_deref(), Some("Ann"));
    assert_eq!(details.group.unwrap().members, ["Ann"]);
    assert_eq!(details.media[0].media_type.as_deref(), Some("a/b"));
    for nothing in ["null", "{}"] {
        assert_eq!(read(nothing), Ok(Details::default()));
    }
    assert!(read(r#"{"media":7}"#).unwrap_err().contains("invalid type"));
}

#[test]
fn what_is_not_understood_is_named() {
    let job = JobId::new();
    for (line, says) in [
        (String::new(), "no JSON object"),
        ("7".to_owned(), "no JSON object"),
        ("[]".to_owned(), "no JSON object"),
        ("{}".to_owned(), "missing field `type`"),
        (r#"{"type":"dance"}"#.to_owned(), r#"unknown type "dance""#),
        (r#"{"type":"send","text":"a"}"#.to_owned(), "missing field `conversation`"),
        (r#"{"type":"send","conversation":"main","text":"a"}"#.to_owned(), "local:main"),
        (r#"{"type":"send","conversation":"local:","text":"a"}"#.to_owned(), "not be empty"),
        (
            r#"{"type":"send","conversation":"local:a\u001b","text":"a"}"#.to_owned(),
            "control characters",
        ),
        (
            r#"{"type":"send","conversation":"local:a","text":"a","id":""}"#.to_owned(),
            "`id` must have",
        ),
        (
            r#"{"type":"send","conversation":"local:a","text":"a","cwd":"x"}"#.to_owned(),
            "absolute path",
        ),
        (
            r#"{"type":"send","conversation":"local:a","text":"a","max_turns":-1}"#.to_owned(),
            "invalid value",
        ),
        (
            r#"{"type":"send","conversation":"local:a","text":"a","permissions":"all"}"#.to_owned(),
            "unknown variant",
        ),
        (r#"{"type":"follow","job":"trn_1"}"#.to_owned(), "not the id of a job"),
        (json!({"type":"follow","job":job,"after":1}).to_string(), "from its beginning"),
        (r#"{"type":"cancel"}"#.to_owned(), "name a `job`"),
        (r#"{"type":"heartbeat","conversation":"main"}"#.to_owned(), "heartbeat: a conversation"),
        (r#"{"type":"answer","request":"prm_1","decision":"allow"}"#.to_owned(), "prm_0"),
        (
            json!({"type":"answer","request":PermissionId::new(),"decision":"yes"}).to_string(),
            "unknown decision",
        ),
    ] {
        let error = Request::read(line.as_bytes()).unwrap_err().to_string();
        assert!(error.contains(says), "{line}: {error}");
    }
    let long = format!(r#"{{"type":"{}"}}"#, "x".repeat(100_000));
    assert!(Request::read(long.as_bytes()).unwrap_err().to_string().len() < 1000);
}

#[test]
fn an_event_is_handed_on_as_it_was_stored() {
    let event = RawValue::from_string(r#"{"z":1,  "a":2}"#.to_owned()).unwrap();
    let line = serde_json::to_string(&Reply::Event(Event { number: 7, event })).unwrap();
    assert_eq!(line, r#"{"type":"event","number":7,"event":{"z":1,  "a":2}}"#);
}

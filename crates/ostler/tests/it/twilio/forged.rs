//! Calls that are not Twilio's, are malformed, or come more than once.

use std::{
    io::{Read as _, Write as _},
    net::TcpStream,
};

use serde_json::json;

use super::rig::{ANN, Rig};
use crate::{
    support::{LIMIT, until},
    twilio_double::{Inbound, Purpose, encoded, signature},
};

const PATH: &str = "/twilio/messages";

/// Returns what Twilio says of a message of Ann's.
fn form(rig: &Rig, message: &str, text: &str) -> Vec<(String, String)> {
    [
        ("MessageSid", message),
        ("AccountSid", &rig.twilio.account_sid()),
        ("From", &rig.ann),
        ("To", &rig.own),
        ("Body", text),
        ("NumMedia", "0"),
    ]
    .map(|(name, value)| (name.to_owned(), value.to_owned()))
    .to_vec()
}

fn sid(number: u32) -> String {
    format!("SM{number:032x}")
}

/// Replaces what a form says under a name.
fn with(form: &[(String, String)], name: &str, value: &str) -> Vec<(String, String)> {
    let kept = form.iter().filter(|(of, _)| of != name).cloned();
    kept.chain([(name.to_owned(), value.to_owned())]).collect()
}

/// Asks something as Twilio does and waits for the answer; nothing else may be there.
fn assert_only_answer(rig: &Rig) {
    rig.ask("sim:echo=after");
    rig.wait_for_text(&rig.ann, "You said after.");
    let sent = rig.texts(&rig.ann);
    assert_eq!(sent.len(), 1, "{sent:#?}");
}

#[test]
fn calls_that_twilio_did_not_sign_are_refused_and_not_stored() {
    let rig = Rig::start();
    let said = form(&rig, &sid(1), "sim:echo=forged");
    let url = format!("{}{PATH}", rig.url);
    let good = rig.twilio.sign(&url, &said);
    let body = encoded(&said);
    let others = with(&said, "Body", "sim:echo=other");
    let elsewhere = rig.twilio.sign("https://example.org/twilio/messages", &said);
    let status = rig.twilio.sign(&format!("{}/twilio/status", rig.url), &said);
    let by_other = signature(&url, &said, "00000000000000000000000000000000");
    let swapped = rig.twilio.sign(&url, &others);
    let wrong = [
        None,
        Some(""),
        Some("AAAA"),
        Some(&good[..good.len() - 4]),
        Some(elsewhere.as_str()),
        Some(status.as_str()),
        Some(by_other.as_str()),
        Some(swapped.as_str()),
    ];
    for signature in wrong {
        let (status, text) = rig.call(PATH, signature, body.clone());
        assert_eq!((status, text.as_str()), (403, "this is not signed by Twilio\n"));
    }
    // Signed as it should be, and about somebody else's account.
    let account = with(&said, "AccountSid", "AC00000000000000000000000000000000");
    let signed = rig.twilio.sign(&url, &account);
    assert_eq!(rig.call(PATH, Some(&signed), encoded(&account)).0, 403);
    for path in ["/twilio/groups", "/twilio/status"] {
        assert_eq!(rig.call(path, Some(&good), body.clone()).0, 403);
    }
    assert_only_answer(&rig);
    assert!(rig.log().contains("check twilio.auth_token"), "{}", rig.log());
}

#[test]
fn a_call_counts_under_the_url_as_it_is_written_in_the_console() {
    let rig = Rig::with(|_, settings| {
        settings["twilio"]["public_url"] = json!("https://Ostler.Example.org");
    });
    for (number, host) in
        (1..).zip(["Ostler.Example.org", "ostler.example.org", "Ostler.Example.org:443"])
    {
        let said = form(&rig, &sid(number), &format!("sim:echo=call-{number}"));
        let path = format!("{PATH}?from=console");
        let signed = rig.twilio.sign(&format!("https://{host}{path}"), &said);
        assert_eq!(rig.call(&path, Some(&signed), encoded(&said)).0, 200, "{host}");
        rig.wait_for_text(&rig.ann, &format!("You said call-{number}."));
    }
}

#[test]
fn malformed_calls_are_told_what_is_wrong_and_harm_nothing() {
    let rig = Rig::start();
    let said = form(&rig, &sid(2), "sim:echo=bad");
    let url = format!("{}{PATH}", rig.url);
    let call = |form: &[(String, String)]| {
        rig.call(PATH, Some(&rig.twilio.sign(&url, form)), encoded(form))
    };
    let without: Vec<_> = said.iter().filter(|(of, _)| of != "MessageSid").cloned().collect();
    let cases = [
        (without, "MessageSid is missing\n"),
        (with(&said, "MessageSid", "SM1"), "MessageSid cannot be used\n"),
        (with(&said, "MessageSid", "'; DROP TABLE jobs; --"), "MessageSid cannot be used\n"),
        (with(&said, "From", "whatsapp:ann"), "From cannot be used\n"),
        (with(&said, "To", ""), "To is missing\n"),
        (with(&said, "NumMedia", "many"), "NumMedia cannot be used\n"),
        (with(&said, "NumMedia", "-1"), "NumMedia cannot be used\n"),
    ];
    for (form, why) in cases {
        assert_eq!(call(&form), (400, why.to_owned()));
    }
    // What is not even a form is not signed by anybody.
    for body in [b"Body=%ZZ%&&=%".to_vec(), vec![0, 159, 146, 150, 255], b"{}".to_vec(), vec![]] {
        assert_eq!(rig.call(PATH, Some("AAAA"), body).0, 403);
    }
    assert_eq!(rig.call(PATH, Some("AAAA"), vec![b'a'; 65 * 1024]).0, 413);
    let client = reqwest::Client::builder().no_proxy().tls_certs_only([]).build().unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let got = runtime.block_on(async { client.get(&url).timeout(LIMIT).send().await.unwrap() });
    assert_eq!(got.status().as_u16(), 405);
    assert_only_answer(&rig);
}

/// Begins a call that never says what it is about, and returns what is answered.
fn begin_call(rig: &Rig, signature: &str) -> String {
    let mut stream = TcpStream::connect(rig.url.trim_start_matches("http://")).unwrap();
    stream.set_read_timeout(Some(LIMIT)).unwrap();
    let head = format!(
        "POST {PATH} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n{signature}\
         Content-Type: application/x-www-form-urlencoded\r\nContent-Length: 1000\r\n\r\n"
    );
    stream.write_all(head.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

#[test]
fn who_does_not_say_who_he_is_is_not_listened_to_and_nobody_for_long() {
    let rig = Rig::start();
    let unsigned = begin_call(&rig, "");
    assert!(unsigned.starts_with("HTTP/1.1 403 "), "{unsigned}");
    let signed = begin_call(&rig, "X-Twilio-Signature: AAAA\r\n");
    assert!(signed.starts_with("HTTP/1.1 408 "), "{signed}");
    // They are noted as all calls are.
    assert!(unsigned.contains("x-content-type-options: nosniff"), "{unsigned}");
    assert!(unsigned.contains("x-request-id: "), "{unsigned}");
    until("the log has it", || {
        let is_it = |line: &str| line.contains("/twilio/messages") && line.contains("403");
        rig.log().lines().any(is_it).then_some(())
    });
    assert_only_answer(&rig);
}

#[test]
fn twilio_is_known_by_the_public_address_whatever_stands_between() {
    for public in [
        "https://chat.example.org",
        "https://chat.example.org/",
        "https://chat.example.org:8443",
        "https://chat.example.org/bots/ostler",
    ] {
        let rig = Rig::with(|_, settings| settings["twilio"]["public_url"] = json!(public));
        let said = form(&rig, &sid(3), "sim:echo=proxied");
        // What comes here has another host, and is not encrypted any more.
        let query = format!("{PATH}?bodySHA256=00ff");
        let signed = rig.twilio.sign(&format!("{}{query}", public.trim_end_matches('/')), &said);
        let (status, text) = rig.call(&query, Some(&signed), encoded(&said));
        assert_eq!(status, 200, "{public}");
        assert!(text.ends_with("<Response></Response>"), "{text}");
        assert_eq!(rig.call(PATH, Some(&signed), encoded(&said)).0, 403, "{public}");
        rig.wait_for_text(&rig.ann, "You said proxied.");
    }
}

#[test]
fn a_message_is_answered_once_however_often_it_is_told() {
    let mut rig = Rig::start();
    let first = rig.twilio.say_unheard(&Inbound::new(&rig.ann, &rig.own, "sim:echo=one"));
    std::thread::scope(|scope| {
        for _ in 0..20 {
            scope.spawn(|| rig.twilio.deliver(&first));
        }
    });
    rig.wait_for_text(&rig.ann, "You said one.");
    rig.twilio.deliver_again(&first);
    rig.crash();
    rig.start_again();
    rig.twilio.deliver_again(&first);
    rig.ask("sim:echo=two");
    rig.wait_for_text(&rig.ann, "You said two.");
    assert_eq!(rig.texts(&rig.ann).len(), 2, "{:#?}", rig.texts(&rig.ann));
    let told = rig.twilio.posts().into_iter().filter(|post| post.purpose == Purpose::Incoming);
    let told: Vec<_> = told.collect();
    assert_eq!(told.len(), 23);
    assert!(told.iter().all(|post| post.alert().is_none()), "{told:#?}");
}

#[test]
fn who_says_nothing_is_asked_once_what_he_wants() {
    let rig = Rig::start();
    let empty = rig.twilio.say_unheard(&Inbound::new(&rig.ann, &rig.own, " "));
    std::thread::scope(|scope| {
        for _ in 0..20 {
            scope.spawn(|| rig.twilio.deliver(&empty));
        }
    });
    rig.wait_for_text(&rig.ann, "What can I do for you?");
    rig.ask("sim:echo=hay");
    rig.wait_for_text(&rig.ann, "You said hay.");
    assert_eq!(rig.texts(&rig.ann).len(), 2, "{:#?}", rig.texts(&rig.ann));
}

#[test]
fn twenty_messages_during_a_turn_are_answered_in_their_order() {
    let rig = Rig::with(|_, settings| {
        settings["twilio"]["messages_per_minute"] = json!(100);
    });
    rig.ask("sim:slow=800 sim:echo=first");
    let words: Vec<String> = (0..20).map(|number| format!("m{number:02}")).collect();
    for word in &words {
        rig.ask(&format!("sim:echo={word}"));
    }
    rig.wait_for_text(&rig.ann, "You said m19.");
    let all = rig.texts(&rig.ann).join("\n");
    let places: Vec<_> = words.iter().map(|word| all.find(&format!("You said {word}."))).collect();
    assert!(places.iter().all(Option::is_some) && places.is_sorted(), "{all}");
    for word in &words {
        assert_eq!(all.matches(&format!("You said {word}.")).count(), 1, "{all}");
    }
}

#[test]
fn the_gateway_does_not_answer_itself() {
    let rig = Rig::with(|_, settings| settings["twilio"]["allow_from"] = json!(["*"]));
    rig.twilio.say(&rig.own, &rig.own, "sim:echo=loop");
    rig.twilio.say(&rig.sms, &rig.sms, "sim:echo=loop");
    // One of its numbers writes to the other.
    let whatsapp = rig.twilio.whatsapp_number();
    rig.twilio.say(&whatsapp, &rig.sms, "sim:echo=loop");
    rig.twilio.say(ANN, &rig.sms, "sim:echo=hay");
    rig.wait_for_text(ANN, "You said hay.");
    for own in [&rig.own, &rig.sms, &whatsapp] {
        assert_eq!(rig.texts(own), Vec::<String>::new());
    }
}

#[test]
fn a_message_whose_call_is_not_answered_is_found_later() {
    let mut rig = Rig::start();
    rig.ask("sim:echo=before");
    rig.wait_for_text(&rig.ann, "You said before.");
    rig.daemon.as_ref().unwrap().signal("STOP");
    rig.twilio.set_webhook(&format!("{}{PATH}#rt=300", rig.url));
    let asked = rig.ask("sim:echo=unheard");
    assert!(rig.twilio.told(&asked).unwrap().answered.is_err());
    rig.crash();
    rig.twilio.set_webhook(&format!("{}{PATH}", rig.url));
    let away = rig.ask("sim:echo=away");
    assert!(rig.twilio.told(&away).unwrap().answered.is_err());
    rig.start_again();
    rig.wait_for_text(&rig.ann, "You said away.");
    let all = until("both are answered", || {
        let all = rig.texts(&rig.ann).join("\n");
        all.contains("You said unheard.").then_some(all)
    });
    for word in ["unheard", "away"] {
        assert_eq!(all.matches(&format!("You said {word}.")).count(), 1, "{all}");
    }
}

#[test]
fn a_message_that_comes_while_the_store_is_locked_is_found_soon_after() {
    let rig = Rig::start();
    rig.ask("sim:echo=before");
    rig.wait_for_text(&rig.ann, "You said before.");
    rig.twilio.set_webhook(&format!("{}{PATH}#rt=500", rig.url));
    rig.with_store_locked(|| {
        let asked = rig.ask("sim:echo=locked");
        assert!(rig.twilio.told(&asked).unwrap().answered.is_err());
    });
    rig.wait_for_text(&rig.ann, "You said locked.");
    rig.twilio.set_webhook(&format!("{}{PATH}", rig.url));
    rig.ask("sim:echo=after");
    rig.wait_for_text(&rig.ann, "You said after.");
    assert_eq!(rig.texts(&rig.ann).len(), 3, "{:#?}", rig.texts(&rig.ann));
}

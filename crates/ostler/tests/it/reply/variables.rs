//! The sixteen template variables, in a command line and in a text.

use serde_json::{Value, json};

use super::rig::Rig;

const NAMES: [&str; 16] = [
    "Body",
    "BodyStripped",
    "From",
    "To",
    "MessageSid",
    "MediaPath",
    "MediaUrl",
    "MediaType",
    "Transcript",
    "ChatType",
    "GroupSubject",
    "GroupMembers",
    "SenderName",
    "SenderE164",
    "SessionId",
    "IsNewSession",
];

fn message() -> Value {
    json!({ "sender": "ann@example.org", "id": "SM1", "details": {
        "sender_name": "Ann", "sender_number": "+491701234567", "to": "+4930123",
        "group": { "subject": "Stables", "members": ["Ann", "Bob"] },
        "media": [{ "path": "/m/1.png", "url": "https://m/1", "type": "image/png" }],
        "transcript": "feed them",
    } })
}

const SAID: [&str; 12] = [
    "ann@example.org",
    "+4930123",
    "SM1",
    "/m/1.png",
    "https://m/1",
    "image/png",
    "feed them",
    "group",
    "Stables",
    "Ann, Bob",
    "Ann",
    "+491701234567",
];

#[test]
fn all_variables_and_none_else_mean_something_in_inbound_reply_command() {
    let mut words: Vec<String> = vec!["wrapper".to_owned()];
    words.extend(NAMES.iter().map(|name| format!("{name}={{{{{name}}}}}")));
    words.push("{{Unknown}}".to_owned());
    let rig = Rig::new(&json!({
        "agent": { "kind": "claude", "identityPrefix": "", "format": "text" }, "command": words,
    }));
    let call = rig.ask_with(" @ostler feed them", &message());
    let said = |name: &str| {
        let start = format!("{name}=");
        call.argv.iter().find_map(|word| word.strip_prefix(start.as_str())).unwrap()
    };
    for (name, value) in NAMES[2..14].iter().zip(SAID) {
        assert_eq!(said(name), value, "{name}");
    }
    assert_eq!(said("BodyStripped"), "feed them");
    // In a command line the body is all that the agent is asked.
    assert!(said("Body").ends_with("\n\n @ostler feed them"), "{call:?}");
    assert!(said("Body").contains("[Attached: image/png, /m/1.png]"), "{call:?}");
    assert_eq!(said("SessionId").len(), 36);
    assert_eq!(said("IsNewSession"), "true");
    assert_eq!(call.argv.last().unwrap(), "", "an unknown name is empty, and a word all the same");
    assert_eq!(call.argv.len(), 18);
}

#[test]
fn all_variables_and_none_else_mean_something_in_inbound_reply_session_session_intro() {
    let intro: Vec<_> = NAMES.iter().map(|name| format!("{{{{{name}}}}}")).collect();
    let intro = format!("{}|{{{{Unknown}}}}|end", intro.join("|"));
    let rig = Rig::new(&json!({
        "agent": { "kind": "claude", "identityPrefix": "" }, "session": { "sessionIntro": intro },
    }));
    let prompt = rig.ask_with("@ostler feed them", &message()).prompt();
    let expected = format!("@ostler feed them|feed them|{}||true||end\n\n", SAID.join("|"));
    assert!(prompt.starts_with(&expected), "{prompt}");
}

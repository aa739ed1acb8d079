//! Who decided what an agent may do, as the audit has it.

use serde_json::{Value, json};

use super::rig::{ANN, BOB, Rig};
use crate::support::LIMIT;

/// Returns who did something of a kind, by the audit that the gateway shows.
fn actors(rig: &Rig, action: &str) -> Vec<String> {
    let key = rig.place.run(&["keys", "create", "--name", "eve", "--scope", "audit:read"]);
    assert_eq!(key.code, Some(0), "{}", key.stderr);
    let client = reqwest::Client::builder().no_proxy().tls_certs_only([]).build().unwrap();
    let request = client
        .get(format!("{}/audit?action={action}", rig.url))
        .bearer_auth(key.stdout.trim())
        .timeout(LIMIT);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let shown: Value = runtime.block_on(async {
        let bytes = request.send().await.unwrap().bytes().await.unwrap();
        serde_json::from_slice(&bytes).unwrap()
    });
    let lines = shown["data"].as_array().unwrap_or_else(|| panic!("{shown}"));
    lines.iter().map(|line| line["actor"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn who_decided_is_called_the_same_whether_he_asked_or_owns() {
    for owners in [json!([]), json!([ANN])] {
        let rig = Rig::with(|_, settings| {
            settings["agent"]["permissions"] = json!("ask");
            settings["twilio"]["owners"] = owners;
        });
        for (from, to) in [(&rig.ann as &str, &rig.own), (ANN, &rig.sms)] {
            rig.twilio.say(from, to, "sim:tool");
            rig.wait_for_text(from, "Permission to run a command");
            rig.wait_until_noted();
            rig.twilio.say(from, to, "1");
            rig.wait_for_text(from, "It pretended to run");
        }
        let mut told = actors(&rig, "permission.allow");
        told.sort();
        assert_eq!(told, [format!("sms:{ANN}"), format!("whatsapp:{ANN}")]);
    }
}

#[test]
fn in_a_group_it_says_which_of_them_it_was() {
    for (who, called) in [(false, ANN), (true, BOB)] {
        let rig = Rig::with(|_, settings| {
            settings["agent"]["permissions"] = json!("ask");
            settings["twilio"]["owners"] = json!([BOB]);
        });
        let group = rig.group();
        rig.twilio.say_in_group(&group, &rig.ann, "ostler sim:tool");
        rig.wait_for_said(&group, "Permission to run a command");
        rig.wait_until_noted();
        let by = if who { &rig.bob } else { &rig.ann };
        rig.twilio.say_in_group(&group, by, "3");
        rig.wait_for_said(&group, "It was not allowed to run");
        assert_eq!(actors(&rig, "permission.deny"), [format!("group:{called}")]);
    }
}

//! Several gateways on one store: Twilio calls any of them, one sends, and another
//! takes over.

use serde_json::json;

use super::rig::{ANN, free_address, post};
use crate::{
    gateway::database::Database,
    support::{LIMIT, Place},
    twilio_double::{Inbound, Twilio, encoded},
};

#[test]
fn another_gateway_goes_on_when_the_one_that_sends_is_killed() {
    let Some(database) = Database::make() else { return };
    let twilio = Twilio::start();
    let addresses = [free_address(), free_address()];
    let settings = |number: usize| {
        json!({
            "agent": { "permissions": "bypass" },
            "gateway": { "lease": "5s", "listen": addresses[number] },
            "twilio": {
                "account_sid": twilio.account_sid(),
                "auth_token": twilio.auth_token(),
                "whatsapp_from": twilio.whatsapp_number(),
                "public_url": "https://chat.example.org",
                "allow_from": [ANN],
                "messages_per_minute": 1000,
                "api_url": twilio.api_url(),
            },
        })
    };
    let (first, second) = (Place::new(), Place::new());
    let sends = database.start_gateway(&first, &settings(0));
    twilio.wait_for("it asks", LIMIT, |world| (!world.requests().is_empty()).then_some(()));
    let waits = database.start_gateway(&second, &settings(1));
    let (ann, own) = (format!("whatsapp:{ANN}"), format!("whatsapp:{}", twilio.whatsapp_number()));
    let ask = |number: usize, text: &str| {
        // Signed for the public address, by which each of them can be reached.
        let sid = twilio.say_unheard(&Inbound::new(&ann, &own, text));
        let said = twilio.params(&sid);
        let signature = twilio.sign("https://chat.example.org/twilio/messages", &said);
        post(
            &format!("http://{}/twilio/messages", addresses[number]),
            Some(&signature),
            encoded(&said),
        )
    };
    let wait_for = |text: &str| {
        twilio.wait_for(text, LIMIT, |world| {
            world.messages_to(&ann).iter().any(|it| it.body.contains(text)).then_some(())
        });
    };
    for number in 0..4 {
        assert_eq!(ask(number % 2, &format!("sim:echo=before-{number}")).0, 200);
    }
    for number in 0..4 {
        wait_for(&format!("You said before-{number}."));
    }
    assert_eq!(ask(0, "sim:slow=1500 sim:echo=between").0, 200);
    assert_eq!(ask(1, "sim:echo=with").0, 200);
    drop(sends);
    assert_eq!(ask(1, "sim:echo=after").0, 200);
    let words = ["before-0", "before-1", "before-2", "before-3", "between", "with", "after"];
    for text in words {
        wait_for(&format!("You said {text}."));
    }
    let sent = twilio.messages_to(&ann);
    let texts: Vec<String> = sent.into_iter().map(|message| message.body).collect();
    for text in words {
        let text = format!("You said {text}.");
        assert_eq!(texts.concat().matches(&text).count(), 1, "{text}: {texts:#?}");
    }
    assert_eq!(waits.stop(), Some(0));
}

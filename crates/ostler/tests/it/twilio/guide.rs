//! The page for users, followed to the letter.

use std::fs;

use reqwest::Method;
use serde_json::Value;

use super::rig::{ANN, BOB, free_address};
use crate::{
    checkup::of_channels,
    gateway::daemon::Daemon,
    support::{LIMIT, Place},
    twilio_double::{Twilio, encoded},
};

const PAGE: &str = include_str!("../../../../../docs/channels/twilio.md");
/// What stands on the page for what is somebody's own.
const ACCOUNT: &str = "AC00000000000000000000000000000000";
const TOKEN: &str = "~/.config/ostler/twilio-token";
const PUBLIC: &str = "https://ostler.example.org";
const YOURS: &str = "+4915112345678";

/// Returns the blocks of the configuration that are on the page, in their order.
fn blocks() -> Vec<String> {
    let mut blocks = Vec::new();
    let mut lines = PAGE.lines().map(str::trim_start);
    while lines.any(|line| line == "```json5") {
        let block: Vec<&str> = lines.by_ref().take_while(|line| *line != "```").collect();
        blocks.push(block.join("\n"));
    }
    blocks
}

/// Returns the calls of Twilio's API that are on the page, in their order.
fn calls() -> Vec<String> {
    let mut calls = vec![String::new()];
    for line in PAGE.lines().skip_while(|line| !line.starts_with("curl ")) {
        if line == "```" {
            break;
        }
        // What the shell does not read either.
        let line = line.split(" #").next().unwrap().trim();
        calls.last_mut().unwrap().push_str(line.trim_end_matches('\\'));
        if !line.ends_with('\\') {
            calls.push(String::new());
        }
    }
    calls.retain(|call| !call.is_empty());
    calls
}

/// Makes a call as `curl` would, and returns what Twilio calls the thing that it made.
fn curl(twilio: &Twilio, call: &str) -> String {
    let mut words = call.split_whitespace().map(|word| word.trim_matches(['"', '\'']));
    assert_eq!(words.next(), Some("curl"));
    let (mut url, mut said) = (None, Vec::new());
    while let Some(word) = words.next() {
        match word {
            "-u" => assert_eq!(words.next(), Some("$TWILIO_ACCOUNT_SID:$TWILIO_AUTH_TOKEN")),
            // As it stands there: a plus is a blank.
            "-d" => said.push(words.next().unwrap().to_owned()),
            "--data-urlencode" => {
                let (name, value) = words.next().unwrap().split_once('=').unwrap();
                let value = encoded(&[(String::new(), value.to_owned())]);
                said.push(format!("{name}{value}"));
            }
            word => url = word.strip_prefix("https://conversations.twilio.com"),
        }
    }
    let url = format!("{}{}", twilio.api_url(), url.expect("it says where"));
    let client = reqwest::Client::builder().no_proxy().tls_certs_only([]).build().unwrap();
    let request = client
        .request(Method::POST, url)
        .basic_auth(twilio.account_sid(), Some(twilio.auth_token()))
        .header("content-type", "application/x-www-form-urlencoded")
        .timeout(LIMIT)
        .body(said.join("&"));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let (status, answer) = runtime.block_on(async {
        let response = request.send().await.unwrap();
        (response.status().as_u16(), response.text().await.unwrap())
    });
    assert_eq!(status, 201, "{call}: {answer}");
    let made: Value = serde_json::from_str(&answer).unwrap();
    made["sid"].as_str().unwrap().to_owned()
}

/// Writes one of the blocks as it stands on the page, but for what is somebody's own,
/// and where Twilio is; `rest` is beside it, `more` within it.
fn write_down(place: &Place, twilio: &Twilio, block: &str, rest: &str, more: &str) {
    let ostler = env!("CARGO_BIN_EXE_ostler");
    let agent = place
        .program("claude", &format!("#!/bin/sh\nexec '{ostler}' scripted --as claude -- \"$@\"\n"));
    place.write_down_secret(PAGE, TOKEN, &twilio.auth_token());
    for part in [ACCOUNT, TOKEN, YOURS, "twilio: {"] {
        assert_eq!(block.matches(part).count(), 1, "{part}: {block}");
    }
    let (api, agent) = (twilio.api_url(), agent.display());
    let agent = format!("agent: {{ default: 'claude', path: '{agent}' }},");
    let written = block
        .replace(ACCOUNT, &twilio.account_sid())
        .replace(YOURS, ANN)
        .replace("twilio: {", &format!("{agent} {rest} twilio: {{ api_url: '{api}', {more}"));
    assert!(PAGE.contains("`~/.config/ostler/ostler.json5`"));
    let folder = place.path("home/.config/ostler");
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("ostler.json5"), written).unwrap();
}

/// Says that `ostler doctor` finds nothing wrong with the account, and looks at all
/// that the page says.
fn check_well(place: &Place, looked_at: &[&str]) {
    let found = of_channels(&place.run(&["doctor", "--output", "json"]));
    assert!(found.iter().all(|it| it.level == "ok"), "{found:#?}");
    for about in looked_at {
        let about_it = found.iter().filter(|it| it.message.contains(about));
        assert_eq!(about_it.count(), 1, "{about}: {found:#?}");
    }
}

/// Starts the gateway as the page says.
fn serve(place: &Place) -> Daemon {
    Daemon::start_by(place, place.ostler(&["serve"]), |_| place.path("data/daemon.sock"))
}

/// Writes what the page says, and waits for the first answer.
fn ask(twilio: &Twilio, from: &str, to: &str) {
    assert!(PAGE.contains("`What does this project do?`"));
    twilio.say(from, to, "What does this project do?");
    twilio.wait_for("an answer", LIMIT, |world| {
        let mut sent = world.messages_to(from).into_iter();
        sent.any(|it| it.from == to && it.body.contains("Your prompt has")).then_some(())
    });
}

#[test]
fn the_page_leads_to_a_first_answer_from_the_sandbox() {
    let (twilio, place) = (Twilio::start(), Place::new());
    // A test has no time to wait for long.
    let (rest, more) = ("gateway: { listen: '127.0.0.1:0' },", "poll_every: '200ms',");
    write_down(&place, &twilio, &blocks()[0], rest, more);
    check_well(&place, &["the token", "sandbox", "need not reach", "clock"]);
    let _daemon = serve(&place);
    let sandbox = twilio.whatsapp_number();
    assert!(blocks()[0].contains(&format!("whatsapp_from: '{sandbox}'")));
    ask(&twilio, &format!("whatsapp:{ANN}"), &format!("whatsapp:{sandbox}"));
}

#[test]
fn the_page_leads_to_answers_from_a_number_of_ones_own() {
    let (twilio, place, address) = (Twilio::start(), Place::new(), free_address());
    let own = twilio.sms_number();
    twilio.sender_has(&own);
    let block = &blocks()[1];
    assert!(block.contains(&format!("whatsapp_from: '{own}'")), "{block}");
    let here = format!("http://{address}");
    let block = block.replace(&format!("public_url: '{PUBLIC}'"), &format!("public_url: '{here}'"));
    let rest = format!("gateway: {{ listen: '{address}' }},");
    write_down(&place, &twilio, &block, &rest, "");
    // In the console, as the table says.
    let url = |of: &str| {
        let row = PAGE.lines().find(|line| line.trim().starts_with(&format!("| {of} |"))).unwrap();
        let url = row.split('`').find(|part| part.starts_with(PUBLIC)).unwrap();
        url.replace(PUBLIC, &here)
    };
    assert_eq!(url("SMS"), url("WhatsApp"));
    twilio.set_webhook(&url("WhatsApp"));
    twilio.set_conversation_webhook(&url("groups"));
    let _daemon = serve(&place);
    let from = format!("answers from {own}");
    check_well(
        &place,
        &["the token", &format!("WhatsApp {from}"), &format!("SMS {from}"), "a gateway"],
    );
    ask(&twilio, &format!("whatsapp:{ANN}"), &format!("whatsapp:{own}"));
    ask(&twilio, ANN, &own);
}

#[test]
fn the_page_leads_to_an_answer_in_a_group() {
    let (twilio, place, address) = (Twilio::start(), Place::new(), free_address());
    let here = format!("http://{address}");
    twilio.sender_has(&twilio.sms_number());
    let calls = calls();
    let [make, join] = &calls[..] else { panic!("{calls:#?}") };
    let group = curl(&twilio, make);
    assert!(join.contains(YOURS) && PAGE.contains("# once for each person"), "{join}");
    for person in [ANN, BOB] {
        curl(&twilio, &join.replace("CH…", &group).replace(YOURS, person));
    }
    let blocks = blocks();
    let listed = blocks.iter().find(|block| block.contains("groups: ['CH")).unwrap();
    let listed = listed.trim().strip_prefix("{ twilio: {").unwrap().strip_suffix("} }").unwrap();
    let listed = listed.replace("CH00000000000000000000000000000000", &group);
    let block =
        blocks[1].replace(&format!("public_url: '{PUBLIC}'"), &format!("public_url: '{here}'"));
    let rest = format!("gateway: {{ listen: '{address}' }},");
    write_down(
        &place,
        &twilio,
        &block,
        &rest,
        &format!("{},", listed.trim().trim_end_matches(',')),
    );
    twilio.set_webhook(&format!("{here}/twilio/messages"));
    twilio.set_conversation_webhook(&format!("{here}/twilio/groups"));
    let _daemon = serve(&place);
    check_well(&place, &["a gateway"]);
    let ann = format!("whatsapp:{ANN}");
    twilio.say_in_group(&group, &ann, "What does this project do?");
    twilio.say_in_group(&group, &ann, "ostler, what does this project do?");
    twilio.wait_for("an answer in the group", LIMIT, |world| {
        let said = world.said_in(&group);
        said.iter().any(|(_, text)| text.contains("Your prompt has")).then_some(())
    });
    // Where it was not called it did not answer, nor to the number alone.
    twilio.look(|world| {
        assert_eq!(world.said_in(&group).len(), 1);
        assert!(world.messages_to(&ann).is_empty());
    });
}

#[test]
fn what_is_configured_on_the_page_can_be() {
    let blocks = blocks();
    assert!(blocks.len() >= 3);
    for block in blocks {
        let place = Place::new();
        fs::write(place.path("page.json5"), &block).unwrap();
        let path = place.path("page.json5");
        let checked = place.run(&["config", "check", "--config", path.to_str().unwrap()]);
        assert_eq!(checked.code, Some(0), "{block}: {}", checked.stderr);
    }
}

#[test]
fn errors_that_the_page_lists_are_told_in_words() {
    let table = include_str!("../../../src/channel/twilio/code.rs");
    let is_code = |word: &&str| word.len() == 5 && word.bytes().all(|byte| byte.is_ascii_digit());
    let listed = PAGE.lines().filter(|line| line.starts_with("| "));
    let listed: Vec<&str> = listed
        .flat_map(|line| line.split('|').nth(1).unwrap_or_default().split([',', ' ', '(', ')']))
        .filter(is_code)
        .collect();
    for code in &listed {
        assert!(table.contains(&format!("code({code},")), "{code} has no words");
    }
    assert!(listed.len() > 30, "{listed:?}");
    let rows = table.lines().filter_map(|line| line.trim().strip_prefix("code(")?.split_once(','));
    let known: Vec<&str> = rows.map(|(code, _)| code).filter(is_code).collect();
    for code in &known {
        assert!(listed.contains(code), "{code} is not on the page");
    }
    assert!(known.len() > 30, "{known:?}");
}

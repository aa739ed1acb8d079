//! The keys of the heartbeat, and those of `inbound.reply` that mean the same.

use super::*;
use crate::schedule::heartbeat::Rules;

fn rules(text: &str) -> Rules {
    Rules::from(&load(text).unwrap().config.heartbeat)
}

fn every(text: &str) -> Option<u64> {
    rules(text).every.map(|every| every.as_secs())
}

#[test]
fn a_heartbeat_is_off_by_default_and_comes_every_30_minutes_when_it_is_switched_on() {
    assert_eq!(every("{}"), None);
    assert_eq!(every("{ heartbeat: { enabled: true } }"), Some(1800));
    assert_eq!(every("{ heartbeat: { every: '10m' } }"), Some(600));
    assert_eq!(every("{ heartbeat: { enabled: false, every: '10m' } }"), None);
    // The default file has both; switching it on there is enough.
    assert_eq!(every(&default::TEXT.replace("enabled: null", "enabled: true")), Some(1800));
    assert_eq!(every("{ heartbeat: { every: '1ms' } }"), Some(1));
}

#[test]
fn heartbeat_minutes_is_heartbeat_every_and_0_is_off() {
    let minutes = |number: u32| {
        every(&format!(
            "{{ inbound: {{ reply: {{ agent: {{ kind: 'pi' }}, heartbeatMinutes: {number} }} }} }}"
        ))
    };
    assert_eq!((minutes(0), minutes(10), minutes(90)), (None, Some(600), Some(5400)));
    let twice = load(
        "{ heartbeat: { every: '5m' },
           inbound: { reply: { agent: { kind: 'pi' }, heartbeatMinutes: 10 } } }",
    );
    assert!(twice.unwrap_err().contains("heartbeat.every is there as well"));
}

#[test]
fn heartbeat_idle_minutes_is_heartbeat_idle() {
    let rules = rules(
        "{ inbound: { reply: { agent: { kind: 'pi' }, session: { heartbeatIdleMinutes: 240 } } } }",
    );
    assert_eq!(rules.idle, Some(Duration::from_secs(240 * 60)));
}

#[test]
fn the_prompt_and_the_conversation_can_be_chosen_and_an_empty_prompt_is_none() {
    let chosen = rules("{ heartbeat: { prompt: 'Look.', conversation: 'local:main' } }");
    assert_eq!(chosen.prompt.as_deref(), Some("Look."));
    assert_eq!(chosen.conversation.unwrap().to_string(), "local:main");
    assert_eq!(rules("{ heartbeat: { prompt: ' ' } }").prompt, None);
    let wrong = load("{ heartbeat: { conversation: 'main' } }").unwrap_err();
    assert!(wrong.contains("heartbeat.conversation: a conversation is named by"), "{wrong}");
}

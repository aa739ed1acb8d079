//! What a message asks for, and whose conversation it is in.

use std::time::Duration;

use super::*;

#[test]
fn a_reset_word_alone_begins_afresh_and_with_a_text_the_text_is_the_first() {
    let words = ["/new".to_owned(), "reset".to_owned(), String::new()];
    let words = words.as_slice();
    let prompt = |text, fresh| Asked::Prompt { text, fresh };
    assert_eq!(read(" /NEW\n", words), Asked::Reset);
    assert_eq!(read("Reset", words), Asked::Reset);
    assert_eq!(read("/new  what is it?", words), prompt("what is it?", Some(Fresh::Asked)));
    assert_eq!(read("/newer", words), prompt("/newer", None));
    assert_eq!(read("é", words), prompt("é", None));
    assert_eq!(read("  as it is ", words), prompt("  as it is ", None));
    assert_eq!(read("/new", &[]), prompt("/new", None));
}

#[test]
fn of_several_reset_words_the_longest_counts() {
    let words = ["/new".to_owned(), "/new session".to_owned(), "/newer".to_owned()];
    assert_eq!(read("/new session", &words), Asked::Reset);
    let prompt = |text| Asked::Prompt { text, fresh: Some(Fresh::Asked) };
    assert_eq!(read("/New Session  hello", &words), prompt("hello"));
    assert_eq!(read("/new sessions", &words), prompt("sessions"));
    assert_eq!(read("/newest", &words), Asked::Prompt { text: "/newest", fresh: None });
}

#[test]
fn silence_counts_from_what_a_person_said_last_and_a_clock_that_goes_back_ends_nothing() {
    let sessions = Sessions { idle: Some(Duration::from_secs(60)), ..Sessions::default() };
    let at = |seconds: i64| Millis(seconds * 1000);
    assert!(!is_idle(None, at(1_000), &sessions));
    assert!(!is_idle(Some(at(0)), at(60), &sessions));
    assert!(is_idle(Some(at(0)), at(61), &sessions));
    assert!(!is_idle(Some(at(500)), at(10), &sessions));
    let never = Sessions { idle: None, ..Sessions::default() };
    assert!(!is_idle(Some(at(0)), at(1_000_000), &never));
}

#[test]
fn the_scope_says_who_shares_a_conversation() {
    let hook = Address::new("webhook", "http://a/1").unwrap();
    let other = Address::new("webhook", "http://a/2").unwrap();
    let scoped = |address, sender, scope| scoped(address, sender, None, scope).unwrap();
    assert_eq!(scoped(&hook, "me", Scope::PerChannel), hook);
    assert_ne!(scoped(&hook, "me", Scope::PerSender), scoped(&hook, "you", Scope::PerSender));
    assert_eq!(scoped(&hook, "me", Scope::Global), scoped(&other, "you", Scope::Global));
    let local = Address::new(LOCAL, "main").unwrap();
    assert_eq!(scoped(&local, "me", Scope::Global), local);
}

#[test]
fn by_default_an_hour_is_silence_and_one_word_begins_afresh() {
    let Sessions { idle, reset_words, scope } = Sessions::default();
    assert_eq!(idle, Some(Duration::from_secs(60 * 60)));
    assert_eq!((reset_words, scope), (vec!["/new".to_owned()], Scope::PerChannel));
}

#[test]
fn a_group_shares_a_conversation_and_whoever_is_in_none_has_his_own() {
    let place = Address::new("webhook", "http://a/1").unwrap();
    let group = Group::default();
    let scoped = |sender, group| scoped(&place, sender, group, Scope::PerGroup).unwrap();
    assert_eq!(scoped("me", Some(&group)), place);
    assert_eq!(scoped("you", Some(&group)), place);
    assert_ne!(scoped("me", None), scoped("you", None));
    assert_ne!(scoped("me", None), place);
}

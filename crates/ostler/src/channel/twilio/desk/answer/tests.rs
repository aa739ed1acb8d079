use proptest::prelude::*;

use super::*;
use crate::{
    channel::chat::testing::by_numbers,
    id::{ConversationId, TurnId},
    store::permissions::NewRequest,
};

const STOOD: Millis = Millis(10_500);
const DECISIONS: [&str; 3] = ["allow", "allow_always", "deny"];

/// Something that is asked, whose choices begin with a number.
fn offer(number: usize, choices: &[&str]) -> Offer {
    Offer {
        request: PermissionId::new(),
        is_open: true,
        has_lapsed: false,
        is_question: false,
        stood_at: STOOD,
        is_unread: false,
        number,
        choices: choices.iter().map(|choice| (*choice).to_owned()).collect(),
    }
}

fn question(number: usize, choices: &[&str]) -> Offer {
    Offer { is_question: true, ..offer(number, choices) }
}

fn closed(offer: Offer) -> Offer {
    Offer { is_open: false, ..offer }
}

/// A request as it is stored.
fn stored() -> StoredRequest {
    let request = NewRequest {
        conversation: ConversationId::new(),
        turn: TurnId::new(),
        request: "req_1".to_owned(),
        body: r#"{"kind":"command","options":["allow","deny"]}"#.to_owned(),
        asked_of: None,
        asked_at: Millis(10_000),
        expires_at: Millis(400_000),
    };
    StoredRequest { id: PermissionId::new(), request, number: Some(1), resolution: None }
}

fn said(text: &str) -> Answer<'_> {
    Answer { text, is_called: true, at: None, may_be_button: false }
}

/// Returns what has the number that somebody says.
fn numbered(text: &str, offers: &[Offer]) -> Option<PermissionId> {
    let number = number(trimmed(text))?;
    let has_it = |offer: &&Offer| offer.choice(number).is_some();
    offers.iter().find(has_it).map(|offer| offer.request)
}

fn means(answer: Answer<'_>, offers: &[Offer], quoted: Quoted) -> Option<Meant> {
    meant(answer, offers, quoted, numbered(answer.text, offers))
}

/// Says what somebody chooses in private, who refers to nothing.
fn chosen(text: &str, offers: &[Offer]) -> Option<Choice> {
    choice(means(said(text), offers, Quoted::Nothing))
}

/// The same of somebody who refers to a request.
fn chosen_of(text: &str, offers: &[Offer], quoted: &Offer) -> Option<Choice> {
    choice(means(said(text), offers, Quoted::Request(quoted.request)))
}

fn choice(meant: Option<Meant>) -> Option<Choice> {
    match meant? {
        Meant::Choice(choice) => Some(choice),
        Meant::Unclear => panic!("unclear"),
    }
}

#[test]
fn a_number_means_one_choice_of_one_request() {
    let offers = [offer(7, &DECISIONS), offer(10, &["allow", "deny"])];
    for (said, request, choice) in [
        ("7", 0, "allow"),
        (" 9. ", 0, "deny"),
        ("8)", 0, "allow_always"),
        ("10", 1, "allow"),
        ("11!", 1, "deny"),
    ] {
        let chosen = chosen(said, &offers).unwrap();
        assert_eq!((chosen.request, chosen.choice.as_str()), (offers[request].request, choice));
    }
    for said in ["0", "1", "6", "12", "-1", "7 8", "99999999999999999999"] {
        assert_eq!(chosen(said, &offers), None, "{said}");
    }
}

#[test]
fn a_number_of_something_that_is_over_is_not_taken_for_what_is_asked_now() {
    let offers = [closed(offer(1, &DECISIONS)), offer(4, &DECISIONS)];
    assert_eq!(chosen("1", &offers).unwrap().request, offers[0].request);
    assert_eq!(chosen("4", &offers).unwrap().request, offers[1].request);
}

#[test]
fn a_number_whose_time_is_up_is_late_and_one_that_was_decided_is_for_the_agent() {
    let decided = [closed(offer(1, &DECISIONS))];
    assert_eq!(chosen("1", &decided), None);
    let lapsed = [Offer { has_lapsed: true, ..closed(offer(1, &DECISIONS)) }];
    assert_eq!(chosen("1", &lapsed).unwrap().request, lapsed[0].request);
    for offers in [decided, lapsed] {
        assert_eq!(chosen("yes", &offers), None);
    }
    assert_eq!(chosen("go on with the rest", &[offer(1, &DECISIONS)]), None);
}

#[test]
fn a_word_counts_where_one_thing_is_asked_or_the_request_is_named() {
    let one = [closed(offer(1, &DECISIONS)), offer(4, &["allow", "deny"])];
    assert_eq!(chosen("Yes!", &one).unwrap().choice, "allow");
    assert_eq!(chosen("no", &one).unwrap().request, one[1].request);
    // What is not offered is not meant.
    assert_eq!(chosen("always", &one), None);
    let two = [offer(1, &DECISIONS), offer(4, &DECISIONS)];
    assert_eq!(means(said("yes"), &two, Quoted::Nothing), Some(Meant::Unclear));
    assert_eq!(chosen("and what else?", &two), None);
    assert_eq!(chosen_of("yes", &two, &two[1]).unwrap().request, two[1].request);
}

#[test]
fn who_refers_to_something_else_answers_nothing() {
    let offers = [offer(1, &DECISIONS)];
    for text in ["1", "yes", "ok"] {
        assert_eq!(means(said(text), &offers, Quoted::Other), None, "{text}");
    }
    let asked = [question(1, &["option:0"])];
    assert_eq!(means(said("red"), &asked, Quoted::Other), None);
}

#[test]
fn who_refers_to_one_request_by_the_number_of_another_is_not_clear() {
    let offers = [offer(1, &DECISIONS), offer(4, &DECISIONS)];
    let meant = means(said("1"), &offers, Quoted::Request(offers[1].request));
    assert_eq!(meant, Some(Meant::Unclear));
}

#[test]
fn a_question_is_answered_by_whatever_is_written() {
    let offers = [question(1, &["option:0", "option:1"])];
    assert_eq!(chosen("2", &offers).unwrap().choice, "option:1");
    let written = chosen("the red one", &offers).unwrap();
    assert_eq!(written.text.as_deref(), Some("the red one"));
    assert_eq!(chosen(" ", &offers), None);
}

#[test]
fn a_number_that_is_no_choice_answers_a_question() {
    for offers in [vec![question(1, &["option:0", "option:1"])], vec![question(1, &[])]] {
        let chosen = chosen("42", &offers).unwrap();
        assert_eq!((chosen.choice.as_str(), chosen.text.as_deref()), ("text", Some("42")));
    }
    // One that was the choice of something that is over may be it, too.
    let offers = [closed(offer(1, &DECISIONS)), question(4, &[])];
    assert_eq!(chosen("2", &offers).unwrap().request, offers[1].request);
    let offers = [offer(1, &DECISIONS), question(4, &[])];
    assert_eq!(chosen("2", &offers).unwrap().request, offers[0].request);
    assert_eq!(chosen("42", &offers), None);
    let quoted = chosen_of("42", &offers, &offers[1]).unwrap();
    assert_eq!(quoted.text.as_deref(), Some("42"));
}

#[test]
fn what_was_written_before_it_could_be_read_is_no_answer() {
    let (decide, ask) = ([offer(1, &DECISIONS)], [question(1, &["option:0"])]);
    let at = |text, at| Answer { at: Some(Millis(at)), ..said(text) };
    for (offers, text) in
        [(&decide, "1"), (&decide, "yes"), (&ask, "1"), (&ask, "red"), (&ask, "7")]
    {
        assert_eq!(means(at(text, 9000), offers, Quoted::Nothing), None, "{text}");
        // Moments have whole seconds: this may have been after it.
        assert!(means(at(text, 10_000), offers, Quoted::Nothing).is_some(), "{text}");
    }
}

#[test]
fn what_is_on_its_way_can_be_read_after_a_moment() {
    let request = stored();
    let offer = |message: Option<&str>, now| {
        let message = message.map(str::to_owned);
        let standing = Standing { request: request.clone(), message, stood_at: STOOD };
        Offer::of(&request, Some(&standing), &by_numbers(), now)
    };
    for (message, later, is_unread) in
        [(None, 0, true), (None, 1999, true), (None, 2000, false), (Some("SM1"), 0, false)]
    {
        let offer = offer(message, Millis(STOOD.0 + later));
        assert_eq!(offer.is_unread, is_unread, "{message:?} {later}");
        assert!(offer.is_open);
    }
    // A clock that was set back shuts nobody out.
    assert!(!offer(Some("SM1"), Millis(0)).is_unread);
}

#[test]
fn nobody_answers_what_was_sent_just_now_and_may_not_have_arrived() {
    let fresh = |offer| [Offer { is_unread: true, ..offer }];
    let (decide, ask) = (fresh(offer(1, &DECISIONS)), fresh(question(1, &["option:0"])));
    for (offers, text) in
        [(&decide, "1"), (&decide, "yes"), (&ask, "1"), (&ask, "red"), (&ask, "7")]
    {
        for quoted in [Quoted::Nothing, Quoted::Request(offers[0].request)] {
            assert_eq!(means(said(text), offers, quoted), None, "{text} {quoted:?}");
        }
        // It is about what can be read.
        let both = [offer(4, &DECISIONS), offers[0].clone()];
        if text == "yes" {
            let chosen = chosen(text, &both).unwrap();
            assert_eq!(chosen.request, both[0].request);
        }
    }
}

#[test]
fn what_may_be_an_old_button_decides_nothing() {
    let offers = [offer(1, &DECISIONS)];
    let found = |text| Answer { at: Some(STOOD), may_be_button: true, ..said(text) };
    for text in ["Allow", "Always", "Deny"] {
        let meant = means(found(text), &offers, Quoted::Nothing);
        assert_eq!(meant, Some(Meant::Unclear), "{text}");
    }
    for text in ["yes", "1"] {
        let meant = means(found(text), &offers, Quoted::Nothing);
        assert_eq!(choice(meant).unwrap().choice, "allow", "{text}");
    }
}

#[test]
fn who_replies_to_a_request_means_it_however_long_ago_that_was() {
    let over = [closed(offer(1, &DECISIONS))];
    assert_eq!(chosen_of("1", &over, &over[0]).unwrap().request, over[0].request);
    assert_eq!(chosen_of("no", &over, &over[0]).unwrap().choice, "deny");
    assert_eq!(chosen_of("and what else?", &over, &over[0]), None);
}

#[test]
fn among_others_a_word_counts_only_if_it_is_said_to_the_agent() {
    let aside = |text| Answer { is_called: false, ..said(text) };
    let (decide, ask) = ([offer(1, &DECISIONS)], [question(1, &["option:0"])]);
    for (offers, text) in [(&decide, "yes"), (&ask, "red")] {
        assert_eq!(means(aside(text), offers, Quoted::Nothing), None);
        assert!(means(said(text), offers, Quoted::Nothing).is_some());
        let quoted = Quoted::Request(offers[0].request);
        assert!(means(aside(text), offers, quoted).is_some());
    }
    let two = [offer(1, &DECISIONS), offer(4, &DECISIONS)];
    assert_eq!(means(aside("yes"), &two, Quoted::Nothing), None);
    // What can mean nothing else needs no call.
    assert!(means(aside("1"), &decide, Quoted::Nothing).is_some());
}

/// Returns texts that are answers, may be taken for one, or are none.
fn texts() -> impl Strategy<Value = String> {
    const WORDS: &[&str] =
        &["yes", "OK", "Allow!", "👍", "always", "no", "deny.", "👎", "maybe", "stop", ""];
    prop_oneof![
        proptest::sample::select(WORDS).prop_map(str::to_owned),
        ("[ #(]{0,2}", 0..9u32, "[ .):!]{0,2}").prop_map(|(a, n, b)| format!("{a}{n}{b}")),
        any::<String>(),
    ]
}

proptest! {
    #[test]
    fn nothing_is_meant_that_was_not_offered(text in texts(), is_open: bool) {
        let offers = [Offer { is_open, ..offer(1, &DECISIONS) }];
        let given = number(trimmed(&text));
        match chosen(&text, &offers) {
            Some(chosen) => {
                prop_assert!(is_open);
                let place = DECISIONS.iter().position(|choice| *choice == chosen.choice);
                prop_assert!(place.is_some() && given.is_none_or(|it| Some(it - 1) == place));
            }
            None => prop_assert!(!is_open || given.is_none_or(|it| offers[0].choice(it).is_none())),
        }
    }
}

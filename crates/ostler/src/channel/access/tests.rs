//! Who is admitted, as tables.

use proptest::{option, prelude::*};

use super::{
    Admission::{Admitted, NotMeant, Stranger},
    Standing::{Approved, Rejected, Unknown},
    *,
};

fn ids(list: &[&str]) -> Vec<String> {
    list.iter().map(|&id| id.to_owned()).collect()
}

/// Something that is said to the bot in a channel of a server.
const SERVER: Source<'_> = Source {
    guild: Some("1"),
    channel: "10",
    parent: None,
    sender: "100",
    roles: &[],
    is_mentioned: true,
};

/// Something that is said to it in private.
const PRIVATE: Source<'_> = Source { guild: None, channel: "90", is_mentioned: false, ..SERVER };

#[test]
fn a_place_that_is_listed_is_for_everybody_in_it_and_for_nobody_else() {
    let in_guild = Discord { guilds: ids(&["1"]), ..Discord::default() };
    let in_channel = Discord { channels: ids(&["10"]), ..Discord::default() };
    let in_both = Discord { guilds: ids(&["1"]), channels: ids(&["10"]), ..Discord::default() };
    let thread = Source { channel: "11", parent: Some("10"), ..SERVER };
    for (rules, from, expected) in [
        (&in_guild, SERVER, Admitted),
        (&in_guild, Source { channel: "20", ..SERVER }, Admitted),
        (&in_guild, Source { guild: Some("2"), ..SERVER }, Stranger),
        (&in_guild, PRIVATE, Stranger),
        (&in_channel, SERVER, Admitted),
        (&in_channel, thread, Admitted),
        (&in_channel, Source { parent: Some("20"), ..thread }, Stranger),
        (&in_channel, Source { channel: "20", ..SERVER }, Stranger),
        // The id of a channel is no private way in.
        (&in_channel, Source { channel: "10", ..PRIVATE }, Stranger),
        (&in_both, SERVER, Admitted),
        (&in_both, thread, Admitted),
        (&in_both, Source { channel: "20", ..SERVER }, Stranger),
        (&in_both, Source { guild: Some("2"), ..SERVER }, Stranger),
    ] {
        assert_eq!(admit(&rules.access(), &from, Unknown), expected, "{rules:?} {from:?}");
    }
}

#[test]
fn people_who_are_listed_may_talk_anywhere_unless_places_are_listed_too() {
    let user = Discord { users: ids(&["100"]), ..Discord::default() };
    let all = Discord { users: ids(&["*"]), ..Discord::default() };
    let there = Discord { users: ids(&["100"]), guilds: ids(&["1"]), ..Discord::default() };
    let other = Source { sender: "101", ..SERVER };
    for (rules, from, expected) in [
        (&user, SERVER, Admitted),
        (&user, PRIVATE, Admitted),
        (&user, other, Stranger),
        (&all, other, Admitted),
        (&all, Source { sender: "101", ..PRIVATE }, Admitted),
        (&there, SERVER, Admitted),
        (&there, PRIVATE, Admitted),
        (&there, Source { guild: Some("2"), ..SERVER }, Stranger),
        (&there, other, Stranger),
    ] {
        assert_eq!(admit(&rules.access(), &from, Unknown), expected, "{rules:?} {from:?}");
    }
}

#[test]
fn a_role_counts_in_servers_only() {
    let rules = Discord { roles: ids(&["7"]), guilds: ids(&["1"]), ..Discord::default() };
    let roles = ids(&["6", "7"]);
    let member = Source { roles: &roles, ..SERVER };
    assert_eq!(admit(&rules.access(), &member, Unknown), Admitted);
    assert_eq!(admit(&rules.access(), &SERVER, Unknown), Stranger);
    assert_eq!(admit(&rules.access(), &Source { guild: Some("2"), ..member }, Unknown), Stranger);
    assert_eq!(admit(&rules.access(), &Source { roles: &roles, ..PRIVATE }, Unknown), Stranger);
}

#[test]
fn whom_the_operator_let_in_is_listed_and_whom_he_rejected_is_not_whatever_else_is() {
    let nothing = Discord::default();
    let there = Discord { guilds: ids(&["1"]), ..Discord::default() };
    let all = Discord { users: ids(&["*", "100"]), ..Discord::default() };
    let owner = Discord { owners: ids(&["100"]), ..Discord::default() };
    for (rules, from, standing, expected) in [
        (&nothing, PRIVATE, Approved, Admitted),
        (&nothing, SERVER, Approved, Admitted),
        (&there, SERVER, Approved, Admitted),
        (&there, Source { guild: Some("2"), ..SERVER }, Approved, Stranger),
        (&there, SERVER, Rejected, Stranger),
        (&all, PRIVATE, Rejected, Stranger),
        (&all, SERVER, Rejected, Stranger),
        (&owner, PRIVATE, Unknown, Admitted),
        (&owner, SERVER, Rejected, Admitted),
        (&owner, Source { sender: "101", ..SERVER }, Unknown, Stranger),
    ] {
        assert_eq!(
            admit(&rules.access(), &from, standing),
            expected,
            "{rules:?} {from:?} {standing:?}"
        );
    }
}

#[test]
fn what_people_say_to_each_other_is_not_meant_except_where_all_is_answered() {
    let rules = Discord {
        guilds: ids(&["1"]),
        answer_all_in: ids(&["10"]),
        users: ids(&["100"]),
        ..Discord::default()
    };
    let said = Source { is_mentioned: false, ..SERVER };
    for (from, expected) in [
        (said, Admitted),
        (Source { channel: "11", parent: Some("10"), ..said }, Admitted),
        (Source { channel: "20", ..said }, NotMeant),
        (Source { channel: "20", ..SERVER }, Admitted),
        (Source { channel: "20", sender: "101", ..said }, NotMeant),
        (Source { sender: "101", ..said }, Stranger),
        (PRIVATE, Admitted),
    ] {
        assert_eq!(admit(&rules.access(), &from, Unknown), expected, "{from:?}");
    }
}

#[test]
fn a_code_is_offered_in_private_if_that_is_configured_and_not_after_a_rejection() {
    let rules = Discord { pairing: true, ..Discord::default() };
    assert!(is_offered_code(&rules.access(), &PRIVATE, Unknown));
    assert!(!is_offered_code(&rules.access(), &PRIVATE, Rejected));
    assert!(!is_offered_code(&rules.access(), &SERVER, Unknown));
    assert!(!is_offered_code(&Discord::default().access(), &PRIVATE, Unknown));
}

#[test]
fn nobody_is_an_owner_by_a_star() {
    let rules = Discord { owners: ids(&["*", "100"]), ..Discord::default() };
    assert!(is_owner(&rules.access(), "100"));
    assert!(!is_owner(&rules.access(), "101"));
}

fn id() -> impl Strategy<Value = String> {
    prop_oneof!["[0-9]{1,3}", Just("*".to_owned()), Just(String::new())]
}

proptest! {
    #[test]
    fn by_default_nobody_is_admitted(
        guild in option::of(id()),
        channel in id(),
        parent in option::of(id()),
        sender in id(),
        roles in proptest::collection::vec(id(), 0..4),
        is_mentioned: bool,
        is_rejected: bool,
    ) {
        let from = Source {
            guild: guild.as_deref(),
            channel: &channel,
            parent: parent.as_deref(),
            sender: &sender,
            roles: &roles,
            is_mentioned,
        };
        let standing = if is_rejected { Rejected } else { Unknown };
        prop_assert_ne!(admit(&Discord::default().access(), &from, standing), Admitted);
        prop_assert!(!is_offered_code(&Discord::default().access(), &from, standing));
    }
}

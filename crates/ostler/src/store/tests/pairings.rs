//! Strangers who ask to be let in, and what is said of them.

use std::time::Duration;

use super::*;
use crate::{
    channel::{
        DISCORD,
        access::Standing::{self, Approved, Rejected, Unknown},
        code::Code,
    },
    store::pairings::{self, Asked, Decision, MOST, OPEN, Pairing, PairingState, Person},
};

fn person(sender: &str) -> Person {
    Person { channel: DISCORD.to_owned(), sender: sender.to_owned() }
}

async fn ask_at(store: &Store, person: Person, now: Millis) -> Asked {
    let args = (person, Code::make().unwrap(), now);
    let asked = store.must(args, |conn, (person, code, now)| {
        Box::pin(pairings::ask(conn, person, "Ann", code, *now))
    });
    asked.await
}

async fn ask(store: &Store, sender: &str, now: Millis) -> Asked {
    ask_at(store, person(sender), now).await
}

/// Asks, and returns the code.
async fn code(store: &Store, sender: &str, now: Millis) -> Code {
    match ask(store, sender, now).await {
        Asked::Code(code) => code.parse().unwrap(),
        other @ (Asked::TooMany | Asked::Decided(_)) => panic!("{other:?}"),
    }
}

async fn decide(store: &Store, code: &Code, decision: Decision, now: Millis) -> Option<Pairing> {
    let decided = store.must((code.clone(), decision, now), |conn, (code, decision, now)| {
        Box::pin(pairings::decide(conn, code, *decision, "operator", *now))
    });
    decided.await
}

async fn standing(store: &Store, sender: &str) -> Standing {
    let found =
        store.read(person(sender), |conn, person| Box::pin(pairings::standing(conn, person)));
    found.await.unwrap()
}

async fn listed(store: &Store, now: Millis) -> Vec<(String, PairingState)> {
    let found = store.read(now, |conn, now| Box::pin(pairings::list(conn, *now)));
    let row = |found: Pairing| (found.person.sender, found.state);
    found.await.unwrap().into_iter().map(row).collect()
}

on_both! {
    async fn who_asks_again_gets_the_same_code_until_it_expires(store: Store) {
        let first = code(&store, "1", NOW).await;
        let end = NOW.after(OPEN);
        assert_eq!(code(&store, "1", Millis(end.0 - 1)).await, first);
        assert_ne!(code(&store, "2", NOW).await, first);
        let second = code(&store, "1", end).await;
        assert_ne!(second, first);
        assert_eq!(decide(&store, &first, Decision::Approve, end).await, None);
        assert_eq!(standing(&store, "1").await, Unknown);
        assert!(decide(&store, &second, Decision::Approve, end).await.is_some());
    }

    async fn what_the_operator_says_stands_and_is_written_down(store: Store) {
        let (good, bad) = (code(&store, "1", NOW).await, code(&store, "2", NOW).await);
        let approved = decide(&store, &good, Decision::Approve, NOW).await.unwrap();
        assert_eq!((approved.person, approved.name.as_str()), (person("1"), "Ann"));
        assert_eq!((approved.code, approved.state), (None, PairingState::Approved));
        assert_eq!(decide(&store, &good, Decision::Reject, NOW).await, None);
        decide(&store, &bad, Decision::Reject, NOW).await.unwrap();
        assert_eq!((standing(&store, "1").await, standing(&store, "2").await), (Approved, Rejected));
        assert_eq!(ask(&store, "1", NOW).await, Asked::Decided(Approved));
        assert_eq!(ask(&store, "2", NOW.after(OPEN)).await, Asked::Decided(Rejected));
        let remove = || store.must(person("2"), |conn, person| {
            Box::pin(pairings::remove(conn, person, "operator", NOW))
        });
        assert_eq!(remove().await.unwrap().state, PairingState::Rejected);
        assert_eq!(remove().await, None);
        assert_eq!(standing(&store, "2").await, Unknown);
        let audit = store.read((), |conn, ()| Box::pin(async move {
            let of_first = audit::about(conn, "discord:1").await?;
            Ok::<_, StoreError>([of_first, audit::about(conn, "discord:2").await?].concat())
        }));
        let audit = audit.await.unwrap();
        let actions: Vec<_> = audit.iter().map(|entry| entry.action.as_str()).collect();
        assert_eq!(actions, ["pairing.approve", "pairing.reject", "pairing.remove"]);
        assert!(audit.iter().all(|entry| entry.actor == "operator"));
        assert!(audit.iter().all(|entry| !entry.detail.contains(good.as_str())));
    }

    async fn only_so_many_strangers_of_a_channel_have_a_code_at_a_time(store: Store) {
        for number in 0..MOST {
            code(&store, &number.to_string(), NOW).await;
        }
        assert_eq!(ask(&store, "late", NOW).await, Asked::TooMany);
        code(&store, "0", NOW).await;
        let elsewhere = Person { channel: "sms".to_owned(), sender: "late".to_owned() };
        assert!(matches!(ask_at(&store, elsewhere, NOW).await, Asked::Code(_)));
        // One who was let in takes no place, and one whose code expired neither.
        let decided = code(&store, "0", NOW).await;
        decide(&store, &decided, Decision::Approve, NOW).await.unwrap();
        code(&store, "late", NOW).await;
        assert_eq!(ask(&store, "later", NOW).await, Asked::TooMany);
        code(&store, "later", NOW.after(OPEN)).await;
    }

    async fn strangers_who_come_at_once_are_all_counted(store: Store) {
        for number in 1..MOST {
            code(&store, &number.to_string(), NOW).await;
        }
        let mut all = tokio::task::JoinSet::new();
        for number in 100..110 {
            let store = store.clone();
            all.spawn(async move { ask(&store, &number.to_string(), NOW).await });
        }
        let got = all.join_all().await;
        let n_codes = got.iter().filter(|asked| matches!(asked, Asked::Code(_))).count();
        assert_eq!(n_codes, 1, "{got:?}");
    }

    async fn who_asks_twice_at_once_has_one_code(store: Store) {
        let (one, two) = tokio::join!(code(&store, "1", NOW), code(&store, "1", NOW));
        assert_eq!(one, two);
    }

    async fn an_expired_code_is_not_listed_and_cleared_away(store: Store) {
        let decided = code(&store, "1", NOW).await;
        decide(&store, &decided, Decision::Approve, NOW).await.unwrap();
        code(&store, "2", Millis(NOW.0 + 1)).await;
        let state = |sender: &str, state| (sender.to_owned(), state);
        let (asked, approved) = (PairingState::Asked, PairingState::Approved);
        assert_eq!(listed(&store, NOW).await, [state("2", asked), state("1", approved)]);
        let end = Millis(NOW.0 + 1).after(OPEN);
        assert_eq!(listed(&store, end).await, [state("1", approved)]);
        let keep = Keep { events: None, ..Keep::default() };
        assert_eq!(store.clean_up(keep, Millis(end.0 - 1)).await.unwrap(), 0);
        assert_eq!(store.clean_up(keep, end).await.unwrap(), 1);
        let later = end.after(Duration::from_secs(60));
        assert_eq!(listed(&store, later).await, [state("1", approved)]);
    }

    async fn a_long_name_is_cut(store: Store) {
        let args = (person("1"), Code::make().unwrap());
        store.must(args, |conn, (person, code)| Box::pin(async move {
            pairings::ask(conn, person, &"ä".repeat(500), code, NOW).await
        })).await;
        let found = store.read((), |conn, ()| Box::pin(pairings::list(conn, NOW)));
        assert_eq!(found.await.unwrap()[0].name.chars().count(), 100);
    }
}

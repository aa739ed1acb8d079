//! Permission requests: asked once, decided once, and in time.

use super::*;
use crate::{
    id::{ConversationId, PermissionId, TurnId},
    store::{
        permissions::{Decision, NewRequest, Resolution, Resolved},
        posts::{Stood, StoredPost, Subject},
        turns::NewTurn,
    },
};

const LATE: Millis = Millis(NOW.0 + 10);

async fn conversation(conn: &mut Conn) -> Result<ConversationId, StoreError> {
    let address = conversations::Address::new("test", "here").unwrap();
    Ok(conversations::find_or_begin(conn, &address, NOW).await?.id)
}

fn request(conversation: ConversationId, turn: TurnId, name: &str) -> NewRequest {
    NewRequest {
        conversation,
        turn,
        request: name.to_owned(),
        body: "{}".to_owned(),
        asked_of: Some("ann".to_owned()),
        asked_at: NOW,
        expires_at: LATE,
    }
}

fn decision(name: &str) -> Decision {
    Decision { decision: name.to_owned(), text: Some(format!("{name}, I said")) }
}

/// Begins a turn that asks something by numbers, at a place.
async fn asked(conn: &mut Conn, place: &str) -> Result<PermissionId, StoreError> {
    let (conversation, turn, id) = (conversation(conn).await?, TurnId::new(), PermissionId::new());
    let agent = "codex".to_owned();
    let begun = NewTurn { id: turn, conversation, job: None, attempt: 1, agent, begun_at: NOW };
    turns::begin(conn, &begun).await?;
    permissions::ask(conn, id, &request(conversation, turn, "1")).await?;
    permissions::number(conn, id, "sms", place, 3).await?;
    Ok(id)
}

/// Notes a message of a request.
async fn posted(conn: &mut Conn, slot: String, message: Option<&str>) -> Result<(), StoreError> {
    let subject =
        Subject { id: "job".to_owned(), channel: "sms".to_owned(), place: "+1".to_owned() };
    let message = message.map(str::to_owned);
    posts::note(conn, &subject, &StoredPost { slot, message, posted_at: LATE }).await
}

on_both! {
    async fn numbers_go_on_at_a_place_and_lead_to_their_request(store: Store) {
        store.must((), |conn, ()| Box::pin(async move {
            let (one, two) = (asked(conn, "+1").await?, asked(conn, "+1").await?);
            // Asked again it has the same.
            assert_eq!(permissions::number(conn, two, "sms", "+1", 3).await?, 4);
            let elsewhere = asked(conn, "+2").await?;
            for (place, number, request) in
                [("+1", 3, Some(one)), ("+1", 4, Some(two)), ("+2", 1, Some(elsewhere)), ("+1", 7, None)]
            {
                let found = permissions::numbered(conn, "sms", place, number).await?;
                assert_eq!(found.map(|found| found.id), request, "{place} {number}");
            }
            // After many more it begins again, and means what is asked then.
            for _ in 0..28 {
                asked(conn, "+1").await?;
            }
            let again = asked(conn, "+1").await?;
            let found = permissions::numbered(conn, "sms", "+1", 2).await?.unwrap();
            assert_eq!((found.id, found.number), (again, Some(1)));
            Ok(())
        })).await;
    }

    async fn what_can_be_answered_stands_there_and_waits(store: Store) {
        store.must((), |conn, ()| Box::pin(async move {
            let (one, two) = (asked(conn, "+1").await?, asked(conn, "+1").await?);
            let open = async |conn: &mut Conn| {
                let open = permissions::open_at(conn, "sms", "+1").await?;
                Ok::<_, StoreError>(open.iter().map(|it| it.request.id).collect::<Vec<_>>())
            };
            assert_eq!(open(conn).await?, []);
            posted(conn, format!("asked:{one}"), Some("SM1")).await?;
            posted(conn, format!("asked:{two}"), None).await?;
            assert_eq!(open(conn).await?, [one, two]);
            let stood = async |conn: &mut Conn, id| posts::stood(conn, id, "sms", "+1").await;
            assert_eq!(stood(conn, one).await?, Stood::Whole);
            assert_eq!(stood(conn, two).await?, Stood::Nothing);
            posted(conn, format!("page:0:{one}"), None).await?;
            assert_eq!(stood(conn, one).await?, Stood::InPart);
            posted(conn, format!("page:0:{one}"), Some("SM2")).await?;
            assert_eq!(stood(conn, one).await?, Stood::Whole);
            // What did not arrive does not stand there.
            posts::delivered(conn, "sms", "SM2", "failed", Some("30007")).await?;
            assert_eq!(stood(conn, one).await?, Stood::InPart);
            posts::delivered(conn, "sms", "SM1", "failed", Some("30007")).await?;
            assert_eq!(stood(conn, one).await?, Stood::Nothing);
            assert_eq!(open(conn).await?, [two]);
            let turn = permissions::find(conn, two).await?.unwrap().request.turn;
            turns::end(conn, turn, "{}", NOW).await?;
            assert_eq!(open(conn).await?, []);
            Ok(())
        })).await;
    }

    async fn a_permission_request_is_decided_once_and_in_time(store: Store) {
        store.must((), |conn, ()| Box::pin(async move {
            let (here, turn) = (conversation(conn).await?, TurnId::new());
            let (first, second) = (PermissionId::new(), PermissionId::new());
            permissions::ask(conn, first, &request(here, turn, "1")).await?;
            permissions::ask(conn, second, &request(here, turn, "2")).await?;
            assert_eq!(permissions::open_in(conn, here).await?.len(), 2);
            let allow = permissions::resolve(conn, first, &decision("allow"), "ann", NOW).await?;
            assert_eq!(allow, Resolved::Now);
            let deny = permissions::resolve(conn, first, &decision("deny"), "bob", NOW).await?;
            let by = Some("ann".to_owned());
            let stands = Resolution { decision: decision("allow"), by, at: Some(NOW) };
            assert_eq!(deny, Resolved::Before(stands.clone()));
            let answer = permissions::resolve(conn, second, &decision("allow"), "ann", LATE).await?;
            assert_eq!(answer, Resolved::Late);
            assert_eq!(permissions::expire(conn, LATE).await?.len(), 1);
            let answer = permissions::resolve(conn, second, &decision("allow"), "ann", NOW).await?;
            assert_eq!(answer, Resolved::Late);
            let of_turn = permissions::resolved_of(conn, turn).await?;
            assert_eq!(of_turn.iter().map(|found| found.id).collect::<Vec<_>>(), [first, second]);
            assert_eq!(of_turn[0].resolution, Some(stands));
            assert_eq!(of_turn[0].request, request(here, turn, "1"));
            let unknown = PermissionId::new();
            let answer = permissions::resolve(conn, unknown, &decision("allow"), "ann", NOW).await?;
            assert_eq!(answer, Resolved::Unknown);
            Ok(())
        })).await;
    }

    async fn what_is_open_when_its_turn_ends_is_closed(store: Store) {
        store.must((), |conn, ()| Box::pin(async move {
            let (here, turn) = (conversation(conn).await?, TurnId::new());
            permissions::ask(conn, PermissionId::new(), &request(here, turn, "1")).await?;
            assert_eq!(permissions::resolved_of(conn, turn).await?, []);
            assert_eq!(permissions::expire_turn(conn, turn, NOW).await?, 1);
            assert_eq!(permissions::open_in(conn, here).await?, []);
            let resolution = permissions::resolved_of(conn, turn).await?.remove(0).resolution;
            assert_eq!(resolution.unwrap().by, None);
            Ok(())
        })).await;
    }

    async fn a_request_that_is_asked_or_answered_twice_is_as_if_it_were_once(store: Store) {
        store.must((), |conn, ()| Box::pin(async move {
            let (here, turn, id) = (conversation(conn).await?, TurnId::new(), PermissionId::new());
            let asked = request(here, turn, "1");
            assert_eq!(permissions::ask(conn, id, &asked).await?, id);
            assert_eq!(permissions::ask(conn, id, &asked).await?, id);
            assert_eq!(permissions::ask(conn, PermissionId::new(), &asked).await?, id);
            let answer = decision("allow");
            for _ in 0..2 {
                let resolved = permissions::resolve(conn, id, &answer, "ann", NOW).await?;
                assert_eq!(resolved, Resolved::Now);
            }
            let resolved = permissions::resolve(conn, id, &answer, "ann", LATE).await?;
            let by = Some("ann".to_owned());
            let stands = Resolution { decision: answer.clone(), by, at: Some(NOW) };
            assert_eq!(resolved, Resolved::Again(stands.clone()));
            let others = [("allow", "bob"), ("allow_always", "ann")];
            for (other, by) in others {
                let resolved = permissions::resolve(conn, id, &decision(other), by, NOW).await?;
                assert_eq!(resolved, Resolved::Before(stands.clone()));
            }
            Ok(())
        })).await;
    }

    async fn an_answer_wakes_whoever_runs_the_turn(store: Store) {
        let id = store.must((), |conn, ()| Box::pin(async move {
            let asked = request(conversation(conn).await?, TurnId::new(), "1");
            permissions::ask(conn, PermissionId::new(), &asked).await
        })).await;
        let mut wakeups = store.wakeups(Topic::Wishes);
        store.must(id, |conn, id| Box::pin(async move {
            permissions::resolve(conn, *id, &decision("deny"), "ann", NOW).await
        })).await;
        assert_eq!(wakeups.next().await, Woken::Told);
    }
}

//! Which conversation is spoken in, whatever `sessions.scope` says.

use super::*;
use crate::{
    config::{Scope, Sessions},
    outbound::{Outgoing, Target},
};

fn message(to: Target) -> Outgoing {
    Outgoing { to, text: "psst".to_owned(), id: None, from: None }
}

on_both! {
    async fn heartbeats_messages_and_schedules_agree_on_the_conversation(store: Store) {
        // Where a person speaks, and what is said to nobody in particular at his place.
        let person = format!("webhook:{URL} me");
        let place = format!("webhook:{URL}");
        let mut rig = Rig::new(store.clone(), Knobs::default()).await;
        let mut now = an_hour_to_come();
        for (scope, of_person, of_place) in [
            (Scope::PerChannel, &place, &place),
            (Scope::PerSender, &person, &place),
            (Scope::PerGroup, &person, &place),
            (Scope::Global, &"global:all".to_owned(), &"global:all".to_owned()),
        ] {
            let sessions = Sessions { scope, idle: None, ..Sessions::default() };
            rig = rig.again().await;
            rig.change(&Knobs { sessions, ..saying("beat") });
            let name = async |id| conversation(&store, id).await.address.to_string();
            let asked = rig.try_send(from_outside("hello")).await.unwrap();
            rig.end_of(asked.job).await;
            assert_eq!(name(asked.conversation).await, *of_person, "{scope:?}");
            let made = rig.gateway.heartbeat(None).await.unwrap();
            let Made::Job { job, conversation: beaten } = made else { panic!("{made:?}") };
            rig.end_of(job).await;
            assert_eq!(beaten, asked.conversation, "{scope:?}");

            let newest = rig.gateway.deliver(message(Target::Newest)).await.unwrap();
            assert_eq!(newest.conversation, asked.conversation, "{scope:?}");
            let at = Target::At(place.parse().unwrap());
            let placed = rig.gateway.deliver(message(at)).await.unwrap();
            assert_eq!(name(placed.conversation).await, *of_place, "{scope:?}");

            let mut new = schedule(&format!("{scope:?}"), "0 * * * *", "run", now.before(minutes(5)));
            new.conversation = place.parse().unwrap();
            add(&store, new).await;
            desk(&rig).look(now).await.unwrap();
            let job = stored(&store, &format!("{scope:?}")).await.job.unwrap();
            rig.end_of(job).await;
            let lane = Queue::new(store.clone()).find(job).await.unwrap().unwrap().lane;
            assert_eq!(lane.to_string(), placed.conversation.to_string(), "{scope:?}");
            // All of it goes to where the person is.
            let sent: Vec<_> = replies(&store).await.into_iter().collect();
            let said: Vec<_> = sent.iter().rev().take(5).map(|reply| reply["text"].clone()).collect();
            assert_eq!(said, ["run", "psst", "psst", "beat", "hello"], "{scope:?}");
            remove(&store, &format!("{scope:?}")).await;
            now = now.after(minutes(60));
        }
        rig.stop().await;
    }
}

async fn remove(store: &Store, name: &str) {
    let id = stored(store, name).await.schedule.id;
    store.must(id, |conn, id| Box::pin(schedules::remove(conn, *id))).await;
}

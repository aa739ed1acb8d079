//! Which commands wait for each other.

use super::*;
use crate::{
    config::Sessions,
    store::{
        conversations::{self, Address},
        sessions::{self, Session},
        testing::age,
    },
};

/// Makes a prompt that goes on with a session.
fn going_on(project: ProjectId, session: &str, text: &str) -> Order {
    let mut order = order(project, text);
    order.wishes.session = Some(session.to_owned());
    order
}

on_both! {
    async fn a_prompt_goes_on_with_the_session_that_it_names(store: Store) {
        let rig = Rig::new(store.clone(), Knobs::default()).await;
        let (here, there) = (project(&store, "a").await, project(&store, "b").await);
        let first = give(&rig, here, "one").await;
        assert_eq!(ended(&rig, first, CommandState::Completed).await.session_id.unwrap(), "s1");
        let order = going_on(here, "s1", "two");
        let id = order.id;
        rig.gateway.command(order).await.unwrap();
        ended(&rig, id, CommandState::Completed).await;
        let (first, second) = (stored(&store, first).await, stored(&store, id).await);
        assert_eq!(first.command.conversation, second.command.conversation);
        // One that nobody knows is the agent's to find.
        let order = going_on(there, "s77", "three");
        let id = order.id;
        rig.gateway.command(order).await.unwrap();
        ended(&rig, id, CommandState::Completed).await;
        let new = give(&rig, here, "four").await;
        ended(&rig, new, CommandState::Completed).await;
        assert_eq!(rig.calls(), ["new|one", "s1|two", "s77|three", "new|four"]);
        rig.stop().await;
    }

    async fn a_session_of_another_project_or_of_a_chat_is_not_gone_on_with(store: Store) {
        let rig = Rig::new(store.clone(), Knobs::default()).await;
        let (here, there) = (project(&store, "a").await, project(&store, "b").await);
        let first = give(&rig, here, "one").await;
        ended(&rig, first, CommandState::Completed).await;
        store
            .must((), |conn, ()| {
                Box::pin(async move {
                    let chat = Address::new("local", "chat").unwrap();
                    let chat = conversations::find_or_begin(conn, &chat, Millis(1)).await?.id;
                    let session = Session {
                        session: "s88".to_owned(),
                        memo: "{}".to_owned(),
                        updated_at: Millis(1),
                    };
                    sessions::keep(conn, chat, "shell", &session).await
                })
            })
            .await;
        for session in ["s1", "s88"] {
            let refused = rig.gateway.command(going_on(there, session, "two")).await.unwrap_err();
            assert!(matches!(refused, Refusal::Session(_)), "{refused}");
        }
        assert_eq!(rig.calls(), ["new|one"]);
        rig.stop().await;
    }

    async fn sessions_of_a_project_run_beside_each_other(store: Store) {
        let rig = Rig::new(store.clone(), Knobs::default()).await;
        let project = project(&store, "a").await;
        let held = give(&rig, project, "gate").await;
        rig.until_hanging().await;
        let other = give(&rig, project, "meanwhile").await;
        ended(&rig, other, CommandState::Completed).await;
        assert_eq!(stored(&store, held).await.state, CommandState::Running);
        rig.open_gate().await;
        ended(&rig, held, CommandState::Completed).await;
        rig.stop().await;
    }

    async fn what_is_said_in_one_session_is_said_in_order(store: Store) {
        let rig = Rig::new(store.clone(), Knobs::default()).await;
        let project = project(&store, "a").await;
        let first = give(&rig, project, "one").await;
        ended(&rig, first, CommandState::Completed).await;
        // Also in one that only the agent knows, before it has said its name.
        for (session, answers) in [("s1", ["gate", "after"]), ("s77", ["gate", "behind"])] {
            let orders = answers.map(|text| going_on(project, session, text));
            let [held, next] = orders.each_ref().map(|order| order.id);
            for order in orders {
                rig.gateway.command(order).await.unwrap();
            }
            rig.until_hanging().await;
            assert_eq!(stored(&store, next).await.state, CommandState::Queued, "{session}");
            rig.open_gate().await;
            ended(&rig, held, CommandState::Completed).await;
            ended(&rig, next, CommandState::Completed).await;
        }
        let calls = ["new|one", "s1|gate", "s1|after", "s77|gate", "s77|behind"];
        assert_eq!(rig.calls(), calls);
        rig.stop().await;
    }

    async fn a_session_that_is_named_is_gone_on_with_however_long_it_was_silent(store: Store) {
        let sessions = Sessions { idle: Some(Duration::from_secs(60)), ..Sessions::default() };
        let rig = Rig::new(store.clone(), Knobs { sessions, ..Knobs::default() }).await;
        let project = project(&store, "a").await;
        let first = give(&rig, project, "one").await;
        ended(&rig, first, CommandState::Completed).await;
        let conversation = stored(&store, first).await.command.conversation;
        age(&store, conversation, Duration::from_secs(61)).await;
        let order = going_on(project, "s1", "two");
        let id = order.id;
        rig.gateway.command(order).await.unwrap();
        ended(&rig, id, CommandState::Completed).await;
        assert_eq!(rig.calls(), ["new|one", "s1|two"]);
        rig.stop().await;
    }
}

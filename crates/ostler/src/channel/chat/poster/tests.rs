//! What is noted, sent and looked for, in a chat that does what each test says.

use std::{sync::atomic::Ordering::Relaxed, time::Duration};

use super::*;
use crate::{
    channel::{
        SMS,
        chat::{
            Limits,
            testing::{Fake, by_changes, by_numbers, cut},
        },
    },
    store::testing::on_both,
};

const LONG_AGO: Duration = Duration::from_secs(600);

fn subject() -> Subject {
    Subject { id: "job".to_owned(), channel: SMS.to_owned(), place: "+1".to_owned() }
}

/// Notes that a message was about to be sent when its gateway was killed.
async fn note_begun(store: &Store, slot: &Slot, posted_at: Millis) {
    let post = StoredPost { slot: slot.to_string(), message: None, posted_at };
    let args = (subject(), post);
    store.must(args, |conn, (subject, post)| Box::pin(posts::note(conn, subject, post))).await;
}

fn view() -> View {
    View { posts: vec![(Slot::Text(0), Post::of("an answer"))], is_final: true }
}

on_both! {
    async fn what_may_have_been_sent_too_long_ago_to_be_known_again_is_looked_for(store: Store) {
        let known_again = Some(Duration::from_secs(60));
        let (fake, mut posted) = Fake::new(Limits { known_again, ..by_numbers() });
        let stands = Stands { message: "there".to_owned(), is_as_sent: true };
        fake.standing.lock().unwrap().push(stands);
        note_begun(&store, &Slot::Text(0), Millis::now().before(LONG_AGO)).await;
        let mut poster = Poster::open(fake, store, subject(), None).await.unwrap();
        poster.finish(&view()).await.unwrap();
        assert_eq!(poster.last_message(), Some("there"));
        assert!(posted.try_recv().is_err());
    }

    async fn what_is_known_again_by_its_name_is_sent_again_and_not_looked_for(store: Store) {
        let known_again = Some(LONG_AGO);
        let (fake, mut posted) = Fake::new(Limits { known_again, ..by_numbers() });
        let stands = Stands { message: "another".to_owned(), is_as_sent: true };
        fake.standing.lock().unwrap().push(stands);
        let begun = Millis::now();
    let name = format!("job:text:0:{}", begun.0);
    note_begun(&store, &Slot::Text(0), begun).await;
        let mut poster = Poster::open(fake, store, subject(), None).await.unwrap();
        poster.finish(&view()).await.unwrap();
        assert_eq!(poster.last_message(), Some(name.as_str()));
        assert_eq!(posted.try_recv().unwrap(), Post::of("an answer"));
    }

    async fn a_doubt_stays_although_a_later_try_certainly_failed(store: Store) {
        let (fake, _posted) = Fake::new(Limits { known_again: Some(LONG_AGO), ..by_numbers() });
        fake.troubles.lock().unwrap().extend([cut(), SendError::soon("it cannot be reached")]);
        for _ in 0..2 {
            let chat = Arc::clone(&fake) as Arc<dyn Chat>;
            let mut poster = Poster::open(chat, store.clone(), subject(), None).await.unwrap();
            poster.finish(&view()).await.unwrap_err();
        }
        // The chat does not know it by its name any more.
        let (fake, mut posted) = Fake::new(by_numbers());
        let stands = Stands { message: "there".to_owned(), is_as_sent: true };
        fake.standing.lock().unwrap().push(stands);
        let mut poster = Poster::open(fake, store, subject(), None).await.unwrap();
        poster.finish(&view()).await.unwrap();
        assert_eq!(poster.last_message(), Some("there"));
        assert!(posted.try_recv().is_err());
    }

    async fn what_is_posted_again_has_one_name_also_after_a_restart(store: Store) {
        let (fake, _posted) = Fake::new(by_changes());
        let chat = Arc::clone(&fake) as Arc<dyn Chat>;
        let mut poster = Poster::open(chat, store.clone(), subject(), None).await.unwrap();
        poster.finish(&view()).await.unwrap();
        fake.there.lock().unwrap().clear();
        let other = |text| View { posts: vec![(Slot::Text(0), Post::of(text))], is_final: true };
        // Somebody took it away, and nobody hears of what takes its place.
        fake.troubles.lock().unwrap().push_back(cut());
        poster.finish(&other("other")).await.unwrap_err();
        let chat = Arc::clone(&fake) as Arc<dyn Chat>;
        let mut poster = Poster::open(chat, store, subject(), None).await.unwrap();
        poster.finish(&other("last")).await.unwrap();
        assert_eq!(fake.texts(), ["last"]);
    }

    async fn an_answer_stands_although_nothing_that_is_there_can_be_changed(store: Store) {
        let (fake, _posted) = Fake::new(by_changes());
        let chat = Arc::clone(&fake) as Arc<dyn Chat>;
        let mut poster = Poster::open(chat, store, subject(), None).await.unwrap();
        let view = |texts: &[&str], is_final| {
            let posts = (0..).map(Slot::Text).zip(texts.iter().map(|text| Post::of(*text)));
            View { posts: posts.collect(), is_final }
        };
        poster.show(&view(&["a", "b", "c"], false)).await.unwrap();
        fake.is_closed.store(true, Relaxed);
        poster.finish(&view(&["one", "two"], true)).await.unwrap();
        assert_eq!(fake.texts(), ["a", "b", "c", "one", "two"]);
    }

    async fn a_page_of_which_nobody_heard_does_not_stay_below_the_answer(store: Store) {
        let (fake, _posted) = Fake::new(by_changes());
        let begun = Millis::now();
        let page = (format!("job:text:1:{}", begun.0), Post::of("a page"));
        fake.there.lock().unwrap().push(page);
        note_begun(&store, &Slot::Text(1), begun).await;
        let chat = Arc::clone(&fake) as Arc<dyn Chat>;
        let mut poster = Poster::open(chat, store, subject(), None).await.unwrap();
        poster.finish(&view()).await.unwrap();
        assert_eq!(fake.texts(), ["an answer"]);
    }

    async fn a_request_of_which_nobody_heard_is_settled_or_taken_away(store: Store) {
        let (fake, _posted) = Fake::new(by_changes());
        let begun = Millis::now();
        let slots = ["prm_1", "prm_2"].map(|id| Slot::Asked(id.to_owned()));
        let asked = (format!("job:asked:prm_1:{}", begun.0), Post::of("may it?"));
        fake.there.lock().unwrap().push(asked);
        for slot in &slots {
            note_begun(&store, slot, begun).await;
        }
        let chat = Arc::clone(&fake) as Arc<dyn Chat>;
        let mut poster = Poster::open(chat, store, subject(), None).await.unwrap();
        let posts = slots.map(|slot| (slot, Post::of("no longer open"))).to_vec();
        poster.settle(&View { posts, is_final: true }).await.unwrap();
        assert_eq!(fake.texts(), ["no longer open"]);
        assert_eq!((poster.posted().len(), poster.unsure().count()), (1, 0));
    }

    async fn a_note_that_somebody_took_away_is_posted_again(store: Store) {
        let (fake, _posted) = Fake::new(by_changes());
        let chat = Arc::clone(&fake) as Arc<dyn Chat>;
        let mut poster = Poster::open(chat, store, subject(), None).await.unwrap();
        poster.note_below(Post::of("why")).await.unwrap();
        fake.there.lock().unwrap().clear();
        poster.note_below(Post::of("why not")).await.unwrap();
        assert_eq!(fake.texts(), ["why not"]);
    }
}

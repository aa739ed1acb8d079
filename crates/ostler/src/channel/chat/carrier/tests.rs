use super::*;
use crate::{
    channel::{
        SMS,
        chat::{
            Attachment, Chat, Choices, Content,
            testing::{Fake, by_changes, by_numbers},
        },
    },
    store::testing::on_both,
};

on_both! {
    async fn an_answer_whose_files_are_not_taken_stands_without_them(store: Store) {
        let (fake, mut posted) = Fake::new(Limits { files: 1, file_bytes: 1 << 20, ..by_numbers() });
        let subject = Subject { id: "job".to_owned(), channel: SMS.to_owned(), place: "+1".to_owned() };
        let chat = Arc::clone(&fake) as Arc<dyn Chat>;
        let mut poster = Poster::open(chat, store, subject, None).await.unwrap();
        let content = Content::Text("x".to_owned());
        let files = vec![Attachment { name: "a.txt".to_owned(), content }];
        let text = "the chart".to_owned();
        let answer = media::Answer { text, attachments: files, notes: Vec::new() };
        fake.refuse_next();
        post(&mut poster, &answer, Long::Split, fake.limits()).await.unwrap();
        let said = posted.recv().await.unwrap();
        let expected = "the chart\n\n(a.txt was not sent: no files can be sent here.)";
        assert_eq!(said, Post::of(expected));
    }

    async fn that_files_are_not_taken_is_told_below_a_text_that_stands(store: Store) {
        let (fake, mut posted) = Fake::new(Limits { files: 1, file_bytes: 1 << 20, ..by_numbers() });
        let subject = Subject { id: "job".to_owned(), channel: SMS.to_owned(), place: "+1".to_owned() };
        let chat = Arc::clone(&fake) as Arc<dyn Chat>;
        let mut poster = Poster::open(chat, store, subject, None).await.unwrap();
        let attachments = vec![Attachment { name: "a.txt".to_owned(), content: Content::Text("x".to_owned()) }];
        let text = "the chart".to_owned();
        let answer = media::Answer { text, attachments, notes: Vec::new() };
        fake.has_no_files.store(true, std::sync::atomic::Ordering::Relaxed);
        post(&mut poster, &answer, Long::Split, fake.limits()).await.unwrap();
        assert_eq!(posted.recv().await, Some(Post::of("the chart")));
        assert!(posted.recv().await.unwrap().text.contains("files were not sent"));
    }

    async fn what_takes_nothing_at_all_has_not_refused_the_files(store: Store) {
        let (fake, mut posted) = Fake::new(Limits { files: 1, file_bytes: 1 << 20, ..by_numbers() });
        let subject = Subject { id: "job".to_owned(), channel: SMS.to_owned(), place: "+1".to_owned() };
        let chat = Arc::clone(&fake) as Arc<dyn Chat>;
        let mut poster = Poster::open(chat, store, subject, None).await.unwrap();
        let text = "the chart".to_owned();
        let answer = media::Answer { text, ..media::Answer::default() };
        post(&mut poster, &answer, Long::Split, fake.limits()).await.unwrap();
        let attachments = vec![Attachment { name: "a.txt".to_owned(), content: Content::Text("x".to_owned()) }];
        let answer = media::Answer { attachments, ..answer };
        // Its reader has said STOP: neither the file is taken, nor a word about it.
        fake.refuse_next();
        fake.refuse_next();
        let refused = post(&mut poster, &answer, Long::Split, fake.limits()).await;
        assert!(matches!(refused, Err(Trouble::Chat(error)) if error.is_refusal()));
        // He may not have written for a day, which is no refusal.
        fake.troubles.lock().unwrap().push_back(SendError::certain(Next::Wait, "later"));
        let waits = post(&mut poster, &answer, Long::Split, fake.limits()).await;
        assert!(matches!(waits, Err(Trouble::Chat(error)) if error.next == Next::Wait));
        post(&mut poster, &answer, Long::Split, fake.limits()).await.unwrap();
        assert_eq!(posted.recv().await, Some(Post::of("the chart")));
        assert_eq!(posted.recv().await.unwrap().files, answer.attachments);
        assert!(posted.try_recv().is_err());
    }

    async fn an_answer_that_cannot_be_a_file_comes_as_text(store: Store) {
        let limits = Limits { text: 200, files: 1, file_bytes: 1 << 20, has_captions: true, ..by_numbers() };
        let (fake, mut posted) = Fake::new(limits);
        let subject = Subject { id: "job".to_owned(), channel: SMS.to_owned(), place: "+1".to_owned() };
        let chat = Arc::clone(&fake) as Arc<dyn Chat>;
        let mut poster = Poster::open(chat, store, subject, None).await.unwrap();
        let text: String = (0..100).map(|n| format!("word-{n} ")).collect();
        let answer = media::Answer { text, ..media::Answer::default() };
        fake.refuse_next();
        post(&mut poster, &answer, Long::File { over: 1 }, fake.limits()).await.unwrap();
        let mut all = String::new();
        while let Ok(post) = posted.try_recv() {
            assert!(post.files.is_empty());
            all.push_str(&post.text);
            all.push(' ');
        }
        assert!((0..100).all(|n| all.contains(&format!("word-{n} "))), "{all}");
        assert!(!all.contains("attached"), "{all}");
    }

    async fn what_was_asked_loses_its_buttons_also_where_its_file_is_not_taken(store: Store) {
        let limits = Limits {
            text: 400, files: 1, file_bytes: 1 << 20, has_captions: true, choices: Choices::Buttons,
            ..by_changes()
        };
        let (fake, _posted) = Fake::new(limits);
        let subject = Subject { id: "job".to_owned(), channel: SMS.to_owned(), place: "+1".to_owned() };
        let chat = Arc::clone(&fake) as Arc<dyn Chat>;
        let mut poster = Poster::open(chat, store, subject, None).await.unwrap();
        let command: String = (0..100).map(|n| format!("step-{n}; ")).collect();
        let asked = json!({
            "id": "prm_1", "request": "r1", "kind": "command", "tool": "Bash", "title": command,
            "input": { "command": command }, "options": ["allow", "deny"],
        });
        let draft = || {
            let mut draft = Draft::new(fake.limits(), Detail::Quiet);
            draft.event("permission", &asked);
            draft
        };
        fake.has_no_files.store(true, std::sync::atomic::Ordering::Relaxed);
        let mut shown = draft();
        assert!(shown.leave_files_out());
        poster.show(&shown.view()).await.unwrap();
        let has_buttons = || fake.there.lock().unwrap().iter().any(|(_, post)| !post.buttons.is_empty());
        assert!(has_buttons());
        // Whoever ends the answer does not know what was shown, and makes it anew.
        close(&mut poster, draft()).await.unwrap();
        assert!(!has_buttons(), "{:?}", fake.texts());
        assert!(fake.texts().last().unwrap().contains("No longer open"), "{:?}", fake.texts());
    }
}

#[test]
fn a_prefix_does_not_change_what_an_answer_begins_with() {
    assert_eq!(prefixed("🐴 ", "hello"), "🐴 hello");
    assert_eq!(prefixed("🐴 ", "```rust\nx\n```"), "🐴\n```rust\nx\n```");
    assert_eq!(prefixed("🐴 ", "- hay\n- oats"), "🐴\n- hay\n- oats");
    assert_eq!(prefixed("", "# Hay"), "# Hay");
}

//! What is found in the history, on both databases.

use clap::Parser;

use super::*;
use crate::store::{
    conversations::{self, Address},
    messages::{Direction, NewMessage},
    testing::on_both,
};

#[derive(Parser)]
struct Line {
    #[command(flatten)]
    args: HistoryArgs,
}

fn args(words: &[&str]) -> HistoryArgs {
    Line::try_parse_from([&["history"], words].concat()).unwrap().args
}

async fn add(store: &Store, address: &str, text: &str, at: i64) -> MessageId {
    let id = MessageId::new();
    store
        .must((id, address.to_owned(), text.to_owned()), move |conn, (id, address, text)| {
            Box::pin(async move {
                let place = Address::new("local", address).unwrap();
                let conversation = conversations::find_or_begin(conn, &place, Millis(at)).await?.id;
                let error = text.strip_prefix('!').map(|message| {
                    serde_json::json!({ "kind": "timeout", "message": message }).to_string()
                });
                let message = NewMessage {
                    id: *id,
                    conversation,
                    direction: Direction::In,
                    origin: "person",
                    place: &place,
                    sender: Some("ann"),
                    agent: None,
                    text: Some(text.as_str()).filter(|_| error.is_none()),
                    error: error.as_deref(),
                    job: None,
                    turn: None,
                    at: Millis(at),
                    dedupe: None,
                };
                messages::add(conn, &message).await
            })
        })
        .await;
    id
}

async fn show(store: &Store, words: &[&str]) -> Page {
    page(store, args(words), Millis(100_000)).await.unwrap()
}

async fn texts(store: &Store, words: &[&str]) -> String {
    let page = show(store, words).await;
    let texts = page.messages.iter().map(|row| row.text.clone().unwrap_or("-".to_owned()));
    texts.collect::<Vec<_>>().join(" ")
}

on_both! {
    async fn the_newest_conversation_is_shown_unless_another_or_all_are_named(store: Store) {
        assert_eq!(show(&store, &[]).await.text(), "no messages");
        add(&store, "a", "1", 1_000).await;
        add(&store, "b", "2", 2_000).await;
        add(&store, "a", "3", 3_000).await;
        assert_eq!(texts(&store, &[]).await, "1 3");
        assert_eq!(texts(&store, &["local:b"]).await, "2");
        assert_eq!(texts(&store, &["--all"]).await, "1 2 3");
        let id = show(&store, &[]).await.messages[0].conversation.to_string();
        assert_eq!(texts(&store, &[&id]).await, "1 3");
        let unknown = page(&store, args(&["local:c"]), Millis(0)).await.unwrap_err();
        assert!(matches!(unknown, Nothing::Conversation(_)));
        let id = MessageId::new().to_string();
        let unknown = page(&store, args(&["--after", &id]), Millis(0)).await.unwrap_err();
        assert!(matches!(unknown, Nothing::Message(_)));
    }

    async fn a_message_to_begin_beside_says_which_conversation_is_meant(store: Store) {
        // The newest message is of another, in which the numbers are others.
        let first = add(&store, "a", "1", 1_000).await.to_string();
        for (address, text) in [("a", "2"), ("a", "3"), ("b", "4"), ("b", "5"), ("b", "6")] {
            add(&store, address, text, 2_000).await;
        }
        assert_eq!(texts(&store, &["--after", &first]).await, "2 3");
        assert_eq!(texts(&store, &["--before", &first]).await, "");
        assert_eq!(texts(&store, &["local:a", "--after", &first]).await, "2 3");
        assert_eq!(texts(&store, &["--all", "--after", &first]).await, "2 3 4 5 6");
        for step in ["--after", "--before"] {
            let elsewhere = page(&store, args(&["local:b", step, &first]), Millis(0)).await;
            assert!(matches!(elsewhere, Err(Nothing::Elsewhere(..))));
        }
    }

    async fn pages_lead_to_each_other_in_both_directions(store: Store) {
        for number in 0..450 {
            add(&store, if number % 3 == 0 { "b" } else { "a" }, &number.to_string(), number).await;
        }
        for whose in [&["local:a"][..], &["--all"]] {
            let wanted = (0..450).filter(|number| whose == ["--all"] || number % 3 != 0);
            let wanted: Vec<String> = wanted.map(|number| number.to_string()).collect();
            for (step, is_forward) in [("--after", true), ("--before", false)] {
                let mut read: Vec<String> = Vec::new();
                let mut from = if is_forward { vec!["--since".to_owned(), "1970-01-01".to_owned()] } else { vec![] };
                loop {
                    let mut words = [whose, &["--limit", "70"]].concat();
                    words.extend(from.iter().map(String::as_str));
                    let page = show(&store, &words).await;
                    let texts = page.messages.into_iter().filter_map(|row| row.text);
                    let next = if is_forward {
                        read.extend(texts);
                        assert_eq!(page.previous, None);
                        page.next
                    } else {
                        read.splice(0..0, texts);
                        assert_eq!(page.next, None);
                        page.previous
                    };
                    let Some(next) = next else { break };
                    from = vec![step.to_owned(), next.to_string()];
                }
                assert_eq!(read, wanted, "{whose:?} {step}");
            }
        }
    }

    async fn messages_are_found_by_time_and_words_whatever_their_case(store: Store) {
        add(&store, "a", "Straße gesperrt", 1_000).await;
        add(&store, "a", "100% of_it \\ done", 40_000).await;
        add(&store, "a", "!ÜBERALL zu lang", 60_000).await;
        assert_eq!(texts(&store, &["--search", "GESPERRT strasse"]).await, "");
        assert_eq!(texts(&store, &["--search", "gesperrt STRAßE"]).await, "Straße gesperrt");
        assert_eq!(texts(&store, &["--search", "überall"]).await, "-");
        for literal in ["100%", "f_i", "\\", "-", "%"] {
            let found = texts(&store, &["--search", literal]).await;
            assert_eq!(found.is_empty(), literal == "-", "{literal}");
        }
        assert_eq!(texts(&store, &["--since", "70s"]).await, "100% of_it \\ done -");
        assert_eq!(texts(&store, &["--since", "1970-01-01", "--until", "50s"]).await, "Straße gesperrt 100% of_it \\ done");
        assert_eq!(texts(&store, &["--until", "1970-01-01T00:00:01Z"]).await, "");
    }

    async fn what_was_said_cannot_look_like_another_message(store: Store) {
        let forged = "yes\n1970-01-01T00:00:02.000Z  local:a  bob\n    no\u{1b}[2J";
        add(&store, "a", forged, 1_000).await;
        let text = show(&store, &[]).await.text();
        let heads: Vec<_> = text.lines().filter(|line| !line.starts_with(' ')).collect();
        assert_eq!(heads, ["1970-01-01T00:00:01.000Z  local:a  ann"], "{text}");
        assert!(!text.contains('\u{1b}'));
        add(&store, "a", "!too long", 2_000).await;
        let page = show(&store, &[]).await;
        assert!(page.text().contains("ann  timeout\n    too long"), "{}", page.text());
        assert_eq!(page.messages[1].error.as_ref().unwrap()["kind"], "timeout");
    }
}

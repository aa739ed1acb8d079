//! What Discord gets to read.

use proptest::prelude::*;
use serde_json::{json, to_value};

use super::*;

fn button(id: &str, look: Look) -> Button {
    Button { id: id.to_owned(), label: id.to_uppercase(), look }
}

#[test]
fn a_message_calls_nobody_and_is_the_same_message_when_sent_again() {
    let post = Post { text: "@everyone".to_owned(), ..Post::default() };
    let posting = Posting { post: &post, nonce: "answer:1", answers: Some("100") };
    let expected = json!({
        "content": "@everyone",
        "allowed_mentions": {"parse": [], "replied_user": true},
        "components": [], "attachments": [],
        "nonce": nonce("answer:1"), "enforce_nonce": true,
        "message_reference": {"message_id": "100", "fail_if_not_exists": false},
    });
    assert_eq!(to_value(posted(&posting, &[])).unwrap(), expected);
}

#[test]
fn a_change_says_which_files_and_buttons_are_left() {
    let mut post = Post { text: "done".to_owned(), ..Post::default() };
    let mentions = json!({"parse": [], "replied_user": true});
    let expected = json!({"content": "done", "components": [], "attachments": [],
        "allowed_mentions": mentions});
    assert_eq!(to_value(edited(&post, &[])).unwrap(), expected);
    post.buttons = vec![button("a", Look::Good), button("b", Look::Bad)];
    let names = ["x.txt".to_owned()];
    let changed = to_value(edited(&post, &names)).unwrap();
    assert_eq!(changed["attachments"], json!([{"id": 0, "filename": "x.txt"}]));
    let buttons = json!([
        {"type": 2, "style": 3, "label": "A", "custom_id": "a"},
        {"type": 2, "style": 4, "label": "B", "custom_id": "b"},
    ]);
    assert_eq!(changed["components"], json!([{"type": 1, "components": buttons}]));
}

#[test]
fn five_buttons_stand_in_a_row() {
    let buttons = (0..12).map(|n| button(&format!("b{n}"), Look::Plain)).collect();
    let post = Post { buttons, ..Post::default() };
    let rows = to_value(edited(&post, &[])).unwrap();
    let lengths: Vec<usize> = rows["components"]
        .as_array()
        .unwrap()
        .iter()
        .map(|row| row["components"].as_array().unwrap().len())
        .collect();
    assert_eq!(lengths, [5, 5, 2]);
}

#[test]
fn answers_are_said_now_later_not_at_all_or_asked_for() {
    let say = Response::Say { text: "hi".to_owned(), is_private: true };
    let expected = json!({"type": 4, "data": {"content": "hi", "flags": 64,
        "allowed_mentions": {"parse": [], "replied_user": true}}});
    assert_eq!(first(&say), expected);
    let later = Response::Later { is_private: false };
    assert_eq!(first(&later), json!({"type": 5, "data": {"flags": 0}}));
    assert_eq!(first(&Response::Nothing), json!({"type": 6}));
    let ask = Response::Ask {
        id: "deny:1".to_owned(),
        title: "t".repeat(60),
        label: "Why not?".to_owned(),
    };
    let input = json!({"type": 4, "style": 2, "label": "Why not?", "custom_id": "text",
        "required": true, "max_length": 4000});
    let expected = json!({"type": 9, "data": {"custom_id": "deny:1", "title": "t".repeat(45),
        "components": [{"type": 1, "components": [input]}]}});
    assert_eq!(first(&ask), expected);
}

proptest! {
    #[test]
    fn a_nonce_is_of_its_length_and_letters(one in any::<String>(), two in any::<String>()) {
        let short = nonce(&one);
        prop_assert_eq!(short.len(), NONCE);
        prop_assert!(short.chars().all(|c| c.is_ascii_alphanumeric() || c == '-' || c == '_'));
        prop_assert_eq!(nonce(&two) == short, one == two);
    }
}

use std::time::Duration;

use proptest::{collection::vec, option, prelude::*};

use super::{
    super::{Choices, markup::Markup, measure::Measure},
    *,
};

const APART: u64 = 1_000;

fn limits(edits: Option<u64>) -> Limits {
    Limits {
        text: 2000,
        edits: edits.map(Duration::from_millis),
        typing: None,
        buttons: 5,
        label: 80,
        files: 10,
        file_bytes: 1 << 20,
        image_bytes: u64::MAX,
        together_bytes: u64::MAX,
        kinds: None,
        measure: Measure::Characters,
        has_captions: true,
        choices: Choices::Buttons,
        markup: Markup::Discord,
        known_again: Some(Duration::from_secs(60)),
    }
}

fn post(text: &str) -> Post {
    Post { text: text.to_owned(), ..Post::default() }
}

fn any_slot() -> impl Strategy<Value = Slot> {
    prop_oneof![
        3 => (0u32..5).prop_map(Slot::Text),
        1 => "[ab]".prop_map(Slot::Asked),
    ]
}

fn any_posts() -> impl Strategy<Value = Vec<(Slot, Post)>> {
    vec((any_slot(), "[xy]{1,2}"), 0..6).prop_map(|mut posts| {
        let mut seen = Vec::new();
        posts.retain(|(slot, _)| {
            !seen.contains(slot) && {
                seen.push(slot.clone());
                true
            }
        });
        posts.into_iter().map(|(slot, text)| (slot, post(&text))).collect()
    })
}

fn any_posted() -> impl Strategy<Value = Vec<Posted>> {
    let rest = vec((option::of("[xy]{1,2}"), 0u64..3 * APART), 6);
    (any_posts(), rest).prop_map(|(posts, rest)| {
        let all = posts.into_iter().zip(rest).enumerate();
        all.map(|(index, ((slot, _), (shown, changed_at)))| Posted {
            slot,
            message: format!("m{index}"),
            shown: shown.as_deref().map(post),
            changed_at,
        })
        .collect()
    })
}

/// Does in a model what a chat would do.
fn apply(chat: &mut Vec<Posted>, plan: &Plan, now: u64) {
    for operation in &plan.operations {
        match operation.clone() {
            Operation::Send { slot, post } => {
                assert!(chat.iter().all(|at| at.slot != slot), "sent twice: {slot:?}");
                let message = format!("n{}-{now}", chat.len());
                chat.push(Posted { slot, message, shown: Some(post), changed_at: now });
            }
            Operation::Edit { slot, message, post } => {
                let at = chat.iter_mut().find(|at| at.message == message).unwrap();
                assert_eq!(at.slot, slot);
                (at.shown, at.changed_at) = (Some(post), now);
            }
            Operation::Delete { slot, message } => {
                assert!(matches!(slot, Slot::Text(_)));
                chat.retain(|at| at.message != message);
            }
        }
    }
}

/// What a chat shows, without requests that the view does not speak of.
fn shown(chat: &[Posted], view: &View) -> Vec<(Slot, Option<Post>)> {
    let is_meant = |at: &&Posted| {
        matches!(at.slot, Slot::Text(_)) || view.posts.iter().any(|(slot, _)| *slot == at.slot)
    };
    let mut shown: Vec<_> =
        chat.iter().filter(is_meant).map(|at| (at.slot.clone(), at.shown.clone())).collect();
    shown.sort_by(|a, b| a.0.cmp(&b.0));
    shown
}

fn wanted(view: &View) -> Vec<(Slot, Option<Post>)> {
    let mut wanted: Vec<_> =
        view.posts.iter().map(|(slot, post)| (slot.clone(), Some(post.clone()))).collect();
    wanted.sort_by(|a, b| a.0.cmp(&b.0));
    wanted
}

proptest! {
    #[test]
    fn a_chat_comes_to_show_the_view(
        mut chat in any_posted(), posts in any_posts(), is_final: bool, start in 0u64..4 * APART,
    ) {
        let (view, limits, mut now) = (View { posts, is_final }, limits(Some(APART)), start);
        for _ in 0..10 {
            let slots = chat.len() + view.posts.len();
            let plan = plan(&chat, &view, now, &limits);
            prop_assert!(plan.operations.len() <= slots);
            prop_assert!(!is_final || plan.again_at.is_none());
            apply(&mut chat, &plan, now);
            let second = super::plan(&chat, &view, now, &limits);
            prop_assert_eq!(second.operations, vec![]);
            let Some(again) = plan.again_at else { break };
            prop_assert!(again > now);
            now = again;
        }
        prop_assert_eq!(plan(&chat, &view, now, &limits), Plan::default());
        if is_final {
            prop_assert_eq!(shown(&chat, &view), wanted(&view));
        } else {
            // What an earlier attempt left may still be there.
            let shown = shown(&chat, &view);
            prop_assert!(wanted(&view).iter().all(|post| shown.contains(post)));
        }
    }

    #[test]
    fn no_message_is_changed_twice_within_the_time_between_changes(
        mut chat in any_posted(), views in vec((any_posts(), 1u64..APART), 1..12),
    ) {
        let (limits, mut now) = (limits(Some(APART)), 3 * APART);
        for (posts, later) in views {
            let plan = plan(&chat, &View { posts, is_final: false }, now, &limits);
            for operation in &plan.operations {
                if let Operation::Edit { message, .. } = operation {
                    let at = chat.iter().find(|at| at.message == *message).unwrap();
                    prop_assert!(now - at.changed_at >= APART);
                }
            }
            apply(&mut chat, &plan, now);
            now += later;
        }
    }

    #[test]
    fn what_is_sent_is_sent_in_the_order_of_the_view(
        chat in any_posted(), posts in any_posts(), is_final: bool, edits in option::of(0u64..APART),
    ) {
        let view = View { posts, is_final };
        let plan = plan(&chat, &view, 0, &limits(edits));
        let place = |slot: &Slot| view.posts.iter().position(|(at, _)| at == slot);
        let sent: Vec<_> = plan.operations.iter().filter_map(|operation| match operation {
            Operation::Send { slot, .. } => Some(place(slot)),
            Operation::Edit { .. } | Operation::Delete { .. } => None,
        }).collect();
        prop_assert!(sent.is_sorted());
    }

    #[test]
    fn a_finished_turn_shows_its_pages_below_the_last_request(chat in any_posted(), count in 1usize..5) {
        let posts: Vec<Post> = (0..count).map(|page| post(&page.to_string())).collect();
        let view = finish(&chat, posts.clone(), &limits(Some(APART)));
        let mut after = chat;
        let plan = plan(&after, &view, 0, &limits(Some(APART)));
        apply(&mut after, &plan, 0);
        let asked = after.iter().rposition(|at| matches!(at.slot, Slot::Asked(_)));
        let below: Vec<_> = after[asked.map_or(0, |at| at + 1)..].iter().map(|at| at.shown.clone()).collect();
        prop_assert_eq!(below, posts.into_iter().map(Some).collect::<Vec<_>>());
        let texts = after.iter().filter(|at| matches!(at.slot, Slot::Text(_))).count();
        prop_assert_eq!(texts, count);
    }
}

#[test]
fn a_chat_that_cannot_change_messages_gets_requests_at_once_and_texts_at_the_end() {
    let posts = vec![(Slot::Text(0), post("t")), (Slot::Asked("prm_1".to_owned()), post("?"))];
    let mut view = View { posts, is_final: false };
    let early = plan(&[], &view, 0, &limits(None));
    assert_eq!(early.again_at, None);
    let asked = Slot::Asked("prm_1".to_owned());
    assert_eq!(early.operations, [Operation::Send { slot: asked, post: post("?") }]);
    let mut chat = Vec::new();
    apply(&mut chat, &early, 0);
    view.is_final = true;
    let late = plan(&chat, &view, 1, &limits(None));
    assert_eq!(late.operations, [Operation::Send { slot: Slot::Text(0), post: post("t") }]);
}

#[test]
fn a_page_that_is_missing_is_sent_and_no_other_where_nothing_can_be_changed() {
    let posted = |number| Posted {
        slot: Slot::Text(number),
        message: format!("m{number}"),
        shown: None,
        changed_at: 0,
    };
    let view =
        finish(&[posted(1), posted(2)], vec![post("a"), post("b"), post("c")], &limits(None));
    let plan = plan(&[posted(1), posted(2)], &view, 0, &limits(None));
    assert_eq!(plan.operations, [Operation::Send { slot: Slot::Text(0), post: post("a") }]);
}

#[test]
fn what_an_earlier_attempt_left_stays_until_there_is_something_for_it() {
    let left = |number| Posted {
        slot: Slot::Text(number),
        message: format!("m{number}"),
        shown: None,
        changed_at: 0,
    };
    let (posted, limits) = ([left(0), left(1)], limits(Some(APART)));
    let view = |posts: &[&str], is_final| {
        let posts = (0..).map(Slot::Text).zip(posts.iter().map(|text| post(text))).collect();
        View { posts, is_final }
    };
    assert_eq!(plan(&posted, &view(&[], false), APART, &limits), Plan::default());
    let said = plan(&posted, &view(&["a"], false), APART, &limits).operations;
    let edit = Operation::Edit { slot: Slot::Text(0), message: "m0".to_owned(), post: post("a") };
    assert_eq!(said, std::slice::from_ref(&edit));
    let over = plan(&posted, &view(&["a"], true), APART, &limits).operations;
    let delete = Operation::Delete { slot: Slot::Text(1), message: "m1".to_owned() };
    assert_eq!(over, [delete, edit]);
}

#[test]
fn a_change_that_comes_too_soon_waits() {
    let at = Posted {
        slot: Slot::Text(0),
        message: "m".to_owned(),
        shown: Some(post("a")),
        changed_at: 500,
    };
    let view = View { posts: vec![(Slot::Text(0), post("b"))], is_final: false };
    let held = plan(std::slice::from_ref(&at), &view, 900, &limits(Some(APART)));
    assert_eq!(held, Plan { operations: vec![], again_at: Some(1500) });
    let done = plan(&[at], &view, 1500, &limits(Some(APART)));
    assert_eq!((done.operations.len(), done.again_at), (1, None));
}

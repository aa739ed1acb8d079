//! Documents on one line, on several, and what only looks like one.

use proptest::prelude::*;
use serde_json::json;

use super::*;

fn read(lines: &[&[u8]]) -> Vec<Result<Value, Vec<u8>>> {
    let mut documents = Documents::default();
    let mut pieces = Vec::new();
    let mut take = |piece: Piece<'_>| {
        pieces.push(match piece {
            Piece::Document { value, .. } => Ok(value),
            Piece::Line(line) => Err(line.to_vec()),
        });
    };
    for line in lines {
        documents.push(line, &mut take);
    }
    documents.finish(take);
    pieces
}

fn read_text(text: &str) -> Vec<Result<Value, Vec<u8>>> {
    let lines: Vec<&[u8]> = text.lines().map(str::as_bytes).collect();
    read(&lines)
}

fn line(text: &str) -> Result<Value, Vec<u8>> {
    Err(text.as_bytes().to_vec())
}

#[test]
fn a_document_on_one_line_comes_at_once() {
    assert_eq!(read_text(r#"{"a":1}"#), [Ok(json!({"a": 1}))]);
    assert_eq!(read_text("[1]\n  {}\r"), [Ok(json!([1])), Ok(json!({}))]);
}

#[test]
fn a_pretty_printed_document_is_joined() {
    let value = json!([{"a": ["x{", "]\\\""], "b": {}}, {"c": null}]);
    let text = serde_json::to_string_pretty(&value).unwrap();
    assert_eq!(
        read_text(&format!("banner\n{text}\nbye")),
        [line("banner"), Ok(value), line("bye")]
    );
}

#[test]
fn blank_lines_inside_a_document_belong_to_it() {
    assert_eq!(read_text("{\n\n\"a\":1\n\n}"), [Ok(json!({"a": 1}))]);
}

#[test]
fn banners_that_look_like_the_start_of_a_document_are_plain_lines() {
    assert_eq!(
        read_text("[info] up\n{starting}\n{\"a\":1}"),
        [line("[info] up"), line("{starting}"), Ok(json!({"a": 1}))]
    );
}

#[test]
fn a_lone_bracket_does_not_hold_back_the_lines_after_it() {
    assert_eq!(read_text("{\n{\"a\":1}"), [line("{"), Ok(json!({"a": 1}))]);
    let mut documents = Documents::default();
    let mut n_seen = 0;
    for text in ["[", "{\"a\":1}", "{\"b\":2}"] {
        documents.push(text.as_bytes(), |_| n_seen += 1);
    }
    assert_eq!(n_seen, 3);
}

#[test]
fn a_line_that_breaks_off_inside_a_string_is_a_plain_line() {
    let text = "{\"type\":\"assist";
    assert_eq!(read_text(&format!("{text}\n{{\"a\":1}}")), [line(text), Ok(json!({"a": 1}))]);
}

#[test]
fn an_unfinished_document_is_given_back_line_by_line() {
    assert_eq!(read_text("{\n\"a\":1,"), [line("{"), line("\"a\":1,")]);
}

#[test]
fn a_document_that_never_ends_is_given_up_at_the_limit() {
    let element = vec![b' '; 1024 * 1024];
    let mut documents = Documents::default();
    let mut n_lines = 0;
    documents.push(b"[", |_| n_lines += 1);
    for _ in 0..20 {
        documents.push(&element, |_| n_lines += 1);
        assert!(documents.buffer.len() <= MAX_BUFFERED_BYTES);
    }
    documents.finish(|_| n_lines += 1);
    assert_eq!(n_lines, 21);
}

#[test]
fn half_an_emoji_does_not_cost_the_document() {
    assert_eq!(
        read_text(r#"{"a":"x\ud83d","b":"\ud83e\udd80","c":"\\ud83d","d":"\udd80"}"#),
        [Ok(json!({"a": "x\u{fffd}", "b": "🦀", "c": "\\ud83d", "d": "\u{fffd}"}))]
    );
    assert_eq!(read(&[b"{\"a\":\"\xff\"}"]), [Ok(json!({"a": "\u{fffd}"}))]);
}

#[test]
fn hostile_nesting_costs_linear_time() {
    let mut documents = Documents::default();
    let mut n_lines = 0;
    documents.push(b"[", |_| n_lines += 1);
    for _ in 0..400_000 {
        documents.push(b"{}", |_| n_lines += 1);
        documents.push(b",", |_| n_lines += 1);
    }
    documents.finish(|_| n_lines += 1);
    assert_eq!(n_lines, 800_001);
}

proptest! {
    #[test]
    fn no_line_is_lost_and_none_is_made_up(
        lines in prop::collection::vec(
            prop_oneof![
                "[\\[\\]{}:,\"a1\\\\ ]{0,6}",
                Just("{".to_owned()), Just("}".to_owned()),
                Just("[".to_owned()), Just("]".to_owned()),
                Just("\"a\":1".to_owned()), Just("{\"a\":1}".to_owned()),
            ],
            0..12,
        )
    ) {
        let mut documents = Documents::default();
        let mut seen = Vec::new();
        let mut take = |piece: Piece<'_>| {
            let (Piece::Document { raw, .. } | Piece::Line(raw)) = piece;
            seen.extend(raw.split(|byte| *byte == b'\n').map(<[u8]>::to_vec));
        };
        for line in &lines {
            documents.push(line.as_bytes(), &mut take);
        }
        documents.finish(take);
        let given: Vec<_> = lines.iter().map(|line| line.as_bytes().trim_ascii_end().to_vec()).collect();
        let seen: Vec<_> = seen.iter().map(|line| line.trim_ascii_end().to_vec()).collect();
        prop_assert_eq!(seen, given);
    }

    #[test]
    fn any_bytes_are_taken(lines in prop::collection::vec(any::<Vec<u8>>(), 0..8)) {
        let lines: Vec<&[u8]> = lines.iter().map(Vec::as_slice).collect();
        read(&lines);
    }

    #[test]
    fn any_document_is_found_again_in_every_layout(
        keys in prop::collection::vec(any::<String>(), 1..6)
    ) {
        let value: Value = keys.iter().map(|key| (key.clone(), json!([key, {"k": key}]))).collect();
        let pretty = serde_json::to_string_pretty(&value).unwrap();
        let lines: Vec<&[u8]> = pretty.split('\n').map(str::as_bytes).collect();
        prop_assert_eq!(read(&lines), [Ok(value.clone())]);
        prop_assert_eq!(read(&[value.to_string().as_bytes()]), [Ok(value)]);
    }
}

//! What is sent to Discord, as JSON: messages, and answers to buttons and commands.
//! Pure.

use serde::Serialize;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use super::interact::Response;
use crate::channel::chat::{Button, Look, Post, Posting};

/// How many buttons stand in a row.
const ROW: usize = 5;
/// The longest title of a form, and the longest label in one, in characters.
const FORM: usize = 45;
/// The longest text that can be typed into a form, in characters.
const TYPED: u16 = 4000;
/// The length of a nonce, in characters.
const NONCE: usize = 25;
/// What a message for one person only is marked with.
const PRIVATE: u32 = 1 << 6;

/// A message.
#[derive(Debug, Serialize)]
pub(super) struct Message<'a> {
    content: &'a str,
    allowed_mentions: Mentions,
    components: Vec<Value>,
    /// A change keeps none that is not in here.
    attachments: Vec<Listed<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    nonce: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    enforce_nonce: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    message_reference: Option<Reference<'a>>,
}

/// Who is called by a message: never more than whom it answers, whatever its text
/// says.
#[derive(Debug, Serialize)]
struct Mentions {
    parse: [&'static str; 0],
    replied_user: bool,
}

const NOBODY: Mentions = Mentions { parse: [], replied_user: true };

#[derive(Debug, Serialize)]
struct Reference<'a> {
    message_id: &'a str,
    fail_if_not_exists: bool,
}

#[derive(Debug, Serialize)]
struct Listed<'a> {
    id: usize,
    filename: &'a str,
}

/// Makes a new message, with files of these names.
pub(super) fn posted<'a>(posting: &Posting<'a>, names: &'a [String]) -> Message<'a> {
    // Who writes from elsewhere may call a message what he likes.
    let is_id = |id: &&str| id.parse::<u64>().is_ok_and(|id| id != 0);
    Message {
        nonce: Some(nonce(posting.nonce)),
        enforce_nonce: Some(true),
        message_reference: posting
            .answers
            .filter(is_id)
            .map(|message_id| Reference { message_id, fail_if_not_exists: false }),
        ..edited(posting.post, names)
    }
}

/// Makes what a message becomes, with files of these names.
pub(super) fn edited<'a>(post: &'a Post, names: &'a [String]) -> Message<'a> {
    let listed = names.iter().enumerate().map(|(id, filename)| Listed { id, filename });
    Message {
        content: &post.text,
        allowed_mentions: NOBODY,
        components: post.buttons.chunks(ROW).map(row).collect(),
        attachments: listed.collect(),
        nonce: None,
        enforce_nonce: None,
        message_reference: None,
    }
}

fn row(buttons: &[Button]) -> Value {
    let button = |Button { id, label, look }: &Button| {
        let style = match look {
            Look::Plain => 2,
            Look::Good => 3,
            Look::Bad => 4,
        };
        json!({"type": 2, "style": style, "label": label, "custom_id": id})
    };
    let buttons: Vec<Value> = buttons.iter().map(button).collect();
    json!({"type": 1, "components": buttons})
}

/// Makes a nonce of Discord's length of a longer one.
pub(super) fn nonce(text: &str) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    let hash = Sha256::digest(text.as_bytes());
    let letter = |byte: &u8| LETTERS.get(usize::from(*byte % 64)).copied().map(char::from);
    hash.iter().take(NONCE).filter_map(letter).collect()
}

/// A text that answers a button or a command.
#[derive(Debug, Serialize)]
pub(super) struct Said<'a> {
    content: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    flags: Option<u32>,
    allowed_mentions: Mentions,
}

pub(super) fn said(text: &str) -> Said<'_> {
    Said { content: text, flags: None, allowed_mentions: NOBODY }
}

/// Makes a text that only one person sees.
pub(super) fn whispered(text: &str) -> Said<'_> {
    Said { flags: Some(PRIVATE), ..said(text) }
}

/// Makes the first answer to a button or a command.
pub(super) fn first(response: &Response) -> Value {
    let cut = |text: &str| text.chars().take(FORM).collect::<String>();
    match response {
        Response::Say { text, is_private: false } => json!({"type": 4, "data": said(text)}),
        Response::Say { text, is_private: true } => json!({"type": 4, "data": whispered(text)}),
        Response::Later { is_private } => {
            json!({"type": 5, "data": {"flags": if *is_private { PRIVATE } else { 0 }}})
        }
        Response::Nothing => json!({"type": 6}),
        Response::Ask { id, title, label } => {
            let input = json!({
                "type": 4, "style": 2, "label": cut(label), "custom_id": "text",
                "required": true, "max_length": TYPED,
            });
            let row = json!({"type": 1, "components": [input]});
            json!({"type": 9, "data": {"custom_id": id, "title": cut(title), "components": [row]}})
        }
    }
}

#[cfg(test)]
mod tests;

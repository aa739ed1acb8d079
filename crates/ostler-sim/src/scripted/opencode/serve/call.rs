//! One call as the server reads it, and the forms of its answers.

use std::path::PathBuf;

use axum::body::{Bytes, to_bytes};
use axum::extract::Request;
use axum::http::{Method, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};

use super::super::super::Error;

const MAX_BODY: usize = 64 * 1024 * 1024;

/// A call.
pub(super) struct Call {
    pub(super) method: Method,
    /// The words of its path.
    pub(super) path: Vec<String>,
    query: String,
    /// As whom it is made.
    pub(super) login: Option<String>,
    body: Bytes,
}

impl Call {
    pub(super) async fn read(request: Request) -> Option<Self> {
        let (head, body) = request.into_parts();
        let login = head.headers.get(header::AUTHORIZATION);
        let words = head.uri.path().split('/').filter(|word| !word.is_empty());
        Some(Self {
            method: head.method,
            path: words.map(decoded).collect(),
            query: head.uri.query().unwrap_or_default().to_owned(),
            login: login.and_then(|login| login.to_str().ok()).map(str::to_owned),
            body: to_bytes(body, MAX_BODY).await.ok()?,
        })
    }

    pub(super) fn query(&self, name: &str) -> Option<String> {
        let pairs = self.query.split('&').filter_map(|pair| pair.split_once('='));
        pairs.filter(|(key, _)| *key == name).map(|(_, value)| decoded(value)).next()
    }

    /// Where the call works.
    pub(super) fn directory(&self) -> Result<PathBuf, Error> {
        match self.query("directory") {
            Some(directory) => Ok(PathBuf::from(directory)),
            None => std::env::current_dir().map_err(Error::io("no working directory")),
        }
    }

    /// The body, which is empty or JSON.
    pub(super) fn json(&self) -> Option<Value> {
        if self.body.is_empty() { Some(json!({})) } else { serde_json::from_slice(&self.body).ok() }
    }
}

/// The header of somebody's name and password.
pub(super) fn basic(user: &str, password: &str) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = "Basic ".to_owned();
    for three in format!("{user}:{password}").as_bytes().chunks(3) {
        let bits = three.iter().fold(0_usize, |bits, byte| bits << 8 | usize::from(*byte));
        let bits = bits << (8 * (3 - three.len()));
        for digit in 0..4 {
            let value = bits >> (18 - 6 * digit) & 63;
            let letter = DIGITS.get(value).filter(|_| digit <= three.len());
            text.push(char::from(*letter.unwrap_or(&b'=')));
        }
    }
    text
}

fn decoded(text: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = text.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        let digits = after.get(..2).filter(|_| *first == b'%');
        let digits = digits.and_then(|digits| std::str::from_utf8(digits).ok());
        match digits.and_then(|digits| u8::from_str_radix(digits, 16).ok()) {
            Some(byte) => {
                bytes.push(byte);
                rest = after.get(2..).unwrap_or_default();
            }
            None => {
                bytes.push(*first);
                rest = after;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

pub(super) fn answer(status: StatusCode, value: &Value) -> Response {
    (status, [(header::CONTENT_TYPE, "application/json")], value.to_string()).into_response()
}

pub(super) fn ok(value: &Value) -> Response {
    answer(StatusCode::OK, value)
}

pub(super) fn not_found(name: &str, text: &str) -> Response {
    let error = json!({ "name": name, "data": { "message": text } });
    answer(StatusCode::NOT_FOUND, &error)
}

/// The answer of a prompt that is to fail with this status.
pub(super) fn refusal(status: u16) -> Response {
    let code = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    match status {
        400 => missing("parts"),
        401 => unauthenticated(),
        404 => not_found("NotFoundError", "Session not found: as the prompt asked"),
        500 => broken(),
        _ => (code, "as the prompt asked").into_response(),
    }
}

pub(super) fn missing(key: &str) -> Response {
    let text = format!("Missing key\n  at [\"{key}\"]");
    let error = json!({ "name": "BadRequest", "data": { "message": text, "kind": "Payload" } });
    answer(StatusCode::BAD_REQUEST, &error)
}

/// Whatever cannot be read is the server's own error.
pub(super) fn broken() -> Response {
    let text = "Unexpected server error. Check server logs for details.";
    let error =
        json!({ "name": "UnknownError", "data": { "message": text, "ref": "err_scripted" } });
    answer(StatusCode::INTERNAL_SERVER_ERROR, &error)
}

pub(super) fn unauthenticated() -> Response {
    (StatusCode::UNAUTHORIZED, [(header::WWW_AUTHENTICATE, "Basic realm=\"opencode\"")])
        .into_response()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_login_is_written_as_the_standard_has_it() {
        assert_eq!(basic("Aladdin", "open sesame"), "Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==");
        assert_eq!(basic("a", "b"), "Basic YTpi");
        assert_eq!(basic("ab", "c"), "Basic YWI6Yw==");
    }

    #[test]
    fn escaped_words_are_read() {
        assert_eq!(decoded("%2Fa%20b%2fä%"), "/a b/ä%");
    }
}

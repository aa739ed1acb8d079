//! One end of a JSON-RPC 2.0 connection with one message a line.
//!
//! Encodes what we say, tells apart what we hear, and remembers for each of our
//! requests what it was about. Knows no method and does no I/O. Both ends ask:
//! ids are only unique among the requests of one end.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

/// The code of an error reply to a method that is not known.
pub(crate) const METHOD_NOT_FOUND: i64 = -32601;

/// Whether our messages name the protocol's version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// As the specification wants it: `"jsonrpc":"2.0"`.
    Marked,
    /// Without that field, which some servers leave out.
    Bare,
}

/// The other end's name for a request of its own: a number or a text.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct RequestId(Value);

impl RequestId {
    /// Takes what can name a request.
    pub(crate) fn of(value: &Value) -> Option<Self> {
        (value.is_number() || value.is_string()).then(|| Self(value.clone()))
    }

    /// Returns it as a text, different for different ids.
    pub(crate) fn text(&self) -> String {
        self.0.to_string()
    }
}

/// What the other end did not do, and why.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct RpcError {
    /// The number of the kind of error.
    pub(crate) code: i64,
    /// In the other end's words.
    pub(crate) message: String,
    /// What it adds to them.
    pub(crate) data: Option<Value>,
}

/// One message of the other end. `T` is what a request of ours was about.
#[derive(Debug, PartialEq)]
pub(crate) enum Incoming<T> {
    /// Something is wanted and has to be answered.
    Request {
        /// What to answer to.
        id: RequestId,
        /// What is wanted.
        method: String,
        /// With what.
        params: Map<String, Value>,
    },
    /// Something happened.
    Notification {
        /// What.
        method: String,
        /// With what.
        params: Map<String, Value>,
    },
    /// The answer to a request of ours.
    Reply {
        /// What the request was about.
        call: T,
        /// The answer, or why there is none.
        result: Result<Value, RpcError>,
    },
    /// An answer to a request that nobody made, or not twice.
    Stray,
    /// Not a message.
    Unreadable,
}

/// One end of a connection.
#[derive(Debug)]
pub(crate) struct Peer<T> {
    form: Form,
    last_id: u64,
    pending: BTreeMap<u64, T>,
}

impl<T> Peer<T> {
    /// Nothing was asked yet.
    pub(crate) fn new(form: Form) -> Self {
        Self { form, last_id: 0, pending: BTreeMap::new() }
    }

    /// Encodes a request and remembers what it is about.
    pub(crate) fn request(&mut self, call: T, method: &str, params: Value) -> Vec<u8> {
        self.last_id += 1;
        self.pending.insert(self.last_id, call);
        self.line([("id", self.last_id.into()), ("method", method.into()), ("params", params)])
    }

    /// Encodes a message that wants no answer.
    pub(crate) fn notification(&self, method: &str) -> Vec<u8> {
        self.line([("method", method.into())])
    }

    /// Encodes a message with parameters that wants no answer.
    pub(crate) fn notification_of(&self, method: &str, params: Value) -> Vec<u8> {
        self.line([("method", method.into()), ("params", params)])
    }

    /// Encodes the answer to a request of the other end.
    pub(crate) fn reply(&self, id: &RequestId, result: Value) -> Vec<u8> {
        self.line([("id", id.0.clone()), ("result", result)])
    }

    /// Encodes that a request of the other end is not answered, and why.
    pub(crate) fn refuse(&self, id: &RequestId, code: i64, message: &str) -> Vec<u8> {
        let error = serde_json::json!({ "code": code, "message": message });
        self.line([("id", id.0.clone()), ("error", error)])
    }

    /// Tells apart what the other end said. Each reply is taken once.
    pub(crate) fn read(&mut self, line: &[u8]) -> Incoming<T> {
        let Ok(Value::Object(mut fields)) = serde_json::from_slice(line) else {
            return Incoming::Unreadable;
        };
        let method = match fields.remove("method") {
            Some(Value::String(method)) => Some(method),
            Some(_) => return Incoming::Unreadable,
            None => None,
        };
        let id = fields.remove("id").filter(|id| !id.is_null());
        match (method, id) {
            (Some(method), Some(id)) => match RequestId::of(&id) {
                Some(id) => Incoming::Request { id, method, params: params(fields) },
                None => Incoming::Unreadable,
            },
            (Some(method), None) => Incoming::Notification { method, params: params(fields) },
            (None, Some(id)) => self.reply_to(&id, fields),
            (None, None) => Incoming::Unreadable,
        }
    }

    fn reply_to(&mut self, id: &Value, mut fields: Map<String, Value>) -> Incoming<T> {
        let result = match (fields.remove("error").filter(|e| !e.is_null()), fields) {
            (Some(error), _) => Err(RpcError::of(&error)),
            (None, mut fields) => match fields.remove("result") {
                Some(result) => Ok(result),
                None => return Incoming::Unreadable,
            },
        };
        match id.as_u64().and_then(|id| self.pending.remove(&id)) {
            Some(call) => Incoming::Reply { call, result },
            None => Incoming::Stray,
        }
    }

    fn line<const N: usize>(&self, fields: [(&str, Value); N]) -> Vec<u8> {
        let version = (self.form == Form::Marked).then(|| ("jsonrpc", Value::from("2.0")));
        let fields = version.into_iter().chain(fields);
        let message: Map<String, Value> =
            fields.map(|(name, value)| (name.to_owned(), value)).collect();
        let mut line = Value::Object(message).to_string().into_bytes();
        line.push(b'\n');
        line
    }
}

impl RpcError {
    fn of(error: &Value) -> Self {
        let message = error.get("message").unwrap_or(error);
        Self {
            code: error.get("code").and_then(Value::as_i64).unwrap_or(0),
            message: message.as_str().map_or_else(|| message.to_string(), str::to_owned),
            data: error.get("data").filter(|data| !data.is_null()).cloned(),
        }
    }
}

/// Parameters by name. Those by position have no names, so there are none.
fn params(mut fields: Map<String, Value>) -> Map<String, Value> {
    match fields.remove("params") {
        Some(Value::Object(params)) => params,
        _ => Map::new(),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn decoded(line: &[u8]) -> Value {
        let (end, line) = line.split_last().unwrap();
        assert_eq!(*end, b'\n');
        assert!(!line.contains(&b'\n'), "one message is one line");
        serde_json::from_slice(line).unwrap()
    }

    #[test]
    fn the_version_is_named_where_the_form_wants_it() {
        let mut bare = Peer::new(Form::Bare);
        let mut marked = Peer::new(Form::Marked);
        let params = json!({ "text": "two\nlines" });
        assert_eq!(
            decoded(&bare.request("greeting", "greet", params.clone())),
            json!({ "id": 1, "method": "greet", "params": params })
        );
        assert_eq!(
            decoded(&marked.request("greeting", "greet", params.clone())),
            json!({ "jsonrpc": "2.0", "id": 1, "method": "greet", "params": params })
        );
        assert_eq!(decoded(&bare.notification("ready")), json!({ "method": "ready" }));
    }

    #[test]
    fn a_request_of_theirs_with_the_id_of_ours_is_not_a_reply() {
        let mut peer = Peer::new(Form::Bare);
        peer.request("ours", "greet", json!({}));
        let theirs = peer.read(br#"{"id":1,"method":"allow?","params":{"what":"all"}}"#);
        let Incoming::Request { id, method, params } = theirs else { panic!("{theirs:?}") };
        assert_eq!((method.as_str(), &params["what"]), ("allow?", &json!("all")));
        assert_eq!(decoded(&peer.reply(&id, json!("yes"))), json!({ "id": 1, "result": "yes" }));
        assert_eq!(
            peer.read(br#"{"id":1,"result":null}"#),
            Incoming::Reply { call: "ours", result: Ok(Value::Null) }
        );
    }

    #[test]
    fn a_reply_is_taken_once_and_strangers_are_told_apart() {
        let mut peer = Peer::new(Form::Marked);
        peer.request("first", "a", json!({}));
        peer.request("second", "b", json!({}));
        let error = RpcError { code: -32600, message: "no".to_owned(), data: None };
        let refused = br#"{"jsonrpc":"2.0","error":{"code":-32600,"message":"no"},"id":2}"#;
        assert_eq!(peer.read(refused), Incoming::Reply { call: "second", result: Err(error) });
        assert_eq!(peer.read(refused), Incoming::Stray);
        assert_eq!(peer.read(br#"{"id":"1","result":1}"#), Incoming::Stray);
        assert_eq!(
            peer.read(br#"{"id":1,"result":1}"#),
            Incoming::Reply { call: "first", result: Ok(json!(1)) }
        );
    }

    #[test]
    fn a_message_with_an_id_of_null_is_a_notification() {
        let mut peer: Peer<()> = Peer::new(Form::Bare);
        let heard = peer.read(br#"{"id":null,"method":"happened","params":[1]}"#);
        let params = Map::new();
        assert_eq!(heard, Incoming::Notification { method: "happened".to_owned(), params });
    }

    #[test]
    fn what_is_no_message_is_unreadable() {
        let mut peer: Peer<()> = Peer::new(Form::Bare);
        for line in ["", "x", "[]", "{}", r#"{"id":1}"#, r#"{"method":1}"#, r#"{"result":1}"#] {
            assert_eq!(peer.read(line.as_bytes()), Incoming::Unreadable, "{line}");
        }
        assert_eq!(peer.read(br#"{"id":true,"method":"a"}"#), Incoming::Unreadable);
    }

    #[test]
    fn an_error_without_words_is_told_as_it_came() {
        let mut peer = Peer::new(Form::Bare);
        peer.request((), "a", json!({}));
        let heard = peer.read(br#"{"id":1,"error":["odd"]}"#);
        let error = RpcError { code: 0, message: r#"["odd"]"#.to_owned(), data: None };
        assert_eq!(heard, Incoming::Reply { call: (), result: Err(error) });
    }

    proptest! {
        #[test]
        fn any_line_is_read(line in any::<Vec<u8>>(), id in any::<i64>()) {
            let mut peer: Peer<()> = Peer::new(Form::Bare);
            peer.read(&line);
            let line = format!(r#"{{"id":{id},"result":{{}}}}"#);
            prop_assert_eq!(peer.read(line.as_bytes()), Incoming::Stray);
        }

        #[test]
        fn any_text_arrives_in_one_line(text in any::<String>()) {
            let mut peer = Peer::new(Form::Bare);
            let line = peer.request((), "say", json!({ "text": text }));
            prop_assert_eq!(&decoded(&line)["params"]["text"], &json!(text));
        }
    }
}

//! The text of a file as a tree that still has what a map would lose: the order
//! of the keys, and keys that are there twice. And where in the text a node is.

use std::fmt;

use serde::{
    Deserialize, Deserializer,
    de::{DeserializeSeed, Error, IgnoredAny, MapAccess, SeqAccess, Visitor},
};
use serde_json::{Number, Value};

/// A part of a file.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Node {
    /// Anything that has no parts.
    Leaf(Value),
    /// A number that JSON has not, such as `Infinity`.
    NoNumber,
    List(Vec<Node>),
    Map(Vec<(String, Node)>),
}

impl Node {
    /// Returns the value. Of keys that are there twice the last one counts.
    pub(super) fn value(&self) -> Value {
        match self {
            Self::Leaf(value) => value.clone(),
            Self::NoNumber => Value::Null,
            Self::List(items) => items.iter().map(Self::value).collect(),
            Self::Map(entries) => Value::Object(
                entries.iter().map(|(key, node)| (key.clone(), node.value())).collect(),
            ),
        }
    }

    /// Returns what an error calls it. Not its content, which may be a secret.
    pub(super) fn noun(&self) -> &'static str {
        match self {
            Self::Leaf(value) => noun(value),
            Self::NoNumber => "no finite number",
            Self::List(_) => "a list",
            Self::Map(_) => "an object",
        }
    }
}

/// Returns what an error calls a value.
pub(super) fn noun(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "true or false",
        Value::Number(number) if number.is_f64() => "a number with a fraction",
        Value::Number(_) => "a number",
        Value::String(_) => "a text",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}

impl<'de> Deserialize<'de> for Node {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Reader)
    }
}

struct Reader;

impl<'de> Visitor<'de> for Reader {
    type Value = Node;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_unit<E: Error>(self) -> Result<Node, E> {
        Ok(Node::Leaf(Value::Null))
    }

    fn visit_none<E: Error>(self) -> Result<Node, E> {
        self.visit_unit()
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<Node, E> {
        Ok(Node::Leaf(value.into()))
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<Node, E> {
        Ok(Node::Leaf(value.into()))
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<Node, E> {
        Ok(Node::Leaf(value.into()))
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Node, E> {
        let number = Number::from_f64(value);
        Ok(number.map_or(Node::NoNumber, |number| Node::Leaf(number.into())))
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<Node, E> {
        Ok(Node::Leaf(value.into()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Node, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = list.next_element()? {
            items.push(item);
        }
        Ok(Node::List(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Node, A::Error> {
        let mut entries = Vec::new();
        while let Some(entry) = map.next_entry()? {
            entries.push(entry);
        }
        Ok(Node::Map(entries))
    }
}

/// What of an entry is meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    Key,
    Value,
}

/// Finds where the node is that these numbers of entries lead to.
///
/// The reader tells places only with errors, so the text is read once more,
/// with an error where the node is.
pub(super) fn locate(text: &str, path: &[usize], part: Part) -> Option<json5::Position> {
    let mut reader = json5::Deserializer::from_str(text);
    Search { path, part }.deserialize(&mut reader).err()?.position()
}

#[derive(Clone, Copy)]
struct Search<'a> {
    path: &'a [usize],
    part: Part,
}

impl<'de> DeserializeSeed<'de> for Search<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        if self.path.is_empty() {
            return Stop.deserialize(deserializer);
        }
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Search<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("what was there before")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        let Some((number, path)) = self.path.split_first() else { return Ok(()) };
        for _ in 0..*number {
            list.next_element::<IgnoredAny>()?;
        }
        list.next_element_seed(Search { path, ..self }).map(drop)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let Some((number, path)) = self.path.split_first() else { return Ok(()) };
        for _ in 0..*number {
            map.next_entry::<IgnoredAny, IgnoredAny>()?;
        }
        if path.is_empty() && self.part == Part::Key {
            return map.next_key_seed(Stop).map(drop);
        }
        map.next_key::<IgnoredAny>()?;
        map.next_value_seed(Search { path, ..self })
    }
}

/// Takes nothing, so that whatever comes is an error with a place.
struct Stop;

impl<'de> DeserializeSeed<'de> for Stop {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl Visitor<'_> for Stop {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("nothing")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_that_are_there_twice_are_both_in_the_tree_in_their_order() {
        let node: Node = json5::from_str("{ b: 1, a: [true, null], b: 'x', c: Infinity }").unwrap();
        let Node::Map(entries) = &node else { panic!("{node:?}") };
        let keys: Vec<_> = entries.iter().map(|(key, _)| key.as_str()).collect();
        assert_eq!(keys, ["b", "a", "b", "c"]);
        assert_eq!(entries[3].1, Node::NoNumber);
        assert_eq!(node.value()["a"], serde_json::json!([true, null]));
    }

    #[test]
    fn a_node_is_found_where_it_is() {
        let text = "{\n  a: 1, // one\n  b: [ 2,\n    { c: 'x' } ],\n  b: null,\n}";
        let at = |path: &[usize], part| {
            locate(text, path, part).map(|at| (at.line + 1, at.column + 1)).unwrap()
        };
        assert_eq!(at(&[], Part::Value), (1, 1));
        assert_eq!(at(&[0], Part::Key), (2, 3));
        assert_eq!(at(&[0], Part::Value), (2, 6));
        assert_eq!(at(&[1, 1, 0], Part::Key), (4, 7));
        assert_eq!(at(&[1, 1, 0], Part::Value), (4, 10));
        assert_eq!(at(&[1, 1], Part::Value), (4, 5));
        assert_eq!(at(&[2], Part::Key), (5, 3));
        assert_eq!(at(&[2], Part::Value), (5, 6));
    }
}

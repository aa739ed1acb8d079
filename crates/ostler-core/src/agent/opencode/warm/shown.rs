//! What people see of a request for permission.

use serde_json::{Map, Value, json};

use super::call::Call;
use crate::{
    agent::opencode::tool::title_of,
    permission::{Permission, PermissionKind},
};

/// The kind of a request, by the permission that is asked for and by the tool
/// that needs it.
const KINDS: &[(&str, PermissionKind)] = &[
    ("bash", PermissionKind::Command),
    ("edit", PermissionKind::Edit),
    ("write", PermissionKind::Edit),
    ("multiedit", PermissionKind::Edit),
    ("patch", PermissionKind::Edit),
    ("apply_patch", PermissionKind::Edit),
    ("read", PermissionKind::Read),
    ("list", PermissionKind::Read),
    ("grep", PermissionKind::Read),
    ("glob", PermissionKind::Read),
    ("external_directory", PermissionKind::Read),
    ("webfetch", PermissionKind::Network),
    ("websearch", PermissionKind::Network),
    ("codesearch", PermissionKind::Network),
];

/// Makes the request that people see. The whole call is shown, whatever part of
/// it is asked about. Of a call that is not known, only what is asked is shown,
/// and whoever allows it for good allows no more than that.
pub(super) fn shown(request: &Map<String, Value>, call: Option<&Call>) -> Permission {
    let wanted = request.get("permission").and_then(Value::as_str).unwrap_or_default();
    let metadata = request.get("metadata").filter(|data| has_fields(data));
    let kind_of =
        |name: &str| KINDS.iter().find(|(known, _)| *known == name).map(|(_, kind)| *kind);
    let tool = call.map_or(wanted, |call| call.tool.as_str());
    let kind = kind_of(tool).or_else(|| kind_of(wanted)).unwrap_or(PermissionKind::Other);
    let patterns = request.get("patterns").and_then(Value::as_array).into_iter().flatten();
    let patterns: Vec<&str> = patterns.filter_map(Value::as_str).collect();
    let all = patterns.join(", ");
    let command = metadata.and_then(|data| data.get("command")).and_then(Value::as_str);
    let metadata_alone = || metadata.cloned().map(without_words).filter(has_fields);
    let input = call.and_then(|call| call.input.clone()).or_else(metadata_alone);
    let mut title = command.map_or_else(|| title_of(input.as_ref()), str::to_owned);
    if title.is_empty() {
        title = call.map(|call| call.title.clone()).unwrap_or_default();
    }
    if wanted == "external_directory" && command.is_none() && !patterns.is_empty() {
        let place = format!("outside of the directory: {all}");
        title = if title.is_empty() { place } else { format!("{title} ({place})") };
    }
    if title.is_empty() {
        title = if patterns.is_empty() { wanted.to_owned() } else { all };
    }
    let asked = || json!({ "permission": wanted, "patterns": patterns });
    let input = match input {
        Some(input) => Some(without_words(input)),
        None => (!patterns.is_empty()).then(asked),
    };
    Permission::new(kind, tool, title, input)
}

/// What the agent says about it is not part of what is allowed: its words differ
/// from time to time.
fn without_words(mut input: Value) -> Value {
    if let Value::Object(fields) = &mut input {
        fields.remove("description");
    }
    input
}

fn has_fields(value: &Value) -> bool {
    value.as_object().is_some_and(|fields| !fields.is_empty())
}

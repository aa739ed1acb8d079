//! Mentions: who is named in a text, and who would be rung.

use serde_json::Value;

use super::answer::Refusal;

/// Whom a text names.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Mentions {
    pub(super) users: Vec<u64>,
    pub(super) roles: Vec<u64>,
    pub(super) everyone: bool,
}

impl Mentions {
    /// Reads a text. Code is not told apart, so that nothing hides in it.
    pub(super) fn read(text: &str) -> Self {
        let mut mentions = Self {
            everyone: text.contains("@everyone") || text.contains("@here"),
            ..Self::default()
        };
        for part in text.split("<@").skip(1) {
            let Some((inside, _)) = part.split_once('>') else { continue };
            let (list, digits) = match inside.strip_prefix('&') {
                Some(role) => (&mut mentions.roles, role),
                None => (&mut mentions.users, inside.strip_prefix('!').unwrap_or(inside)),
            };
            if let Ok(id) = digits.parse()
                && !list.contains(&id)
            {
                list.push(id);
            }
        }
        mentions
    }

    /// Leaves what a message permits; `default` is what one may that does not say.
    pub(super) fn permitted(mut self, allowed: Option<&Value>, default: &[&str]) -> Self {
        let allowed = allowed.filter(|allowed| !allowed.is_null());
        let parse = |kind: &str| match allowed {
            None => default.contains(&kind),
            Some(allowed) => {
                let kinds = allowed["parse"].as_array();
                kinds.is_some_and(|kinds| kinds.iter().any(|one| one == kind))
            }
        };
        let named = |field: &str, id: u64| {
            let ids = allowed.and_then(|allowed| allowed[field].as_array());
            let text = id.to_string();
            ids.is_some_and(|ids| ids.iter().any(|one| *one == text || *one == id))
        };
        self.everyone &= parse("everyone");
        self.users.retain(|user| parse("users") || named("users", *user));
        self.roles.retain(|role| parse("roles") || named("roles", *role));
        self
    }

    pub(super) fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// Says whether a reply rings the author of what it replies to.
pub(super) fn rings_replied(allowed: Option<&Value>) -> bool {
    match allowed.filter(|allowed| !allowed.is_null()) {
        // Discord's own default for a reply that says nothing is to ring.
        None => true,
        Some(allowed) => allowed["replied_user"] == true,
    }
}

/// Checks what a message says of the mentions that it permits.
pub(super) fn check(allowed: &Value) -> Result<(), Refusal> {
    let kinds = allowed["parse"].as_array();
    for (kind, field) in [("users", "users"), ("roles", "roles")] {
        let parsed = kinds.is_some_and(|kinds| kinds.iter().any(|one| one == kind));
        let ids = allowed[field].as_array().map_or(0, Vec::len);
        if parsed && ids > 0 {
            let message =
                format!("parse:[\"{kind}\"] and {field}: [ids...] are mutually exclusive.");
            return Err(Refusal::form(
                "allowed_mentions",
                "MESSAGE_ALLOWED_MENTIONS_PARSE_EXCLUSIVE",
                &message,
            ));
        }
        if ids > 100 {
            return Err(Refusal::too_long(&format!("allowed_mentions.{field}"), 100));
        }
    }
    let known = |kind: &Value| ["users", "roles", "everyone"].iter().any(|one| kind == one);
    if kinds.is_some_and(|kinds| !kinds.iter().all(known)) {
        let message = "Value must be one of {'users', 'roles', 'everyone'}.";
        return Err(Refusal::form("allowed_mentions.parse.0", "BASE_TYPE_CHOICES", message));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_what_is_permitted_rings() {
        let all = ["users", "roles", "everyone"];
        let text = "@here <@1> <@!2> <@&3>";
        let rings = |allowed: Option<Value>| {
            let left = Mentions::read(text).permitted(allowed.as_ref(), &all);
            (left.users, left.roles, left.everyone)
        };
        assert_eq!(rings(None), (vec![1, 2], vec![3], true));
        assert_eq!(rings(Some(json!({ "parse": [] }))), (vec![], vec![], false));
        assert_eq!(rings(Some(json!({ "users": ["2"] }))), (vec![2], vec![], false));
        assert_eq!(rings(Some(json!({ "parse": ["roles"] }))), (vec![], vec![3], false));
    }
}

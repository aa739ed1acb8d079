//! How a person is asked for a permission, and what the reply means.

use ostler_core::permission::{Answer, Decision, Permission, PermissionKind};
use serde_json::Value;

/// How much of one detail is shown; whoever wants all of it asks the agent.
const MAX_DETAIL: usize = 4000;

/// What to say to a reply that is no answer.
const KEYS: &str =
    "a: allow, w: allow whenever the same is asked, d: deny, d TEXT: deny and say why";

/// Returns what is asked, to be shown above the reply.
pub(crate) fn question(permission: &Permission) -> String {
    let Permission { tool, title, options, input, .. } = permission;
    if permission.kind == PermissionKind::Question {
        let choices =
            options.iter().zip(1..).map(|(text, number)| format!("\n    {number}. {text}"));
        return format!("  ? {title}{}", choices.collect::<String>());
    }
    // All of it is shown: nobody should allow what they have not seen.
    let details = input.as_ref().map(|input| details(title, input)).unwrap_or_default();
    let title = title.replace('\n', "\n    ");
    format!("  ? {} {tool}: {title}{details}", verb(permission.kind))
}

/// Returns what a title does not say of what is asked for: the new text of a file,
/// or where a command runs.
fn details(title: &str, input: &Value) -> String {
    let Value::Object(fields) = input else { return String::new() };
    let mut lines = String::new();
    for (name, value) in fields {
        let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        if text.is_empty() || value.is_null() || title.contains(&text) {
            continue;
        }
        let shown: String = text.chars().take(MAX_DETAIL).collect();
        let n_left = text.chars().count() - shown.chars().count();
        let left =
            if n_left > 0 { format!("… ({n_left} more characters)") } else { String::new() };
        let shown = shown.replace('\n', "\n      ");
        lines.push_str(&format!("\n    {name}: {shown}{left}"));
    }
    lines
}

/// Returns what stands before the reply.
pub(crate) fn prompt(permission: &Permission) -> &'static str {
    if permission.kind == PermissionKind::Question {
        "  your answer: "
    } else {
        "  [a]llow, al[w]ays, [d]eny? "
    }
}

fn verb(kind: PermissionKind) -> &'static str {
    match kind {
        PermissionKind::Command => "run a command with",
        PermissionKind::Edit => "change files with",
        PermissionKind::Read => "read with",
        PermissionKind::Network => "use the network with",
        PermissionKind::Question | PermissionKind::Other | _ => "use",
    }
}

/// Reads a reply; says what could be replied if it means nothing.
pub(crate) fn answer(permission: &Permission, reply: &str) -> Result<Answer, &'static str> {
    let reply = reply.trim();
    if permission.kind == PermissionKind::Question {
        if reply.is_empty() {
            return Err("type the number of a choice, or an answer of your own");
        }
        let chosen = reply.parse::<usize>().ok().and_then(|number| number.checked_sub(1));
        let chosen = chosen.and_then(|at| permission.options.get(at)).map_or(reply, String::as_str);
        return Ok(Answer { decision: Decision::Allow, text: Some(chosen.to_owned()) });
    }
    let (word, why) = reply.split_once(char::is_whitespace).unwrap_or((reply, ""));
    let decision = match word.to_lowercase().as_str() {
        "a" | "allow" | "y" | "yes" => Decision::Allow,
        "w" | "always" => Decision::AllowAlways,
        "d" | "deny" | "n" | "no" => Decision::Deny,
        _ => return Err(KEYS),
    };
    let why = why.trim();
    match (decision, why) {
        (_, "") => Ok(Answer::new(decision)),
        (Decision::Deny, why) => Ok(Answer { decision, text: Some(why.to_owned()) }),
        // More than one word may be anything but a plain yes.
        (Decision::Allow | Decision::AllowAlways, _) => Err(KEYS),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn asks(kind: PermissionKind, options: &[&str]) -> Permission {
        Permission {
            request: "r".into(),
            kind,
            tool: "Bash".into(),
            title: "rm -r a\n&& echo b".into(),
            input: Some(json!({})),
            options: options.iter().map(|&option| option.to_owned()).collect(),
            expires_at: None,
        }
    }

    #[test]
    fn a_letter_or_a_word_decides() {
        let command = asks(PermissionKind::Command, &[]);
        for (reply, decision) in [
            ("a", Decision::Allow),
            (" Yes ", Decision::Allow),
            ("w", Decision::AllowAlways),
            ("always", Decision::AllowAlways),
            ("d", Decision::Deny),
            ("NO", Decision::Deny),
        ] {
            assert_eq!(answer(&command, reply), Ok(Answer::new(decision)), "{reply}");
        }
        let why = answer(&command, "d use the other file").unwrap();
        assert_eq!(
            (why.decision, why.text.as_deref()),
            (Decision::Deny, Some("use the other file"))
        );
    }

    #[test]
    fn nothing_but_a_plain_yes_allows() {
        let command = asks(PermissionKind::Command, &[]);
        for reply in ["", "maybe", "a b", "yes but not now", "allowed", "1"] {
            assert!(answer(&command, reply).is_err(), "{reply}");
        }
    }

    #[test]
    fn a_question_takes_a_choice_by_its_number_or_any_text() {
        let which = asks(PermissionKind::Question, &["red", "blue"]);
        let text = |reply| answer(&which, reply).unwrap().text.unwrap();
        assert_eq!(text("2"), "blue");
        assert_eq!(text("3"), "3");
        assert_eq!(text(" green please "), "green please");
        assert!(answer(&which, " ").is_err());
        assert!(question(&which).contains("\n    2. blue"));
    }

    #[test]
    fn the_whole_command_is_shown() {
        let shown = question(&asks(PermissionKind::Command, &[]));
        assert_eq!(shown, "  ? run a command with Bash: rm -r a\n    && echo b");
    }

    #[test]
    fn what_the_title_does_not_say_is_shown_below_it() {
        let mut edit = asks(PermissionKind::Edit, &[]);
        edit.title = "notes.md".into();
        let long = "x".repeat(MAX_DETAIL + 7);
        edit.input = Some(json!({ "path": "notes.md", "new": "one\ntwo", "old": long, "n": 3 }));
        let shown = question(&edit);
        assert!(shown.contains("\n    new: one\n      two\n"), "{shown}");
        assert!(shown.contains("x… (7 more characters)"), "{shown}");
        assert!(shown.contains("\n    n: 3") && !shown.contains("path"), "{shown}");
    }
}

//! The text that goes before a prompt and tells the agent who it is.

use crate::{
    memo::Memo,
    request::{Identity, Repeat},
};

/// Returns the prompt with the identity text before it, where one is due.
pub(crate) fn apply(
    default: &str,
    identity: &Identity,
    session: Option<&Memo>,
    prompt: &str,
) -> String {
    let (text, repeat) = match identity {
        Identity::Off => return prompt.to_owned(),
        Identity::Default(repeat) => (default, *repeat),
        Identity::Text(text, repeat) => (text.as_str(), *repeat),
    };
    let sent = session.is_some_and(|memo| memo.system_sent);
    if text.is_empty() || (sent && repeat == Repeat::OncePerSession) {
        return prompt.to_owned();
    }
    format!("{text}\n\n{prompt}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_operators_text_overrides_the_default_and_an_empty_one_switches_it_off() {
        let apply = |identity| apply("I am the default.", &identity, None, "hi");
        assert_eq!(apply(Identity::Off), "hi");
        assert_eq!(apply(Identity::Default(Repeat::EachTurn)), "I am the default.\n\nhi");
        assert_eq!(apply(Identity::Text("Me.".into(), Repeat::EachTurn)), "Me.\n\nhi");
        assert_eq!(apply(Identity::Text(String::new(), Repeat::EachTurn)), "hi");
    }

    #[test]
    fn once_per_session_means_the_first_prompt_only() {
        let fresh = Memo::of_id("claude", "x");
        let used = Memo { system_sent: true, ..fresh.clone() };
        let once = Identity::Text("Me.".into(), Repeat::OncePerSession);
        assert_eq!(apply("", &once, None, "hi"), "Me.\n\nhi");
        assert_eq!(apply("", &once, Some(&fresh), "hi"), "Me.\n\nhi");
        assert_eq!(apply("", &once, Some(&used), "hi"), "hi");
        let each = Identity::Text("Me.".into(), Repeat::EachTurn);
        assert_eq!(apply("", &each, Some(&used), "hi"), "Me.\n\nhi");
    }
}

//! What goes wrong, or is asked, because a prompt says so, and only a server can
//! do.

/// The words of one prompt.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct ServerFaults {
    /// `sim:http=<status>`: the prompt is answered with this.
    pub(super) status: Option<u16>,
    /// `sim:error`: the call of the model fails.
    pub(super) error: bool,
    /// `sim:cut`: the streams of events break off in the middle of the answer.
    pub(super) cut: bool,
    /// `sim:double-idle`: the end is told twice, the second time late.
    pub(super) double_idle: bool,
    /// `sim:never-idle`: the end is never told.
    pub(super) never_idle: bool,
    /// `sim:no-session`: events that name no session, or nothing that is known.
    pub(super) no_session: bool,
    /// `sim:question`: the user is asked something.
    pub(super) question: bool,
}

impl ServerFaults {
    pub(super) fn of(prompt: &str) -> Self {
        let mut faults = Self::default();
        for word in prompt.split_whitespace().filter_map(|word| word.strip_prefix("sim:")) {
            faults.take(word.trim_end_matches(|char: char| !char.is_alphanumeric()));
        }
        faults
    }

    fn take(&mut self, word: &str) -> bool {
        let (name, value) = word.split_once('=').unwrap_or((word, ""));
        match name {
            "http" => self.status = Some(value.parse().unwrap_or(500)),
            "error" => self.error = true,
            "cut" => self.cut = true,
            "double-idle" => self.double_idle = true,
            "never-idle" => self.never_idle = true,
            "no-session" => self.no_session = true,
            "question" => self.question = true,
            _ => return false,
        }
        true
    }
}

/// Whether a word after `sim:` is one of these.
pub(in crate::scripted) fn is_word(word: &str) -> bool {
    ServerFaults::default().take(word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_found_in_the_prompt_and_others_left() {
        let faults = ServerFaults::of("please sim:http=404, sim:cut and sim:tool");
        assert_eq!((faults.status, faults.cut, faults.error), (Some(404), true, false));
        assert!(is_word("never-idle") && !is_word("tool") && !is_word("crash"));
    }
}

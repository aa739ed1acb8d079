//! What is found when a chat is looked at, for `ostler doctor`.

use jiff::SignedDuration;

/// How far the clock may be off.
const OFF: SignedDuration = SignedDuration::from_secs(30);

/// What was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Finding {
    pub(crate) is_ok: bool,
    pub(crate) text: String,
    /// What to do about it.
    pub(crate) fix: Option<&'static str>,
}

pub(crate) fn good(text: impl Into<String>) -> Finding {
    Finding { is_ok: true, text: text.into(), fix: None }
}

pub(crate) fn bad(text: impl Into<String>, fix: Option<&'static str>) -> Finding {
    Finding { is_ok: false, text: text.into(), fix }
}

/// Says whether the clock is right, by how far it is ahead of somebody's.
pub(crate) fn clock(skew: SignedDuration, whose: &str) -> Finding {
    let seconds = skew.abs().as_secs();
    if skew.abs() <= OFF {
        return good(format!("the clock is within {} s of {whose}'s", OFF.as_secs()));
    }
    let side = if skew.is_positive() { "ahead of" } else { "behind" };
    bad(
        format!("the clock is {seconds} s {side} {whose}'s"),
        Some("set the clock, for example with systemd-timesyncd"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_that_is_off_is_told_by_how_much() {
        assert!(clock(SignedDuration::from_secs(-30), "Discord").is_ok);
        let behind = clock(SignedDuration::from_secs(-31), "Discord");
        assert_eq!(behind.text, "the clock is 31 s behind Discord's");
        assert!(clock(SignedDuration::from_secs(500), "Twilio").text.contains("ahead"));
    }
}

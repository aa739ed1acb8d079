//! Signals by name, as scripts and captures write them.

use std::fmt;

use serde::Deserialize;

/// A signal that ends or stops a process; `TERM` and `SIGTERM` are the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub(super) struct Signal(i32);

const NAMES: [(&str, i32); 11] = [
    ("HUP", libc::SIGHUP),
    ("INT", libc::SIGINT),
    ("QUIT", libc::SIGQUIT),
    ("ILL", libc::SIGILL),
    ("ABRT", libc::SIGABRT),
    ("KILL", libc::SIGKILL),
    ("USR1", libc::SIGUSR1),
    ("SEGV", libc::SIGSEGV),
    ("USR2", libc::SIGUSR2),
    ("PIPE", libc::SIGPIPE),
    ("TERM", libc::SIGTERM),
];

impl Signal {
    pub(super) fn number(self) -> i32 {
        self.0
    }

    pub(super) fn from_name(name: &str) -> Option<Self> {
        let short = name.strip_prefix("SIG").unwrap_or(name);
        NAMES.iter().find(|(known, _)| *known == short).map(|(_, number)| Self(*number))
    }

    pub(super) fn from_number(number: i32) -> Option<Self> {
        NAMES.iter().find(|(_, known)| *known == number).map(|(_, number)| Self(*number))
    }
}

impl TryFrom<String> for Signal {
    type Error = String;

    fn try_from(name: String) -> Result<Self, String> {
        Self::from_name(&name).ok_or_else(|| {
            let known: Vec<&str> = NAMES.iter().map(|(known, _)| *known).collect();
            format!("unknown signal `{name}`, expected one of {}", known.join(", "))
        })
    }
}

impl fmt::Display for Signal {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match NAMES.iter().find(|(_, number)| *number == self.0) {
            Some((name, _)) => write!(formatter, "SIG{name}"),
            None => write!(formatter, "signal {}", self.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Signal;

    #[test]
    fn a_signal_has_one_name_with_and_without_its_prefix() {
        assert_eq!(Signal::from_name("TERM"), Signal::from_name("SIGTERM"));
        assert_eq!(Signal::from_number(9).map(|signal| signal.to_string()), Some("SIGKILL".into()));
    }

    #[test]
    fn an_unknown_signal_is_refused_with_the_known_ones() {
        let refusal = Signal::try_from("TREM".to_owned()).unwrap_err();
        assert!(refusal.contains("`TREM`") && refusal.contains("TERM"), "{refusal}");
    }
}

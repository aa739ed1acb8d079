//! Where an installed version stands among those that were tested. Pure.

use std::cmp::Ordering;

use serde::Serialize;

/// How an installed version relates to the tested ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Standing {
    /// It is one of them.
    Tested,
    /// It is newer than all of them.
    Newer,
    /// It is older than all of them.
    Older,
    /// It is none of them, but neither the newest nor the oldest.
    Between,
    /// It could be read, but none was tested.
    Untested,
    /// It could not be read.
    Unknown,
}

impl Standing {
    /// Compares a version with the tested ones.
    pub(crate) fn of(version: Option<&str>, tested: &[&str]) -> Self {
        let Some(version) = version else {
            return Self::Unknown;
        };
        if tested.contains(&version) {
            return Self::Tested;
        }
        let is_all = |wanted: Ordering| {
            tested.iter().all(|other| numbers(version).cmp(&numbers(other)) == wanted)
        };
        match tested {
            [] => Self::Untested,
            _ if is_all(Ordering::Greater) => Self::Newer,
            _ if is_all(Ordering::Less) => Self::Older,
            _ => Self::Between,
        }
    }

    /// Returns it in words for people.
    pub(crate) fn label(self) -> &'static str {
        match self {
            Self::Tested => "tested",
            Self::Newer => "newer than tested",
            Self::Older => "older than tested",
            Self::Between | Self::Untested => "not tested",
            Self::Unknown => "version unknown",
        }
    }
}

/// Returns the numbers of a version, without what follows a dash or a plus.
pub(crate) fn numbers(version: &str) -> Vec<u64> {
    let release = version.split(['-', '+']).next().unwrap_or_default();
    release.split('.').map_while(|number| number.parse().ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_compared_by_number() {
        let tested = ["2.1.197", "2.1.325"];
        for (version, expected) in [
            ("2.1.325", Standing::Tested),
            ("2.1.1000", Standing::Newer),
            ("10.0.0", Standing::Newer),
            ("2.2", Standing::Newer),
            ("2.1.99", Standing::Older),
            ("2.1.200", Standing::Between),
            ("2.1.325-beta.1", Standing::Between),
        ] {
            assert_eq!(Standing::of(Some(version), &tested), expected, "{version}");
        }
    }

    #[test]
    fn what_was_not_read_is_unknown_and_what_was_not_tested_is_untested() {
        assert_eq!(Standing::of(None, &["1.0.0"]), Standing::Unknown);
        assert_eq!(Standing::of(Some("1.0.0"), &[]), Standing::Untested);
    }
}

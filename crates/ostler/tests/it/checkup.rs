//! What `ostler doctor` says of channels, for tests that change one and ask it.

use crate::support::{Outcome, Place};

/// What was found of one thing.
#[derive(Debug)]
pub(crate) struct Finding {
    pub(crate) level: String,
    pub(crate) message: String,
}

/// Asks about what is configured at a place; returns what was found of channels. What
/// is secret is not told.
pub(crate) fn examined(place: &Place, secrets: &[String]) -> Vec<Finding> {
    let config = place.path("ostler.json5");
    let args = ["doctor", "--output", "json", "--config", config.to_str().unwrap()];
    let said = place.run(&args);
    for secret in secrets {
        assert!(!said.stdout.contains(secret) && !said.stderr.contains(secret));
    }
    of_channels(&said)
}

/// Returns what a doctor who was to answer by JSON found of channels.
pub(crate) fn of_channels(said: &Outcome) -> Vec<Finding> {
    let said = said.json();
    let all = said["findings"].as_array().unwrap().iter();
    all.filter(|finding| finding["area"] == "channels")
        .map(|finding| {
            let text = |field: &str| finding[field].as_str().unwrap().to_owned();
            Finding { level: text("level"), message: text("message") }
        })
        .collect()
}

/// Returns the messages of those that are errors.
pub(crate) fn errors(findings: &[Finding]) -> Vec<&str> {
    let errors = findings.iter().filter(|finding| finding.level == "error");
    errors.map(|finding| finding.message.as_str()).collect()
}

/// Says that one thing is wrong, and which.
pub(crate) fn check(findings: &[Finding], says: &str) {
    assert!(matches!(errors(findings)[..], [one] if one.contains(says)), "{says}: {findings:#?}");
}

/// Says that nothing is wrong, and that all of this was looked at.
pub(crate) fn check_well(findings: &[Finding], looked_at: &[&str]) {
    assert_eq!(errors(findings), [""; 0], "{findings:#?}");
    for about in looked_at {
        let is_told = findings.iter().any(|finding| finding.message.contains(about));
        assert!(is_told, "{about}: {findings:#?}");
    }
}

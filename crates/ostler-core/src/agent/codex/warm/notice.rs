//! Notifications of which nothing is told: they repeat what other lines tell,
//! or concern a person in front of the CLI.

/// By method, or by its first words where the sign is a slash at the end.
const QUIET: &[&str] = &[
    "thread/",
    "account/",
    "remoteControl/",
    "hook/",
    "skills/",
    "project/",
    "app/",
    "fs/",
    "process/",
    "command/",
    "externalAgentConfig/",
    "fuzzyFileSearch/",
    "windows/",
    "windowsSandbox/",
    "mcpServer/",
    "modelProvider/",
    "item/autoApprovalReview/",
    "autoApprovalReview/",
    "rawResponse/",
    "rawResponseItem/",
    "turn/diff/updated",
    "turn/moderationMetadata",
    "item/plan/delta",
    // The first lines of the output are missing here; the completed item has all.
    "item/commandExecution/outputDelta",
    "item/commandExecution/terminalInteraction",
    "item/fileChange/outputDelta",
    "item/fileChange/patchUpdated",
    "item/mcpToolCall/progress",
    "item/reasoning/summaryPartAdded",
    "model/verification",
    "model/safetyBuffering/updated",
    "deprecationNotice",
    "configWarning",
];

/// Returns whether a notification says nothing that has to be told.
pub(super) fn is_quiet(method: &str) -> bool {
    let covers = |known: &&str| match known.strip_suffix('/') {
        Some(_) => method.starts_with(*known),
        None => method == *known,
    };
    QUIET.iter().any(covers)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_families_are_quiet_and_others_only_by_name() {
        assert!(is_quiet("thread/name/updated"));
        assert!(is_quiet("item/fileChange/outputDelta"));
        assert!(!is_quiet("item/fileChange/outputDeltas"));
        assert!(!is_quiet("threads"));
        assert!(!is_quiet("turn/reconsidered"));
    }
}

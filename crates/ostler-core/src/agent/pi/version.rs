//! Reads the CLI's version, for what changed from one to another.

/// Returns whether a version is this one or a later one.
pub(super) fn is_at_least(version: &str, wanted: (u32, u32, u32)) -> bool {
    let mut numbers = version.split('.').map(|number| number.parse::<u32>().unwrap_or(0));
    let mut next = || numbers.next().unwrap_or(0);
    (next(), next(), next()) >= wanted
}

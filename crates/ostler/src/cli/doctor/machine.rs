//! The doctor's look at the machine: the folders Ostler writes to, the clock
//! and the limit of open files.

use std::{
    fs, io,
    path::Path,
    time::{Duration, SystemTime},
};

use jiff::Timestamp;
use ostler_core::{
    HostConfig,
    run_dir::{self, RunDir},
};

use super::finding::{Area, Finding, Level};

/// How long the path of a turn's folder may be. A socket's path ends at 104 or
/// 108 bytes, and the CLIs need some of them for their own names.
const MAX_RUN_PATH: usize = 72;
/// A turn takes about ten descriptors, and a CLI some dozens more.
const MIN_OPEN_FILES: u64 = 256;
/// No clock of a machine that runs this program is right before then.
const EARLIEST: &str = "2026-01-01T00:00:00Z";

/// Looks at everything that is no agent. Goes before the host, which sweeps too.
pub(crate) fn check(config: &HostConfig) -> Vec<Finding> {
    let mut findings = run_dir(&config.run_root);
    findings.push(data_dir(&config.data_dir));
    findings.push(clock(Timestamp::now(), installed_at()));
    findings.extend(open_files());
    findings
}

fn run_dir(root: &Path) -> Vec<Finding> {
    let mut findings = Vec::new();
    if let Ok(n_removed @ 1..) = run_dir::sweep(root) {
        let noun = if n_removed == 1 { "folder" } else { "folders" };
        let message = format!("removed {n_removed} {noun} that killed turns had left");
        findings.push(Finding::new(Level::Info, Area::RunDir, message));
    }
    findings.push(match RunDir::create(root) {
        Err(error) => Finding::new(
            Level::Error,
            Area::RunDir,
            format!("no folder for a turn can be made in {}: {error}", root.display()),
        )
        .fix("set TMPDIR to a folder of your own that can be written to"),
        Ok(folder) => judge_run_path(folder.path()),
    });
    findings
}

fn judge_run_path(path: &Path) -> Finding {
    let length = path.as_os_str().len();
    if length > MAX_RUN_PATH {
        let message =
            format!("{} is {length} bytes long; sockets in it may not fit", path.display());
        return Finding::new(Level::Warning, Area::RunDir, message)
            .fix("set TMPDIR to a shorter path, such as /tmp");
    }
    let parent = path.parent().unwrap_or(path);
    Finding::ok(Area::RunDir, format!("{} can be used for turns", parent.display()))
}

fn data_dir(path: &Path) -> Finding {
    match try_writing(&path.join("sessions")) {
        Ok(()) => Finding::ok(Area::DataDir, format!("{} can be written to", path.display())),
        Err(error) => {
            let message = format!("{} cannot be written to: {error}", path.display());
            Finding::new(Level::Error, Area::DataDir, message)
                .fix("set OSTLER_DATA_DIR to a folder of your own; sessions are remembered there")
        }
    }
}

fn try_writing(folder: &Path) -> io::Result<()> {
    fs::create_dir_all(folder)?;
    let probe = folder.join(format!(".doctor-{}", std::process::id()));
    fs::write(&probe, "Can be removed.\n")?;
    fs::remove_file(&probe)
}

/// Returns when this program was put where it is.
fn installed_at() -> Option<SystemTime> {
    fs::metadata(std::env::current_exe().ok()?).ok()?.modified().ok()
}

fn clock(now: Timestamp, installed_at: Option<SystemTime>) -> Finding {
    // Time zones that were mixed up when the program was copied are no sign.
    let slack = Duration::from_secs(24 * 60 * 60);
    let installed = installed_at.and_then(|time| time.checked_sub(slack));
    let installed = installed.and_then(|time| Timestamp::try_from(time).ok());
    let earliest = [EARLIEST.parse().ok(), installed].into_iter().flatten().max();
    if earliest.is_some_and(|earliest| now < earliest) {
        let message = format!("the clock says {now:.0}, which was before this program was made");
        return Finding::new(Level::Error, Area::Clock, message)
            .fix("set the clock; certificates and logins count as not valid yet");
    }
    Finding::ok(Area::Clock, format!("the clock says {now:.0}"))
}

/// Says how many files may be open; nothing where that cannot be read.
fn open_files() -> Option<Finding> {
    let limits = fs::read_to_string("/proc/self/limits").ok()?;
    Some(judge_limit(soft_limit(&limits)?))
}

fn judge_limit(limit: u64) -> Finding {
    let message = match limit {
        u64::MAX => "any number of files may be open at once".to_owned(),
        limit => format!("{limit} files may be open at once"),
    };
    if limit < MIN_OPEN_FILES {
        return Finding::new(Level::Warning, Area::Limits, message).fix("ulimit -n 4096");
    }
    Finding::ok(Area::Limits, message)
}

/// Reads `Max open files  <soft>  <hard>  files`.
fn soft_limit(limits: &str) -> Option<u64> {
    let line = limits.lines().find_map(|line| line.strip_prefix("Max open files"))?;
    match line.split_whitespace().next()? {
        "unlimited" => Some(u64::MAX),
        number => number.parse().ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_before_the_program_was_made_is_wrong() {
        let at = |text: &str| text.parse::<Timestamp>().unwrap();
        let installed = SystemTime::from(at("2027-05-01T12:00:00Z"));
        assert_eq!(clock(at("1970-01-02T00:00:00Z"), None).level, Level::Error);
        assert_eq!(clock(at("2026-11-15T00:00:00Z"), None).level, Level::Ok);
        assert_eq!(clock(at("2026-11-15T00:00:00Z"), Some(installed)).level, Level::Error);
        assert_eq!(clock(at("2027-05-01T02:00:00Z"), Some(installed)).level, Level::Ok);
    }

    #[test]
    fn a_long_path_for_sockets_is_a_warning() {
        let long = format!("/{}", "x".repeat(MAX_RUN_PATH));
        assert_eq!(judge_run_path(Path::new(&long)).level, Level::Warning);
        assert_eq!(judge_run_path(Path::new("/tmp/ostler-0/12345678")).level, Level::Ok);
    }

    #[test]
    fn the_soft_limit_is_the_one_that_counts() {
        let text = "Limit                     Soft Limit           Hard Limit           Units\n\
                    Max open files            100                  20000                files\n";
        assert_eq!(soft_limit(text), Some(100));
        assert_eq!(judge_limit(100).level, Level::Warning);
        assert_eq!(soft_limit("Max open files  unlimited  unlimited  files"), Some(u64::MAX));
        assert_eq!(judge_limit(u64::MAX).level, Level::Ok);
        assert_eq!(soft_limit("Max processes  1  2"), None);
    }

    #[test]
    fn a_folder_that_is_a_file_cannot_be_written_to() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("data");
        fs::write(&file, "").unwrap();
        let finding = data_dir(&file);
        assert_eq!(finding.level, Level::Error);
        assert!(finding.fix.unwrap().contains("OSTLER_DATA_DIR"));
        assert_eq!(data_dir(&dir.path().join("new/data")).level, Level::Ok);
    }
}

//! Processes that outlived their turn.
//!
//! Every process of a turn carries a mark in its environment and, on Linux, has
//! a keeper among its ancestors. One that is marked and has none was left
//! behind by an Ostler of another make, or after somebody killed its keeper.
//! They are only told of: whether they may end is for their owner to say.

use std::{
    collections::BTreeMap,
    fs, io,
    os::unix::{ffi::OsStrExt, fs::MetadataExt},
    path::Path,
};

use ostler_core::environment::MARK;

use super::finding::{Area, Finding, Level};

/// What a keeper calls itself.
const KEEPER: &str = "ostler-keeper";
/// How much of a command line is shown.
const SHOWN: usize = 100;

/// Looks for such processes of this user.
pub(crate) fn check() -> Vec<Finding> {
    let listed = match list(Path::new("/proc")) {
        Ok(processes) => processes,
        Err(error) => {
            let message = format!("processes cannot be listed here: {error}");
            return vec![Finding::new(Level::Info, Area::Processes, message)];
        }
    };
    let strays = strays(&listed);
    if strays.is_empty() {
        return vec![Finding::ok(Area::Processes, "no process outlived its turn")];
    }
    let tell = |(pid, process): (u32, &Process)| {
        let turn = process.turn.as_deref().unwrap_or_default();
        let message = format!("process {pid} outlived its turn {turn}: {}", process.command);
        Finding::new(Level::Warning, Area::Processes, message).fix(format!("kill {pid}"))
    };
    strays.into_iter().map(tell).collect()
}

/// A process, as far as it matters here.
#[derive(Debug, Default)]
struct Process {
    parent: u32,
    name: String,
    /// The turn that it belongs to, if it carries the mark and is this user's.
    turn: Option<String>,
    command: String,
}

type Processes = BTreeMap<u32, Process>;

/// Returns the marked processes that certainly have no keeper.
fn strays(processes: &Processes) -> Vec<(u32, &Process)> {
    let own = std::process::id();
    processes
        .iter()
        .filter(|(pid, process)| **pid != own && process.turn.is_some())
        .filter(|(pid, _)| is_unkept(processes, **pid))
        .map(|(pid, process)| (*pid, process))
        .collect()
}

/// Follows the parents. One that cannot be seen may be the keeper, which hides
/// where processes of others are hidden.
fn is_unkept(processes: &Processes, pid: u32) -> bool {
    let mut at = pid;
    // Parents that change during the listing could make a circle.
    for _ in 0..processes.len() {
        let Some(process) = processes.get(&at) else {
            return false;
        };
        if process.name == KEEPER {
            return false;
        }
        if at == 1 || process.parent == 0 {
            return true;
        }
        at = process.parent;
    }
    false
}

fn list(proc: &Path) -> io::Result<Processes> {
    let own_user = fs::metadata(proc.join("self"))?.uid();
    let mut processes = Processes::new();
    for entry in fs::read_dir(proc)? {
        let entry = entry?;
        let pid = entry.file_name().to_str().and_then(|name| name.parse().ok());
        // A process that ends while it is looked at is no longer of interest.
        if let Some(pid) = pid
            && let Some(process) = read(&entry.path(), own_user)
        {
            processes.insert(pid, process);
        }
    }
    Ok(processes)
}

fn read(folder: &Path, own_user: u32) -> Option<Process> {
    let stat = fs::read(folder.join("stat")).ok()?;
    let (name, parent) = parse_stat(&String::from_utf8_lossy(&stat))?;
    let is_own = fs::metadata(folder).ok()?.uid() == own_user;
    let environment = if is_own { fs::read(folder.join("environ")).ok() } else { None };
    let turn = environment.and_then(|bytes| mark(&bytes));
    let command = match &turn {
        None => String::new(),
        Some(_) => shown(&fs::read(folder.join("cmdline")).unwrap_or_default()),
    };
    Some(Process { parent, name, turn, command })
}

/// Reads `pid (name) state parent …`; the name may hold anything.
fn parse_stat(stat: &str) -> Option<(String, u32)> {
    let (before, after) = stat.rsplit_once(')')?;
    let (_, name) = before.split_once('(')?;
    let parent = after.split_whitespace().nth(1)?.parse().ok()?;
    Some((name.to_owned(), parent))
}

fn mark(environment: &[u8]) -> Option<String> {
    let variables = environment.split(|byte| *byte == 0);
    variables
        .filter_map(|variable| variable.strip_prefix(MARK.as_bytes())?.strip_prefix(b"="))
        .map(|value| String::from_utf8_lossy(value).into_owned())
        .next()
}

/// Returns the start of a command line on one line.
fn shown(command: &[u8]) -> String {
    let words: Vec<_> = command
        .split(|byte| *byte == 0)
        .map(|word| std::ffi::OsStr::from_bytes(word).to_string_lossy())
        .collect();
    words.join(" ").trim_end().chars().take(SHOWN).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn processes(rows: &[(u32, u32, &str, Option<&str>)]) -> Processes {
        rows.iter()
            .map(|(pid, parent, name, turn)| {
                let process = Process {
                    parent: *parent,
                    name: (*name).to_owned(),
                    turn: turn.map(str::to_owned),
                    command: String::new(),
                };
                (*pid, process)
            })
            .collect()
    }

    fn pids(rows: &[(u32, u32, &str, Option<&str>)]) -> Vec<u32> {
        strays(&processes(rows)).into_iter().map(|(pid, _)| pid).collect()
    }

    const TURN: Option<&str> = Some("trn_1");
    const BEYOND: u32 = 4_200_000;

    #[test]
    fn what_has_a_keeper_or_no_mark_is_left_alone() {
        let kept = [
            (1, 0, "init", None),
            (BEYOND, 1, "ostler", None),
            (BEYOND + 1, BEYOND, KEEPER, None),
            (BEYOND + 2, BEYOND + 1, "claude", TURN),
            (BEYOND + 3, BEYOND + 2, "bash", TURN),
            (BEYOND + 4, 1, "bash", None),
        ];
        assert_eq!(pids(&kept), [] as [u32; 0]);
    }

    #[test]
    fn what_was_left_to_init_is_found_with_its_children() {
        let left =
            [(1, 0, "init", None), (BEYOND, 1, "claude", TURN), (BEYOND + 1, BEYOND, "bash", TURN)];
        assert_eq!(pids(&left), [BEYOND, BEYOND + 1]);
    }

    #[test]
    fn a_parent_that_cannot_be_seen_may_be_a_keeper() {
        assert_eq!(pids(&[(1, 0, "init", None), (BEYOND, 77, "bash", TURN)]), [] as [u32; 0]);
        let circle = [(BEYOND, BEYOND + 1, "a", TURN), (BEYOND + 1, BEYOND, "b", TURN)];
        assert_eq!(pids(&circle), [] as [u32; 0]);
    }

    #[test]
    fn the_mark_is_a_whole_name() {
        assert_eq!(mark(b"PATH=/bin\0OSTLER_TURN=trn_7\0").as_deref(), Some("trn_7"));
        assert_eq!(mark(b"OSTLER_TURN=trn_8").as_deref(), Some("trn_8"));
        assert_eq!(mark(b"MY_OSTLER_TURN=trn_7\0OSTLER_TURNS=2\0"), None);
        assert_eq!(mark(b""), None);
    }

    #[test]
    fn a_name_can_hold_brackets_and_spaces() {
        assert_eq!(parse_stat("17 (a) R (b) S 4 5"), Some(("a) R (b".to_owned(), 4)));
        assert_eq!(parse_stat("17 (sh)"), None);
    }
}

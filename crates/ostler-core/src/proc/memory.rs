//! How much memory trees of processes take.

use std::{
    collections::{HashMap, HashSet},
    fs,
};

/// Returns the resident memory in bytes of what runs below each of these
/// processes, the process itself included. Where the system does not tell, the
/// map is empty.
pub(crate) fn resident_below(tops: &[u32]) -> HashMap<u32, u64> {
    let mut result = HashMap::new();
    if tops.is_empty() {
        return result;
    }
    let all: HashMap<u32, Known> = fs::read_dir("/proc")
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .filter_map(|pid: u32| {
            Some((pid, parse(&fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)?))
        })
        .collect();
    let tops: HashSet<u32> = tops.iter().copied().collect();
    for (pid, known) in &all {
        if let Some(top) = top_of(*pid, &tops, &all) {
            let bytes = known.pages.saturating_mul(PAGE);
            let sum = result.entry(top).or_insert(0_u64);
            *sum = sum.saturating_add(bytes);
        }
    }
    result
}

/// The size of a page on every machine that agents run on. A wrong guess makes
/// the limit of memory a little wider.
const PAGE: u64 = 4096;

struct Known {
    parent: u32,
    pages: u64,
}

fn top_of(mut pid: u32, tops: &HashSet<u32>, all: &HashMap<u32, Known>) -> Option<u32> {
    // Numbers are reused while they are read, so a circle is possible.
    for _ in 0..64 {
        if tops.contains(&pid) {
            return Some(pid);
        }
        pid = all.get(&pid)?.parent;
    }
    None
}

/// Reads `pid (name) state parent … pages …`; the name may hold anything.
fn parse(stat: &str) -> Option<Known> {
    let (_, rest) = stat.rsplit_once(')')?;
    let fields: Vec<&str> = rest.split_whitespace().collect();
    let parent = fields.get(1)?.parse().ok()?;
    let pages = fields.get(21)?.parse().ok()?;
    Some(Known { parent, pages })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg(target_os = "linux")]
    fn this_process_takes_some_memory_and_no_process_takes_none() {
        let own = std::process::id();
        let memory = resident_below(&[own, u32::MAX]);
        assert!(memory[&own] > 1024 * 1024);
        assert_eq!(memory.get(&u32::MAX), None);
        assert!(resident_below(&[]).is_empty());
    }
}

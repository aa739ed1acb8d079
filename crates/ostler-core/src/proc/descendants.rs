//! Who the keeper's children are.
//!
//! Orphans of the tree become children of the keeper, so killing its children
//! until it has none ends the tree. Not every kernel lists a process's
//! children, hence all of `/proc` is searched; where that cannot be trusted,
//! every process id there can be is tried.
//!
//! Everything here runs in a forked child of a process with several threads:
//! it is async-signal-safe, so it neither allocates nor locks nor panics.
#![expect(
    unsafe_code,
    reason = "after a fork only system calls may be used, not the standard library"
)]

use std::{ffi::CStr, mem::MaybeUninit, os::fd::RawFd};

use libc::{c_int, pid_t};

/// The largest process id that Linux can be set to give.
const LAST_PID: pid_t = 4 * 1024 * 1024;

/// Sends SIGKILL to every child of this process; returns how many there were.
pub(super) fn kill_children() -> usize {
    match kill_listed_children() {
        // A `/proc` that hides the processes of others can leave some out.
        None | Some(0) => kill_probed_children(),
        Some(n_found) => n_found,
    }
}

/// Kills a child, and its process group if it leads one.
///
/// Neither number can mean a stranger: the id of a child stays taken until it
/// is waited for, and only this thread waits.
pub(super) fn kill_child(child: pid_t) {
    // SAFETY: `kill` has no preconditions. The group is killed at one stroke,
    // so a member that forks without end cannot outrun it.
    unsafe {
        libc::kill(child.wrapping_neg(), libc::SIGKILL);
        libc::kill(child, libc::SIGKILL);
    }
}

/// Searches `/proc`; returns `None` where it cannot be used.
fn kill_listed_children() -> Option<usize> {
    // SAFETY: `getpid` has no preconditions.
    let own_pid = unsafe { libc::getpid() };
    if read_self_link() != Some(own_pid) {
        // Another PID namespace's `/proc`: its numbers mean other processes.
        return None;
    }
    let folder = Fd::open(libc::AT_FDCWD, c"/proc", libc::O_DIRECTORY)?;
    let mut n_found: usize = 0;
    // The buffer is aligned because the kernel writes records with numbers.
    let mut buffer = Entries([0; 8192]);
    loop {
        // SAFETY: the buffer is ours, writable and as long as we say.
        let n_read = unsafe {
            libc::syscall(
                libc::SYS_getdents64,
                folder.0 as libc::c_ulong,
                buffer.0.as_mut_ptr(),
                buffer.0.len(),
            )
        };
        let Ok(n_read) = usize::try_from(n_read) else {
            return None;
        };
        if n_read == 0 {
            return Some(n_found);
        }
        let mut rest = buffer.0.get(..n_read).unwrap_or_default();
        while let Some((name, after)) = split_entry(rest) {
            rest = after;
            if let Some(pid) = parse_number(name)
                && read_parent(&folder, name) == Some(own_pid)
            {
                kill_child(pid);
                n_found = n_found.wrapping_add(1);
            }
        }
    }
}

/// Tries every process id; slow, about a second, but needs nothing.
fn kill_probed_children() -> usize {
    let mut n_found: usize = 0;
    for pid in 2..=LAST_PID {
        let Ok(id) = libc::id_t::try_from(pid) else {
            continue;
        };
        let mut info = MaybeUninit::<libc::siginfo_t>::zeroed();
        let options = libc::WEXITED | libc::WNOHANG | libc::WNOWAIT | libc::__WALL;
        // SAFETY: `info` is ours and writable. Nothing is reaped: the call
        // only succeeds for a child, and that is the question.
        let answer = unsafe { libc::waitid(libc::P_PID, id, info.as_mut_ptr(), options) };
        if answer == 0 {
            kill_child(pid);
            n_found = n_found.wrapping_add(1);
        }
    }
    n_found
}

#[repr(C, align(8))]
struct Entries([u8; 8192]);

/// A file descriptor that is closed at the end.
struct Fd(RawFd);

impl Fd {
    fn open(folder: RawFd, path: &CStr, flags: c_int) -> Option<Self> {
        let flags = flags | libc::O_RDONLY | libc::O_CLOEXEC;
        // SAFETY: the path is zero-terminated.
        let fd = unsafe { libc::openat(folder, path.as_ptr(), flags) };
        (fd >= 0).then_some(Self(fd))
    }

    fn read<'a>(&self, buffer: &'a mut [u8]) -> Option<&'a [u8]> {
        // SAFETY: the buffer is ours, writable and as long as we say.
        let n_read = unsafe { libc::read(self.0, buffer.as_mut_ptr().cast(), buffer.len()) };
        buffer.get(..usize::try_from(n_read).ok()?)
    }
}

impl Drop for Fd {
    fn drop(&mut self) {
        // SAFETY: nobody else has this descriptor.
        unsafe {
            libc::close(self.0);
        }
    }
}

fn read_self_link() -> Option<pid_t> {
    let mut buffer = [0_u8; 16];
    // SAFETY: the path is zero-terminated, the buffer as long as we say.
    let n_read =
        unsafe { libc::readlink(c"/proc/self".as_ptr(), buffer.as_mut_ptr().cast(), buffer.len()) };
    parse_number(buffer.get(..usize::try_from(n_read).ok()?)?)
}

fn read_parent(folder: &Fd, name: &[u8]) -> Option<pid_t> {
    let mut path = [0_u8; 32];
    path.get_mut(..name.len())?.copy_from_slice(name);
    let tail = b"/stat\0";
    path.get_mut(name.len()..name.len().checked_add(tail.len())?)?.copy_from_slice(tail);
    let path = CStr::from_bytes_until_nul(&path).ok()?;
    let mut buffer = [0_u8; 512];
    parse_parent(Fd::open(folder.0, path, 0)?.read(&mut buffer)?)
}

/// Finds the parent in `pid (name) state parent …`; the name may hold anything.
fn parse_parent(stat: &[u8]) -> Option<pid_t> {
    let name_end = stat.iter().rposition(|byte| *byte == b')')?;
    let mut fields = stat.get(name_end..)?.split(|byte| *byte == b' ');
    parse_number(fields.nth(2)?)
}

fn parse_number(text: &[u8]) -> Option<pid_t> {
    if text.is_empty() {
        return None;
    }
    text.iter().try_fold(0, |number: pid_t, byte| {
        let digit = byte.is_ascii_digit().then(|| byte.wrapping_sub(b'0'))?;
        number.checked_mul(10)?.checked_add(pid_t::from(digit))
    })
}

/// Splits the name of the first record off a list of `linux_dirent64`.
fn split_entry(records: &[u8]) -> Option<(&[u8], &[u8])> {
    const LENGTH_AT: usize = 16;
    const NAME_AT: usize = 19;
    let length = records.get(LENGTH_AT..)?.first_chunk::<2>()?;
    let (record, rest) = records.split_at_checked(usize::from(u16::from_ne_bytes(*length)))?;
    let name = record.get(NAME_AT..)?.split(|byte| *byte == 0).next()?;
    Some((name, rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_name_can_hold_brackets_and_spaces() {
        let stat = b"17 (a) R 1 (b) S 4 5 6 7";
        assert_eq!(parse_parent(stat), Some(4));
    }

    #[test]
    fn a_torn_stat_has_no_parent() {
        for stat in [&b""[..], b"17", b"17 (sh)", b"17 (sh) S", b"17 (sh) S x"] {
            assert_eq!(parse_parent(stat), None, "{stat:?}");
        }
    }

    #[test]
    fn only_numbers_name_processes() {
        assert_eq!(parse_number(b"4194304"), Some(LAST_PID));
        for name in [&b""[..], b"self", b"1a", b"-1", b"99999999999"] {
            assert_eq!(parse_number(name), None, "{name:?}");
        }
    }

    #[test]
    fn a_short_record_ends_the_list() {
        let mut record = vec![0_u8; 24];
        record[16..18].copy_from_slice(&24_u16.to_ne_bytes());
        record[19..21].copy_from_slice(b"42");
        assert_eq!(split_entry(&record), Some((&b"42"[..], &b""[..])));
        assert_eq!(split_entry(&record[..20]), None);
        assert_eq!(split_entry(&[0; 24]), None);
    }
}

//! What only the keeper can promise.

use std::collections::BTreeSet;

use tokio::time::interval;

use super::*;

/// A process, told apart from a later one with the same id.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Identity {
    pid: u32,
    started: String,
}

impl Identity {
    fn of(pid: u32) -> Option<Self> {
        let fields = stat(pid)?;
        // A zombie has ended; its parent just has not asked yet.
        (fields[0] != "Z").then(|| Self { pid, started: fields[19].clone() })
    }

    fn is_running(&self) -> bool {
        Self::of(self.pid).as_ref() == Some(self)
    }
}

/// The fields of `/proc/<pid>/stat` from the state on.
fn stat(pid: u32) -> Option<Vec<String>> {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (_, after_name) = text.rsplit_once(") ")?;
    Some(after_name.split(' ').map(str::to_owned).collect())
}

fn parse_running(line: &str) -> Identity {
    let pid = line.trim().parse().unwrap();
    Identity::of(pid).unwrap_or_else(|| panic!("{pid} should run"))
}

/// Prints the pids of a leader and of three who try to get away.
const TREE: &str = "\
    echo $$; \
    sh -c 'echo $$; exec sleep 600' & \
    setsid sh -c 'echo $$; exec sleep 600' & \
    (setsid env -i /bin/sh -c 'trap \"\" TERM INT HUP; echo $$; exec sleep 600' &) & \
    ";

/// Starts a leader that does `first`, then its tree, then `last`; returns who runs.
async fn start_tree(first: &str, last: &str) -> (Proc, Vec<Identity>) {
    let mut proc = shell(&format!("{first}; {TREE}{last}"));
    let mut tree = Vec::new();
    while tree.len() < 4 {
        tree.push(parse_running(&next_line(&mut proc).await));
    }
    tree.push(Identity::of(proc.pid()).unwrap());
    (proc, tree)
}

fn still_running(tree: &[Identity]) -> Vec<&Identity> {
    tree.iter().filter(|one| one.is_running()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_normal_exit_is_noticed_at_once_and_leaves_nobody() {
    let (proc, tree) = start_tree("trap 'exit 4' TERM", "wait").await;
    proc.signal(Signal::Term);
    assert_eq!(run(proc).await, plain("", 4));
    assert_eq!(still_running(&tree), [] as [&Identity; 0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_gentle_signal_leaves_nobody() {
    let (proc, tree) = start_tree(":", "exec sleep 600").await;
    proc.signal(Signal::Term);
    assert_eq!(run(proc).await, by_signal(libc::SIGTERM));
    assert_eq!(still_running(&tree), [] as [&Identity; 0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_kill_leaves_nobody_though_the_leader_ignores_signals() {
    let (mut proc, tree) = start_tree("trap '' TERM INT HUP", "exec sleep 600").await;
    proc.signal(Signal::Term);
    proc.signal(Signal::Int);
    proc.kill();
    assert_eq!(run(proc).await, by_signal(libc::SIGKILL));
    assert_eq!(still_running(&tree), [] as [&Identity; 0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn dropping_it_leaves_nobody() {
    let (proc, tree) = start_tree(":", "exec sleep 600").await;
    let keeper = proc.pid();
    drop(proc);
    eventually("the tree has ended", || still_running(&tree).is_empty()).await;
    eventually("the keeper is not even a zombie", || stat(keeper).is_none()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_panic_of_the_host_leaves_nobody() {
    let (proc, tree) = start_tree(":", "exec sleep 600").await;
    let mut tasks = tokio::task::JoinSet::new();
    tasks.spawn(async move {
        let _proc = proc;
        panic!("on purpose");
    });
    assert!(tasks.join_next().await.unwrap().unwrap_err().is_panic());
    eventually("the tree has ended", || still_running(&tree).is_empty()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_signal_to_the_keeper_ends_the_tree() {
    for signal in [libc::SIGTERM, libc::SIGINT, libc::SIGHUP, libc::SIGQUIT] {
        let (proc, tree) = start_tree(":", "exec sleep 600").await;
        send(proc.pid(), signal);
        assert_eq!(run(proc).await, by_signal(libc::SIGKILL));
        assert_eq!(still_running(&tree), [] as [&Identity; 0]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_leader_dies_with_its_keeper() {
    let mut proc = shell("echo $$; exec sleep 600");
    let leader = parse_running(&next_line(&mut proc).await);
    send(proc.pid(), libc::SIGKILL);
    eventually("the leader has ended", || !leader.is_running()).await;
    assert_eq!(run(proc).await, by_signal(libc::SIGKILL));
}

#[tokio::test(flavor = "multi_thread")]
async fn processes_that_fork_on_and_on_are_ended() {
    let script = "\
        chain() { (setsid sh -c 'n=$1; while [ $n -gt 0 ]; do n=$((n-1)); \
            (setsid sleep 600 &) ; done; echo up; exec sleep 600' sh 20 &) ; }; \
        chain; chain; chain; exec sleep 600";
    let mut proc = shell(script);
    for _ in 0..3 {
        assert_eq!(next_line(&mut proc).await, "up");
    }
    let tree = descendants(proc.pid());
    assert!(tree.len() > 60, "{}", tree.len());
    proc.kill();
    assert_eq!(run(proc).await, by_signal(libc::SIGKILL));
    assert_eq!(still_running(&tree), [] as [&Identity; 0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn orphans_are_buried_while_the_leader_lives() {
    let mut proc = shell("(sh -c 'echo $$' &); echo -; exec sleep 600");
    let first = next_line(&mut proc).await;
    let second = next_line(&mut proc).await;
    let orphan = [first, second].into_iter().find(|line| line != "-").unwrap();
    let orphan: u32 = orphan.parse().unwrap();
    eventually("the orphan is not even a zombie", || stat(orphan).is_none()).await;
    assert!(Identity::of(proc.pid()).is_some());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pipe_held_by_a_stranger_does_not_hold_up_the_end() {
    let folder = tempfile::tempdir().unwrap();
    let fifo = folder.path().join("fifo");
    // The stranger, in a tree of its own, opens the stdout of the first.
    let mut first = shell("echo $$; exec sleep 600");
    let leader = parse_running(&next_line(&mut first).await);
    let mut stranger = shell(&format!(
        "mkfifo '{0}'; echo made; read -r pid < '{0}'; exec 3> /proc/$pid/fd/1; \
         echo held; exec sleep 600",
        fifo.display()
    ));
    assert_eq!(next_line(&mut stranger).await, "made");
    fs::write(&fifo, format!("{}\n", leader.pid)).unwrap();
    assert_eq!(next_line(&mut stranger).await, "held");
    first.signal(Signal::Term);
    assert_eq!(run(first).await, by_signal(libc::SIGTERM));
    assert!(Identity::of(stranger.pid()).is_some());
}

#[tokio::test(flavor = "multi_thread")]
async fn the_leader_inherits_nothing_of_the_host() {
    let script = "ls /proc/self/fd | wc -l; grep -E '^Sig(Blk|Ign)' /proc/self/status; \
        cat /proc/$PPID/comm";
    let ended = run(shell(script)).await;
    let text = String::from_utf8(ended.stdout).unwrap();
    let lines: Vec<_> = text.lines().collect();
    // Its three streams, and the folder that `ls` lists.
    assert_eq!(lines[0].trim(), "4");
    for line in &lines[1..3] {
        let (_, set) = line.split_once('\t').unwrap();
        // 32 and 33 are the C library's own, and it lets nobody touch them.
        let set = u64::from_str_radix(set, 16).unwrap() & !(0b11 << 31);
        assert_eq!(set, 0, "{line}");
    }
    assert_eq!(lines[3..], ["ostler-keeper"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn two_hundred_at_once_leave_no_process_and_no_descriptor() {
    // The runtime makes some descriptors of its own at the first start.
    assert_eq!(run(shell("exit 0")).await, plain("", 0));
    let before = open_pipes_and_sockets();
    let mut tasks = tokio::task::JoinSet::new();
    for number in 0..200 {
        tasks.spawn(async move {
            let script = format!("setsid sleep 600 & echo {number}; exit {}", number % 100);
            let proc = shell(&script);
            let keeper = proc.pid();
            let ended = run(proc).await;
            assert_eq!(ended, plain(&format!("{number}\n"), number % 100));
            keeper
        });
    }
    let keepers = tasks.join_all().await;
    assert_eq!(keepers.iter().collect::<BTreeSet<_>>().len(), 200);
    for keeper in keepers {
        assert_eq!(stat(keeper), None);
    }
    // Tests of other threads have some open, but not for long.
    eventually("everything is closed", || open_pipes_and_sockets() <= before + 40).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_did_not_start_leaves_no_keeper() {
    for _ in 0..20 {
        refused(Path::new("/does/not/exist"), Path::new("/"));
    }
    let own = std::process::id().to_string();
    let is_failed = |pid: u32| stat(pid).is_some_and(|fields| fields[0] == "Z" && fields[1] == own);
    eventually("there are no zombies", || !all_pids().any(is_failed)).await;
}

/// Runs itself once more, with a mark, as the host that is killed.
#[tokio::test(flavor = "multi_thread")]
#[expect(clippy::disallowed_methods, reason = "a host under a keeper would be no proof")]
async fn killing_the_host_leaves_nobody() {
    if std::env::var_os(HOST_MARK).is_some() {
        return be_a_host().await;
    }
    let mut host = tokio::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "tree::killing_the_host_leaves_nobody", "--nocapture"])
        .env(HOST_MARK, "1")
        .stdout(std::process::Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    let mut reader = tokio::io::BufReader::new(host.stdout.take().unwrap());
    let mut tree = Vec::new();
    while tree.len() < 5 {
        let mut line = String::new();
        let reading = tokio::io::AsyncBufReadExt::read_line(&mut reader, &mut line);
        assert_ne!(within(reading).await.unwrap(), 0);
        if let Some((_, pid)) = line.split_once("pid ") {
            tree.push(parse_running(pid));
        }
    }
    host.start_kill().unwrap();
    within(host.wait()).await.unwrap();
    eventually("the tree has ended", || still_running(&tree).is_empty()).await;
}

const HOST_MARK: &str = "OSTLER_TEST_HOST";

/// Tells who is in the tree, and waits to be killed.
#[expect(clippy::print_stdout, reason = "the test reads what its host prints")]
async fn be_a_host() {
    let (mut proc, tree) = start_tree(":", "exec sleep 600").await;
    for one in tree {
        println!("pid {}", one.pid);
    }
    proc.next().await;
}

async fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    // Nobody tells of processes that are not our children: they are looked at.
    let mut looks = interval(Duration::from_millis(5));
    let waiting = async {
        while !holds() {
            looks.tick().await;
        }
    };
    assert!(timeout(LIMIT, waiting).await.is_ok(), "still not so: {what}");
}

fn send(pid: u32, signal: i32) {
    let pid = pid.try_into().unwrap();
    #[expect(unsafe_code, reason = "the standard library sends no signals")]
    // SAFETY: `kill` has no preconditions.
    let sent = unsafe { libc::kill(pid, signal) };
    assert_eq!(sent, 0);
}

fn all_pids() -> impl Iterator<Item = u32> {
    fs::read_dir("/proc")
        .unwrap()
        .filter_map(|entry| entry.unwrap().file_name().to_str()?.parse().ok())
}

fn descendants(root: u32) -> Vec<Identity> {
    let mut found = BTreeSet::from([root]);
    loop {
        let n_before = found.len();
        for pid in all_pids() {
            let parent = stat(pid).and_then(|fields| fields[1].parse().ok());
            if parent.is_some_and(|parent| found.contains(&parent)) {
                found.insert(pid);
            }
        }
        if found.len() == n_before {
            return found.into_iter().filter_map(Identity::of).collect();
        }
    }
}

fn open_pipes_and_sockets() -> usize {
    fs::read_dir("/proc/self/fd")
        .unwrap()
        .filter_map(|entry| fs::read_link(entry.ok()?.path()).ok())
        .filter(|target| {
            let target = target.to_string_lossy();
            ["pipe:", "socket:", "anon_inode:[pidfd]"].iter().any(|kind| target.starts_with(kind))
        })
        .count()
}

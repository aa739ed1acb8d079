//! Starting and stopping with hooks, whatever these do.

use std::path::Path;

use rustix::fs::{CWD, FileType, Mode, mknodat};

use super::*;
use crate::{
    config::Hook,
    gateway::testing::{Knobs, Rig},
    hooks::testing::{instruction, shell},
    queue::{JobState, Queue},
    store::{conversations::Address, testing::on_both},
};

const STOP: &[HookEvent] = &[HookEvent::Stop];
const START: &[HookEvent] = &[HookEvent::Start];
const LONG: Duration = Duration::from_secs(60);
const SHORT: Duration = Duration::from_millis(500);

fn with(hooks: Vec<Hook>) -> Knobs {
    Knobs { hooks, ..Knobs::default() }
}

fn to(conversation: &str, hook: Hook) -> Hook {
    Hook { conversation: Some(Address::new("local", conversation).unwrap()), ..hook }
}

fn touch(name: &str, folder: &Path) -> String {
    format!("touch {}", folder.join(name).display())
}

on_both! {
    async fn start_hooks_come_before_the_work_and_instructions_after(store: Store) {
        let folder = tempfile::tempdir().unwrap();
        let rig = Rig::new(store, with(vec![
            to("a", instruction("greet", START, "Good morning.")),
            shell("mark", START, &touch("mark", folder.path())),
            shell("broken", START, "exit 1"),
        ])).await;
        let happening = before_start(&rig.gateway.policy()).await.unwrap();
        assert!(folder.path().join("mark").exists() && rig.calls().is_empty());
        after_start(&rig.gateway, &happening).await;
        rig.ask("a", "hello").await;
        assert_eq!(rig.calls(), ["new|Good morning.", "s1|hello"]);
        rig.stop().await;
    }

    async fn a_start_hook_can_keep_the_gateway_from_starting(store: Store) {
        let folder = tempfile::tempdir().unwrap();
        let strict = |script| Hook { on_failure: OnFailure::Fail, ..shell("check", START, script) };
        let rig = Rig::new(store, with(vec![
            strict("exit 4"),
            shell("never", START, &touch("never", folder.path())),
        ])).await;
        let error = before_start(&rig.gateway.policy()).await.unwrap_err().to_string();
        assert_eq!(error, "the hook check did not let it: it ended with exit code 4");
        assert!(!folder.path().join("never").exists());
        rig.change(&with(vec![strict("exit 0")]));
        before_start(&rig.gateway.policy()).await.unwrap();
        rig.stop().await;
    }

    async fn stop_hooks_are_run_in_order_and_an_instruction_is_followed(store: Store) {
        let folder = tempfile::tempdir().unwrap();
        let rig = Rig::new(store, with(vec![
            shell("one", STOP, &touch("one", folder.path())),
            to("a", instruction("bye", STOP, "Write down what you know.")),
            shell("two", STOP, &format!("cp {} {}", folder.path().join("one").display(), folder.path().join("two").display())),
        ])).await;
        rig.ask("a", "hello").await;
        rig.gateway.close();
        before_stop(&rig.gateway, Instant::now() + LONG).await;
        assert_eq!(rig.calls(), ["new|hello", "s1|Write down what you know."]);
        assert!(folder.path().join("two").exists());
        rig.stop().await;
    }

    async fn a_hanging_hook_does_not_keep_the_gateway_from_stopping(store: Store) {
        let folder = tempfile::tempdir().unwrap();
        let pid = folder.path().join("pid");
        mknodat(CWD, &pid, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
        let rig = Rig::new(store, with(vec![
            shell("hangs", STOP, &format!("echo $$ > {}; sleep 1000", pid.display())),
            shell("never", STOP, &touch("never", folder.path())),
            to("a", instruction("too-late", STOP, "never")),
        ])).await;
        let over = CancellationToken::new();
        let until_hanging = async {
            let pid = time::timeout(LONG, tokio::fs::read_to_string(pid)).await.unwrap().unwrap();
            over.cancel();
            pid
        };
        let ((), pid) = tokio::join!(run_all(&rig.gateway, &over), until_hanging);
        let process = Path::new("/proc").join(pid.trim());
        while process.exists() {
            tokio::task::yield_now().await;
        }
        assert!(!folder.path().join("never").exists() && rig.calls().is_empty());
        rig.stop().await;
    }

    async fn an_instruction_that_waited_in_vain_is_not_left_to_the_next_gateway(store: Store) {
        let bye = to("a", instruction("bye", STOP, "too late"));
        let rig = Rig::new(store, with(vec![bye])).await;
        let gate = rig.send("a", "gate").await.job;
        rig.until_hanging().await;
        rig.gateway.close();
        before_stop(&rig.gateway, Instant::now() + SHORT).await;
        let rig = rig.again().await;
        rig.until_hanging().await;
        rig.open_gate().await;
        assert_eq!(rig.end_of(gate).await.1.state, JobState::Done);
        rig.ask("a", "hello").await;
        let asked: Vec<_> = rig.calls().iter().filter_map(|call| Some(call.split_once('|')?.1.to_owned())).collect();
        assert_eq!(asked, ["gate", "gate", "hello"]);
        rig.stop().await;
    }

    async fn an_instruction_that_takes_too_long_is_not_gone_on_with(store: Store) {
        let bye = to("a", instruction("bye", STOP, "hang"));
        let rig = Rig::new(store.clone(), with(vec![bye])).await;
        rig.gateway.close();
        let over = CancellationToken::new();
        let until_hanging = async {
            rig.until_hanging().await;
            over.cancel();
        };
        tokio::join!(run_all(&rig.gateway, &over), until_hanging);
        let rig = rig.again().await;
        rig.ask("a", "hello").await;
        let stats = Queue::new(store).stats().await.unwrap();
        assert_eq!((stats.cancelled, stats.done), (1, 1));
        assert_eq!(rig.calls().len(), 2);
        rig.stop().await;
    }
}

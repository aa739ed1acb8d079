//! Files that are dropped, whatever they are.

use std::os::unix::{ffi::OsStringExt as _, fs::PermissionsExt as _};

use rustix::fs::{CWD, FileType, mknodat};

use super::*;
use crate::{
    gateway::testing::{Knobs, Rig},
    store::{
        StoreError,
        messages::{self, Query, Start},
        testing::on_sqlite,
    },
};

/// A folder, a gateway that is given its files, and a clock.
struct Drop {
    rig: Rig,
    place: tempfile::TempDir,
    folder: Folder,
    now: Instant,
}

impl Drop {
    async fn new(store: crate::store::Store) -> Self {
        let place = tempfile::tempdir().unwrap();
        let folder = Folder::new(place.path().join("out/box"));
        let mut drop = Self {
            rig: Rig::new(store, Knobs::default()).await,
            place,
            folder,
            now: Instant::now(),
        };
        drop.look(0).await;
        drop
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.dir.join(name)
    }

    fn put(&self, name: &str, content: impl AsRef<[u8]>) {
        fs::write(self.path(name), content).unwrap();
    }

    /// Looks, this many seconds later.
    async fn look(&mut self, seconds: u64) {
        self.now += Duration::from_secs(seconds);
        let stop = CancellationToken::new();
        self.folder.look(&self.rig.gateway, self.now, &stop).await;
    }

    async fn texts(&self) -> Vec<String> {
        let (conversation, since, until) = (None, None, None);
        let query = Query { conversation, since, until, from: Start::Oldest, limit: 1000 };
        let read = self.rig.store.read(query, |conn, query| Box::pin(messages::read(conn, query)));
        let read: Result<_, StoreError> = read.await;
        read.unwrap().into_iter().filter_map(|message| message.text).collect()
    }

    fn names(&self) -> Vec<String> {
        let names = fs::read_dir(&self.folder.dir).unwrap();
        let names = names.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned());
        let mut names: Vec<_> = names.collect();
        names.sort();
        names
    }

    fn reason(&self, name: &str) -> String {
        fs::read_to_string(self.path(&format!("failed/{name}.reason"))).unwrap()
    }
}

async fn check<F: Future<Output = Drop>>(test: impl FnOnce(Drop) -> F) {
    on_sqlite(|store| async move {
        let drop = test(Drop::new(store).await).await;
        drop.rig.stop().await;
    })
    .await;
}

const HI: &str = r#"{"to":"local:main","text":"hi"}"#;

#[tokio::test]
async fn the_folder_is_made_and_a_file_is_sent_once_and_removed() {
    check(|mut drop| async move {
        let mode = fs::metadata(&drop.folder.dir).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o700);
        drop.put("a.json", HI);
        drop.look(1).await;
        drop.look(1).await;
        assert_eq!(drop.texts().await, ["hi"]);
        assert!(drop.names().is_empty());
        drop
    })
    .await;
}

#[tokio::test]
async fn a_text_is_sent_when_it_has_not_changed_for_a_while() {
    check(|mut drop| async move {
        drop.put("a.md", "---\nto: local:main\n---\nhalf");
        drop.look(1).await;
        drop.look(1).await;
        drop.put("a.md", "---\nto: local:main\n---\nhalf and half");
        drop.look(1).await;
        drop.look(1).await;
        assert!(drop.texts().await.is_empty());
        drop.look(1).await;
        assert_eq!(drop.texts().await, ["half and half"]);
        drop
    })
    .await;
}

#[tokio::test]
async fn an_object_that_is_half_written_is_waited_for_and_then_set_aside() {
    check(|mut drop| async move {
        drop.put("a.json", &HI[..HI.len() - 1]);
        drop.put("b.json", &HI[..7]);
        drop.look(1).await;
        drop.put("a.json", HI);
        drop.look(1).await;
        assert_eq!(drop.texts().await, ["hi"]);
        assert_eq!(drop.names(), ["b.json"]);
        drop.look(1).await;
        assert_eq!(drop.names(), ["failed"]);
        assert!(drop.reason("b.json").contains("EOF"));
        assert_eq!(fs::read_to_string(drop.path("failed/b.json")).unwrap(), &HI[..7]);
        // Another of the same name keeps its own place.
        drop.put("b.json", "no");
        for _ in 0..3 {
            drop.look(1).await;
        }
        assert!(drop.reason("b.json.2").contains("expected"));
        drop
    })
    .await;
}

#[tokio::test]
async fn what_is_no_message_is_set_aside_or_left_alone() {
    check(|mut drop| async move {
        drop.rig.ask("main", "hello").await;
        std::os::unix::fs::symlink("/etc/hostname", drop.path("link.txt")).unwrap();
        mknodat(CWD, drop.path("pipe.json"), FileType::Fifo, Mode::RUSR, 0).unwrap();
        let large = File::create(drop.path("large.txt")).unwrap();
        large.set_len(1024 * 1024 * 1024).unwrap();
        drop.put("latin.txt", b"caf\xe9");
        drop.put("empty.md", "");
        drop.put("pigeon.json", r#"{"to":"pigeon:roof","text":"x"}"#);
        drop.put(&format!("{}.json", "n".repeat(250)), "no");
        let alone = [".hidden.json", "a.json.tmp", "b.md.part", "notes.pdf"];
        for name in alone {
            drop.put(name, HI);
        }
        fs::create_dir(drop.path("folder.md")).unwrap();
        let strange = OsString::from_vec(b"\xff\n.json".to_vec());
        fs::write(drop.folder.dir.join(&strange), HI).unwrap();
        drop.look(1).await;
        drop.look(2).await;
        let mut expected = Vec::from(alone.map(str::to_owned));
        expected.extend(["failed".to_owned(), "folder.md".to_owned()]);
        expected.sort();
        assert_eq!(drop.names(), expected);
        for (name, says) in [
            ("link.txt", "symbolic link"),
            ("pipe.json", "no file"),
            ("large.txt", "1 MiB"),
            ("latin.txt", "UTF-8"),
            ("empty.md", "no text"),
            ("pigeon.json", "no channel"),
        ] {
            assert!(drop.reason(name).contains(says), "{name}: {}", drop.reason(name));
        }
        assert_eq!(fs::read_dir(drop.path("failed")).unwrap().count(), 14);
        assert_eq!(drop.texts().await, ["hello", "hello", "hi"]);
        drop
    })
    .await;
}

#[tokio::test]
async fn setting_aside_follows_no_links_that_somebody_put_there() {
    check(|mut drop| async move {
        let elsewhere = drop.place.path().join("elsewhere");
        fs::create_dir(&elsewhere).unwrap();
        std::os::unix::fs::symlink(&elsewhere, drop.path("failed")).unwrap();
        drop.put("a.json", "no");
        drop.put("b.json", HI);
        drop.look(1).await;
        drop.look(2).await;
        // It stays, nothing is anywhere else, and others are sent.
        assert_eq!(drop.names(), ["a.json", "failed"]);
        assert_eq!(fs::read_dir(&elsewhere).unwrap().count(), 0);
        assert!(drop.folder.is_told);
        assert_eq!(drop.texts().await, ["hi"]);
        fs::remove_file(drop.path("failed")).unwrap();
        fs::create_dir(drop.path("failed")).unwrap();
        let victim = elsewhere.join("victim");
        for name in ["a.json.reason", "a.json.2"] {
            std::os::unix::fs::symlink(&victim, drop.path(&format!("failed/{name}"))).unwrap();
        }
        drop.look(1).await;
        assert!(!victim.exists());
        assert_eq!(fs::read_to_string(drop.path("failed/a.json.3")).unwrap(), "no");
        assert!(drop.reason("a.json.3").contains("expected"));
        assert!(!drop.folder.is_told);
        drop
    })
    .await;
}

#[tokio::test]
async fn a_crash_between_storing_and_removing_sends_once_and_the_same_words_later_are_sent_again() {
    check(|mut drop| async move {
        drop.put("a.json", HI);
        let before = fs::File::open(drop.path("a.json")).unwrap();
        let changed = before.metadata().unwrap().modified().unwrap();
        drop.look(1).await;
        // As it was before the crash, for a gateway that knows nothing of it.
        drop.put("a.json", HI);
        fs::File::options()
            .write(true)
            .open(drop.path("a.json"))
            .unwrap()
            .set_modified(changed)
            .unwrap();
        drop.folder = Folder::new(drop.folder.dir.clone());
        drop.look(1).await;
        assert_eq!(drop.texts().await, ["hi"]);
        assert!(drop.names().is_empty());
        drop.put("a.json", HI);
        let later = changed + Duration::from_secs(1);
        fs::File::options()
            .write(true)
            .open(drop.path("a.json"))
            .unwrap()
            .set_modified(later)
            .unwrap();
        drop.look(1).await;
        assert_eq!(drop.texts().await, ["hi", "hi"]);
        // A name of its own makes it the same for ever.
        for text in ["one", "two"] {
            drop.put("b.json", format!(r#"{{"to":"local:main","text":"{text}","id":"b"}}"#));
            drop.look(1).await;
        }
        assert_eq!(drop.texts().await, ["hi", "hi", "one"]);
        drop
    })
    .await;
}

#[tokio::test]
async fn many_files_are_sent_in_the_order_of_their_names() {
    check(|mut drop| async move {
        let n_files = 300;
        for number in (0..n_files).rev() {
            drop.put(
                &format!("{number:04}.json"),
                format!(r#"{{"to":"local:a","text":"{number}"}}"#),
            );
        }
        drop.look(1).await;
        let expected: Vec<_> = (0..n_files).map(|number| number.to_string()).collect();
        assert_eq!(drop.texts().await, expected);
        assert!(drop.names().is_empty());
        drop
    })
    .await;
}

#[tokio::test]
async fn a_folder_that_cannot_be_used_is_told_once_and_tried_again() {
    check(|mut drop| async move {
        fs::remove_dir(&drop.folder.dir).unwrap();
        fs::write(&drop.folder.dir, "in the way").unwrap();
        drop.look(1).await;
        assert!(drop.folder.is_told);
        drop.look(1).await;
        fs::remove_file(&drop.folder.dir).unwrap();
        drop.look(1).await;
        assert!(!drop.folder.is_told);
        drop.put("a.json", HI);
        drop.look(1).await;
        assert_eq!(drop.texts().await, ["hi"]);
        assert!(drop.place.path().exists());
        drop
    })
    .await;
}

#[tokio::test]
async fn while_the_gateway_stops_files_stay() {
    check(|mut drop| async move {
        drop.rig.gateway.close();
        drop.put("a.json", HI);
        drop.look(1).await;
        assert_eq!(drop.names(), ["a.json"]);
        assert!(!drop.folder.is_told && drop.texts().await.is_empty());
        drop
    })
    .await;
}

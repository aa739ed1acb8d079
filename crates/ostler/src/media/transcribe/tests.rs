//! Commands of every sort, and what is heard by them.

use std::{fs, path::PathBuf};

use proptest::prelude::*;
use tempfile::TempDir;

use super::*;

/// A recording, and a place to keep what is heard in it.
struct Desk {
    data: TempDir,
    job: JobId,
}

impl Desk {
    fn new() -> Self {
        Self { data: tempfile::tempdir().unwrap(), job: JobId::new() }
    }

    fn root(&self) -> PathBuf {
        self.data.path().join("media")
    }

    /// Returns what a script hears that gets the path as its first argument.
    async fn hear(&self, script: &str) -> Result<String, Unheard> {
        self.hear_within(script, Duration::from_secs(60)).await
    }

    async fn hear_within(&self, script: &str, timeout: Duration) -> Result<String, Unheard> {
        let words = ["sh", "-c", script, "sh", "{{MediaPath}}", "{{MediaType}}{{Nope}}"];
        let words = words.map(str::to_owned).into();
        let environment = [("PATH".into(), "/usr/bin:/bin".into())].into();
        self.by(&Transcriber { words, environment, timeout }).await
    }

    async fn by(&self, transcriber: &Transcriber) -> Result<String, Unheard> {
        let (job, path, kind) = (self.job, "/m/1-a b.ogg", "audio/ogg");
        let recording = Recording { job, number: 1, path, kind };
        transcriber.hear(&self.root(), recording, Instant::now() + LIMIT).await
    }

    /// Returns the names of what is kept.
    fn names(&self) -> Vec<String> {
        let Ok(entries) = fs::read_dir(self.root().join(self.job.to_string())) else {
            return Vec::new();
        };
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
    }
}

#[tokio::test]
async fn a_text_is_what_the_command_prints_and_is_made_once() {
    let desk = Desk::new();
    let count = desk.data.path().join("count");
    let script = format!("echo x >> {}; echo \" $1, $2 \"; echo oops >&2", count.display());
    for _ in 0..2 {
        assert_eq!(desk.hear(&script).await.as_deref(), Ok("/m/1-a b.ogg, audio/ogg"));
    }
    assert_eq!(fs::read_to_string(&count).unwrap(), "x\n");
    assert_eq!(desk.names(), [".1.transcript"]);
}

#[tokio::test]
async fn without_a_variable_for_it_the_path_is_the_last_word() {
    let words = vec!["echo".to_owned(), "-n".to_owned()];
    let config = config::Transcribe { command: Some(words), ..config::Transcribe::default() };
    let outer = [("PATH".into(), "/usr/bin:/bin".into()), ("TOKEN".into(), "x".into())].into();
    let transcriber = Transcriber::new(&config, &outer).unwrap();
    assert!(!format!("{transcriber:?}").contains("TOKEN"));
    assert_eq!(Desk::new().by(&transcriber).await.as_deref(), Ok("/m/1-a b.ogg"));
    assert_eq!(Transcriber::new(&config::Transcribe::default(), &outer), None);
}

#[tokio::test]
async fn a_command_that_is_of_no_use_is_told_and_run_again() {
    for (script, unheard) in [
        ("kill -9 $$", Unheard::Failed),
        ("echo half; exit 3", Unheard::Failed),
        ("yes | head -c 1000000000", Unheard::TooMuch),
        ("yes; echo never", Unheard::TooMuch),
        ("true", Unheard::Nothing),
        ("printf ' \\n.\\033\\0 '", Unheard::Nothing),
        ("head -c 1000 /dev/zero", Unheard::Nothing),
    ] {
        let desk = Desk::new();
        assert_eq!(desk.hear(script).await, Err(unheard), "{script}");
        assert_eq!(desk.names(), Vec::<String>::new());
        assert_eq!(desk.hear("echo now").await.as_deref(), Ok("now"));
    }
    let words = vec!["no-such-program".to_owned()];
    let transcriber =
        Transcriber { words, environment: Variables::new(), timeout: Duration::from_secs(60) };
    assert_eq!(Desk::new().by(&transcriber).await, Err(Unheard::NotRun));
}

#[tokio::test]
async fn one_that_hangs_is_ended() {
    let desk = Desk::new();
    let limit = Duration::from_millis(50);
    assert_eq!(desk.hear_within("sleep 1000", limit).await, Err(Unheard::Late));
    assert_eq!(desk.names(), Vec::<String>::new());
}

#[tokio::test]
async fn what_is_no_text_is_made_one() {
    let desk = Desk::new();
    let heard = desk.hear("printf 'caf\\351 \\033[1mau\\000 lait\\r\\nyes'").await;
    assert_eq!(heard.as_deref(), Ok("caf\u{fffd} [1mau lait\nyes"));
    let long = Desk::new().hear("head -c 65535 /dev/zero | tr '\\0' '\\351'; printf a").await;
    assert_eq!(long, Err(Unheard::Nothing));
    let long = Desk::new().hear("printf a; head -c 65535 /dev/zero | tr '\\0' '\\351'").await;
    let long = long.unwrap();
    assert!(long.len() <= LONGEST && long.starts_with("a\u{fffd}"));
}

proptest! {
    #[test]
    fn whatever_is_printed_is_a_harmless_text_or_nothing(bytes: Vec<u8>) {
        if let Some(text) = readable(&bytes) {
            prop_assert!(!text.contains(|c: char| c.is_control() && !"\n\t".contains(c)));
            prop_assert_eq!(readable(text.as_bytes()), Some(text));
        }
    }
}

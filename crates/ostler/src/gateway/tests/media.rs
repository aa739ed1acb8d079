//! What came with a message, from its URL to what the agent is asked.

use super::*;
use crate::{
    channel::testing::Files,
    config,
    gateway::inbound::Details,
    media::{
        Rules,
        caps::Caps,
        transcribe::Transcriber,
        vouched::{Hosts, Vouched},
    },
};

/// Rules by which files of webhooks are fetched from a server.
fn knobs(files: &Files) -> Knobs {
    let vouched = Vouched::open(Hosts::own(&format!("http://{}", files.host)).unwrap());
    let vouched = [("webhook", vec![vouched])].into();
    let media = Rules { caps: Caps::all(1024), vouched, ..Rules::default() };
    Knobs { media, retries: 1, ..Knobs::default() }
}

/// The same, with a script that hears recordings; their path is its first argument.
fn hearing(files: &Files, script: &str) -> Knobs {
    let words = ["sh", "-c", script, "sh", "{{MediaPath}}"].map(str::to_owned);
    let command = Some(words.into());
    let config = config::Transcribe { command, ..config::Transcribe::default() };
    let environment = [("PATH".into(), "/usr/bin:/bin".into())].into();
    let mut knobs = knobs(files);
    knobs.media.transcriber = Transcriber::new(&config, &environment);
    knobs
}

fn with_files(text: &str, files: &Files, paths: &[&str]) -> Inbound {
    let url =
        |path: &&str| json!({ "url": format!("http://{}/{path}", files.host), "type": "x/y" });
    let media: Vec<_> = paths.iter().map(url).collect();
    let details: Details = serde_json::from_value(json!({ "media": media })).unwrap();
    let address = Address::new("webhook", "http://127.0.0.1:9/x").unwrap();
    Inbound { address, details, ..inbound("unused", text) }
}

on_both! {
    async fn what_came_with_a_message_lies_on_this_machine_when_its_turn_begins(store: Store) {
        let files = Files::start(&[("/a.bin", b"\x89PNG\r\n\x1a\n"), ("/large", &[0; 1025])]).await;
        let rig = Rig::new(store, knobs(&files)).await;
        let message = with_files("stumble", &files, &["a.bin", "large", "gone"]);
        let job = rig.try_send(message).await.unwrap().job;
        let (_, ending) = rig.end_of(job).await;
        assert_eq!(ending.state, JobState::Done);
        let path = rig.path("data/media").join(job.to_string()).join("1-a.bin.png");
        assert_eq!(fs::read(&path).unwrap(), b"\x89PNG\r\n\x1a\n");
        let asked = format!(
            "new|[Attached: image/png, {}]/[An attachment could not be fetched: it is larger than \
             1 MB]/[An attachment could not be fetched: it is gone]//stumble",
            path.display()
        );
        // The second attempt uses what the first one fetched.
        assert_eq!(rig.calls(), [asked.clone(), asked]);
        assert_eq!(files.asked().iter().filter(|path| *path == "/a.bin").count(), 1);
        let [reply] = &replies(&rig.store).await[..] else { panic!("there is one reply") };
        assert_eq!(reply["cwd"], rig.path("").to_str().unwrap().trim_end_matches('/'));
        rig.stop().await;
    }

    async fn what_is_spoken_in_a_recording_is_told_and_heard_once(store: Store) {
        let files = Files::start(&[("/a", b"OggS"), ("/b.png", b"GIF89a"), ("/c", b"OggSx")]).await;
        // It hears something in the first alone.
        let rig = Rig::new(store, hearing(&files, "grep -q x \"$1\" || echo hello")).await;
        let message = with_files("", &files, &["a", "b.png", "c"]);
        let job = rig.try_send(message).await.unwrap().job;
        let (_, ending) = rig.end_of(job).await;
        assert_eq!(ending.state, JobState::Done);
        let folder = rig.path("data/media").join(job.to_string());
        let at = |name: &str| folder.join(name).display().to_string();
        let asked = format!(
            "new|[Attached: audio/ogg, {}]/[Attached: image/gif, {}]/[Attached: audio/ogg, {}; it \
             could not be transcribed: nothing was heard in it]//Transcript of the recording:/hello",
            at("1-a.ogg"), at("2-b.png.gif"), at("3-c.ogg"),
        );
        assert_eq!(rig.calls(), [asked]);
        rig.stop().await;
    }

    async fn a_further_attempt_hears_a_recording_no_more(store: Store) {
        let files = Files::start(&[("/a", b"OggS")]).await;
        let rig = Rig::new(store, hearing(&files, "echo x >> \"$1.heard\"; echo oats")).await;
        let job = rig.try_send(with_files("stumble", &files, &["a"])).await.unwrap().job;
        let (_, ending) = rig.end_of(job).await;
        assert_eq!(ending.state, JobState::Done);
        let path = rig.path("data/media").join(job.to_string()).join("1-a.ogg");
        let asked = format!(
            "new|[Attached: audio/ogg, {}]//Transcript of the recording:/oats//stumble",
            path.display()
        );
        assert_eq!(rig.calls(), [asked.clone(), asked]);
        let heard = path.with_file_name("1-a.ogg.heard");
        assert_eq!(fs::read_to_string(heard).unwrap(), "x\n");
        rig.stop().await;
    }

    async fn a_job_that_is_cancelled_waits_for_no_recording(store: Store) {
        let files = Files::start(&[("/a", b"OggS")]).await;
        let rig = Rig::new(store, hearing(&files, "> \"$1.begun\"; exec sleep 1000")).await;
        let job = rig.try_send(with_files("hello", &files, &["a"])).await.unwrap().job;
        let begun = rig.path("data/media").join(job.to_string()).join("1-a.ogg.begun");
        while !begun.exists() {
            tokio::task::yield_now().await;
        }
        let cancelled = rig.gateway.cancel_job(job).await.unwrap();
        assert_eq!(cancelled, CancelOutcome::Requested);
        let (_, ending) = rig.end_of(job).await;
        assert_eq!(ending.state, JobState::Cancelled);
        assert_eq!(rig.calls(), Vec::<String>::new());
        rig.stop().await;
    }

    async fn a_job_that_is_cancelled_waits_for_no_download(store: Store) {
        let files = Files::start(&[]).await;
        let rig = Rig::new(store, knobs(&files)).await;
        let job = rig.try_send(with_files("hello", &files, &["held"])).await.unwrap().job;
        files.until_held().await;
        let cancelled = rig.gateway.cancel_job(job).await.unwrap();
        assert_eq!(cancelled, CancelOutcome::Requested);
        let (_, ending) = rig.end_of(job).await;
        assert_eq!(ending.state, JobState::Cancelled);
        assert_eq!(rig.calls(), Vec::<String>::new());
        let folder = rig.path("data/media").join(job.to_string());
        assert_eq!(fs::read_dir(folder).unwrap().count(), 0);
        rig.stop().await;
    }

    async fn nothing_is_fetched_for_a_channel_that_vouches_for_nobody(store: Store) {
        let files = Files::start(&[("/a", b"x")]).await;
        let rig = Rig::new(store, Knobs::default()).await;
        let job = rig.try_send(with_files("look", &files, &["a"])).await.unwrap().job;
        rig.end_of(job).await;
        assert_eq!(rig.calls(), [format!("new|[Attached: x/y, http://{}/a]//look", files.host)]);
        assert!(files.asked().is_empty() && !rig.path("data/media").exists());
        rig.stop().await;
    }
}

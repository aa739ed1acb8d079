//! What came with a message, from its URL to what the agent is asked.

use super::*;
use crate::{
    channel::testing::Files,
    gateway::inbound::Details,
    media::{Rules, incoming::Vouched},
};

/// Rules by which files of webhooks are fetched from a server.
fn knobs(files: &Files) -> Knobs {
    let vouched = Vouched { hosts: vec![files.host.clone()], may_be_private: true };
    let media =
        Rules { max_bytes: 1024, vouched: [("webhook", vec![vouched])].into(), ..Rules::default() };
    Knobs { media, retries: 1, ..Knobs::default() }
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
        let path = rig.path("data/media").join(job.to_string()).join("1-a.bin");
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

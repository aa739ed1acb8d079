//! Where streams begin and end, and who may read them.

use std::time::Duration;

use serde_json::json;

use super::*;
use crate::{
    api::testing::{TestKey, make_key},
    config::Api,
    gateway::testing::Knobs,
    key::Scope,
    store::{
        Keep,
        testing::{delete_projects, on_both, revoke_keys},
    },
};

/// A service whose streams show often that they live.
async fn lively(store: Store) -> Rig {
    let heartbeat = Duration::from_millis(50);
    let api = Api { heartbeat, ..Api::default() };
    Rig::with(store, Knobs { api, ..Knobs::default() }).await
}

on_both! {
    async fn who_reads_a_stream_is_counted_until_he_goes(store: Store) {
        let rig = lively(store).await;
        let path = format!("/projects/{}/events", make_project(&rig).await);
        let counted = |n_readers: usize| {
            let line = format!("\nostler_sse_subscribers {n_readers}\n");
            rig.service.gateway().telemetry().text(None).contains(&line)
        };
        let mut streams = vec![Stream::open(&rig, &path).await, Stream::open(&rig, &path).await];
        for stream in &mut streams {
            stream.next().await.unwrap();
        }
        assert!(counted(2));
        drop(streams);
        // It is noticed with the next heartbeat.
        let gone = async {
            while !counted(0) {
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(LIMIT, gone).await.unwrap();
        rig.stop().await;
    }

    async fn a_project_is_followed_from_now_on_and_a_stream_from_its_beginning(store: Store) {
        let rig = Rig::new(store.clone()).await;
        let (project, other) = (make_project(&rig).await, ProjectId::new());
        let path = format!("/projects/{project}/events");
        let before = append(&store, vec![output(project, Some("s"), "before")]).await;
        let mut all = Stream::open(&rig, &path).await;
        let mut one = Stream::open(&rig, &format!("{path}?stream_id=s")).await;
        let first = all.next().await.unwrap();
        assert_eq!((first.id, first.name.as_str()), (before, "connected"));
        let data = json!({ "project_id": project, "stream_id": null, "last_event_id": before });
        assert_eq!(first.data, data);
        let first = one.next().await.unwrap();
        assert_eq!((first.id, &first.data["stream_id"]), (0, &json!("s")));
        let after = vec![
            output(other, Some("s"), "of another"),
            output(project, Some("t"), "of another stream"),
            output(project, None, "of no command"),
            output(project, Some("s"), "of the stream"),
        ];
        let last = append(&store, after).await;
        let mut lines = Vec::new();
        for _ in 0..3 {
            lines.push(all.next().await.unwrap().data["line"].clone());
        }
        assert_eq!(lines, ["of another stream", "of no command", "of the stream"]);
        assert_eq!(one.next().await.unwrap().data["line"], "before");
        let told = one.next().await.unwrap();
        assert_eq!((told.id, &told.data["line"]), (last, &json!("of the stream")));
        for header in ["content-type", "cache-control", "x-accel-buffering"] {
            let value = &all.response.headers()[header];
            let wanted = ["text/event-stream", "no-store", "no"];
            assert!(wanted.contains(&value.to_str().unwrap()), "{header}: {value:?}");
        }
        drop((all, one));
        rig.stop().await;
    }

    async fn a_stream_goes_on_behind_the_event_that_is_named(store: Store) {
        let rig = Rig::new(store.clone()).await;
        let project = make_project(&rig).await;
        let path = format!("/projects/{project}/events");
        let numbers = ["a", "b", "c"].map(|text| output(project, None, text)).to_vec();
        let last = append(&store, numbers).await;
        let param = format!("{path}?last_event_id={}", last - 2);
        for (path, header, expected) in [
            (&param, None, last - 1),
            (&path, Some(last - 1), last),
            // The header is the newer of the two.
            (&param, Some(last - 1), last),
        ] {
            let mut stream = Stream::open_after(&rig, path, header).await;
            let first = stream.next().await.unwrap();
            assert_eq!((first.id, first.data["last_event_id"].as_i64()), (expected - 1, Some(expected - 1)));
            assert_eq!(stream.next().await.unwrap().id, expected);
        }
        // An id of another store: what comes from now on.
        let mut stream = Stream::open_after(&rig, &path, Some(last + 1000)).await;
        assert_eq!(stream.next().await.unwrap().id, last);
        let next = append(&store, vec![output(project, None, "d")]).await;
        assert_eq!(stream.next().await.unwrap().id, next);
        drop(stream);
        rig.stop().await;
    }

    async fn what_is_not_right_is_refused(store: Store) {
        let rig = Rig::new(store.clone()).await;
        let project = make_project(&rig).await;
        let path = format!("/projects/{project}/events");
        let long = format!("{path}?stream_id={}", "x".repeat(257));
        for wrong in ["?last_event_id=x", "?last_event_id=-1", "?stream_id=", "?stream_id=%00", "?x=1"] {
            let answer = rig.get(&format!("{path}{wrong}")).await;
            assert_eq!((answer.status, answer.code()), (400, "BAD_REQUEST"), "{wrong}");
        }
        assert_eq!(rig.get(&long).await.code(), "BAD_REQUEST");
        for header in ["x", "-1", "1.5"] {
            let request = rig.request("GET", &path).bearer_auth(&rig.admin);
            let sent = request.header("Last-Event-ID", header).send().await.unwrap();
            assert_eq!(sent.status(), 400, "{header}");
        }
        let gone = rig.get(&format!("/projects/{}/events", ProjectId::new())).await;
        assert_eq!(gone.code(), "NOT_FOUND");
        let key = rig.key(&[Scope::ProjectsExecute]).await;
        assert_eq!(rig.call_with(&key, "GET", &path, None).await.code(), "FORBIDDEN");
        let projects = Some(vec![ProjectId::new()]);
        let key = TestKey { scopes: vec![Scope::ProjectsRead], projects, ..TestKey::default() };
        let key = make_key(&store, key).await;
        assert_eq!(rig.call_with(&key, "GET", &path, None).await.code(), "NOT_FOUND");
        let bare = rig.request("GET", &path).send().await.unwrap();
        assert_eq!(bare.status(), 401);
        rig.stop().await;
    }

    async fn a_silent_stream_shows_that_it_lives_and_where_it_stands(store: Store) {
        let rig = lively(store.clone()).await;
        let project = make_project(&rig).await;
        let mut stream = Stream::open(&rig, &format!("/projects/{project}/events")).await;
        stream.next().await.unwrap();
        let heartbeat = stream.next().await.unwrap();
        assert_eq!((heartbeat.name.as_str(), heartbeat.id), ("heartbeat", 0));
        // What others do moves it on, so that it need not be read again.
        let last = append(&store, vec![output(ProjectId::new(), None, "of another")]).await;
        loop {
            let told = stream.next().await.unwrap();
            assert_eq!(told.name, "heartbeat");
            if told.id == last {
                break;
            }
        }
        drop(stream);
        rig.stop().await;
    }

    async fn a_key_that_was_revoked_reads_no_more(store: Store) {
        let rig = lively(store.clone()).await;
        let project = make_project(&rig).await;
        let mut stream = Stream::open(&rig, &format!("/projects/{project}/events")).await;
        assert_eq!(stream.next().await.unwrap().name, "connected");
        revoke_keys(&store).await;
        assert_eq!(stream.next_event().await, None);
        rig.stop().await;
    }

    async fn a_key_that_expires_reads_no_more(store: Store) {
        let mut rig = lively(store.clone()).await;
        let project = make_project(&rig).await;
        // Time enough to begin to listen, also on a machine that has much else to do.
        let expires_at = Some(Millis::now().after(Duration::from_secs(5)));
        let key = TestKey { scopes: vec![Scope::ProjectsRead], expires_at, ..TestKey::default() };
        rig.admin = make_key(&store, key).await;
        let mut stream = Stream::open(&rig, &format!("/projects/{project}/events")).await;
        assert_eq!(stream.next().await.unwrap().name, "connected");
        assert_eq!(stream.next_event().await, None);
        assert!(expires_at.is_some_and(|at| Millis::now() >= at));
        rig.stop().await;
    }

    async fn the_stream_of_a_deleted_project_ends(store: Store) {
        let rig = lively(store.clone()).await;
        let project = make_project(&rig).await;
        let mut stream = Stream::open(&rig, &format!("/projects/{project}/events")).await;
        assert_eq!(stream.next().await.unwrap().name, "connected");
        delete_projects(&store).await;
        assert_eq!(stream.next_event().await, None);
        rig.stop().await;
    }

    async fn streams_end_cleanly_with_the_gateway(store: Store) {
        let rig = Rig::new(store.clone()).await;
        let project = make_project(&rig).await;
        let path = format!("/projects/{project}/events");
        let mut stream = Stream::open(&rig, &path).await;
        assert_eq!(stream.next().await.unwrap().name, "connected");
        rig.service.end_streams();
        assert_eq!(stream.next_event().await, None);
        let late = rig.get(&path).await;
        assert_eq!((late.status, late.code()), (503, "SERVICE_UNAVAILABLE"));
        assert!(late.headers.contains_key("retry-after"));
        rig.stop().await;
    }

    async fn who_comes_too_late_is_told_what_was_removed(store: Store) {
        let rig = Rig::new(store.clone()).await;
        let project = make_project(&rig).await;
        let path = format!("/projects/{project}/events");
        let texts = ["a", "b"].map(|text| output(project, Some("s"), text)).to_vec();
        let last = append(&store, texts).await;
        let keep = Keep { events: Some(Duration::from_secs(1)), ..Keep::default() };
        store.clean_up(keep, Millis(10_000)).await.unwrap();
        let next = append(&store, vec![output(project, Some("s"), "c")]).await;
        let mut stream = Stream::open_after(&rig, &path, Some(last - 1)).await;
        assert_eq!(stream.next().await.unwrap().name, "connected");
        let missed = stream.next().await.unwrap();
        assert_eq!((missed.id, missed.name.as_str()), (last, "missed"));
        assert_eq!(missed.data, json!({ "removed_up_to": last }));
        assert_eq!(stream.next().await.unwrap().id, next);
        // Whoever had nothing before has missed nothing.
        let mut stream = Stream::open(&rig, &format!("{path}?stream_id=s")).await;
        assert_eq!(stream.next().await.unwrap().id, last);
        assert_eq!(stream.next().await.unwrap().id, next);
        drop(stream);
        rig.stop().await;
    }
}

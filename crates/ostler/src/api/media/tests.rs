//! Links as services on the Internet see them.

use std::time::Duration;

use futures_util::future::join_all;
use reqwest::header::HeaderMap;

use super::*;
use crate::{
    api::testing::Rig,
    channel::chat::{Attachment, Content},
    logging::{self, Level},
    media::hosting::VALID,
    store::testing::on_sqlite,
};

/// Offers a file, and returns the path of its link.
fn offer(rig: &Rig, name: &str, bytes: &[u8], ago: Duration) -> String {
    let dir = rig.gateway.policy.borrow().media.dir.clone().unwrap();
    let file = Attachment { name: name.to_owned(), content: Content::Bytes(bytes.into()) };
    Hosting::new(dir).offer(&file, Millis::now().before(ago)).unwrap().path()
}

async fn fetch(rig: &Rig, method: &str, path: &str) -> (u16, HeaderMap, Vec<u8>) {
    let answer = rig.request(method, path).send().await.unwrap();
    let (status, headers) = (answer.status().as_u16(), answer.headers().clone());
    (status, headers, answer.bytes().await.unwrap().to_vec())
}

#[tokio::test]
async fn a_link_leads_to_its_file_once_and_no_line_of_the_log_has_it() {
    let (logger, lines) = logging::kept(Level::Trace);
    let _guard = tracing::subscriber::set_default(logger);
    on_sqlite(async |store| {
        let rig = Rig::new(store).await;
        let path = offer(&rig, "größe.html", b"\x89PNG\r\n\x1a\n<html>", Duration::ZERO);
        for method in ["HEAD", "HEAD", "GET"] {
            let (status, headers, body) = fetch(&rig, method, &path).await;
            assert_eq!(status, 200);
            let header = |name: &str| headers[name].to_str().unwrap().to_owned();
            assert_eq!(
                (header("content-type"), header("content-length")),
                ("image/png".into(), "14".into())
            );
            let name = "inline; filename=\"gr__e.html\"; filename*=UTF-8''gr%C3%B6%C3%9Fe.html";
            assert_eq!(header("content-disposition"), name);
            assert_eq!(header("cache-control"), "no-store");
            assert_eq!(header("x-content-type-options"), "nosniff");
            assert_eq!(header("accept-ranges"), "none");
            assert_eq!(body.is_empty(), method == "HEAD");
        }
        for (method, expected) in [("GET", 404), ("HEAD", 200), ("GET", 404)] {
            let (status, _, body) = fetch(&rig, method, &path).await;
            assert_eq!((status, body.is_empty()), (expected, method == "HEAD"));
        }
        let (word, lines) = (path.rsplit('/').next().unwrap(), lines.lock().unwrap().clone());
        assert!(lines.contains("/media/{token}") && !lines.contains(word), "{lines}");
        rig.stop().await;
    })
    .await;
}

#[tokio::test]
async fn of_twenty_at_once_one_gets_the_file() {
    on_sqlite(async |store| {
        let rig = Rig::new(store).await;
        let path = offer(&rig, "a.txt", b"oats", Duration::ZERO);
        let all = join_all((0..20).map(|_| fetch(&rig, "GET", &path))).await;
        let (served, refused): (Vec<_>, Vec<_>) = all.into_iter().partition(|it| it.0 == 200);
        assert!(refused.iter().all(|it| it.0 == 404));
        let [(_, _, body)] = &served[..] else { panic!("{} were served", served.len()) };
        assert_eq!(body, b"oats");
        rig.stop().await;
    })
    .await;
}

#[tokio::test]
async fn whatever_is_wrong_with_a_link_the_answer_is_the_same() {
    on_sqlite(async |store| {
        let rig = Rig::new(store).await;
        let over = offer(&rig, "a.txt", b"oats", VALID);
        let good = offer(&rig, "a.txt", b"oats", Duration::ZERO);
        let used = offer(&rig, "a.txt", b"oats", Duration::ZERO);
        fetch(&rig, "GET", &used).await;
        let none = format!("/media/{}", "a".repeat(43));
        let (slash, long) = (format!("{good}%2f"), format!("/media/{}", "a".repeat(5000)));
        for path in [
            over.as_str(),
            &used,
            &none,
            &slash,
            &long,
            "/media/x",
            "/media/..%2f..%2fetc%2fpasswd",
            "/media/%2e%2e",
            "/media/%00",
            "/media/%ff",
            "/media/",
            "/media",
            "/media/a/b",
        ] {
            let (status, headers, body) = fetch(&rig, "GET", path).await;
            let body: serde_json::Value = serde_json::from_slice(&body).unwrap();
            let error = (&body["error"]["code"], &body["error"]["message"]);
            assert_eq!(status, 404, "{path}");
            assert_eq!(error, (&"NOT_FOUND".into(), &"there is nothing here".into()), "{path}");
            assert_eq!(headers["cache-control"], "no-store");
        }
        assert_eq!(fetch(&rig, "POST", &good).await.0, 405);
        assert_eq!(fetch(&rig, "GET", &good).await.0, 200);
        rig.stop().await;
    })
    .await;
}

#[tokio::test]
async fn a_large_file_comes_whole_and_after_a_restart() {
    on_sqlite(async |store| {
        let rig = Rig::new(store).await;
        let large: Vec<u8> = (0..30_000_000_u32).map(|number| number.to_le_bytes()[1]).collect();
        let path = offer(&rig, "large.bin", &large, Duration::ZERO);
        let rig = rig.again().await;
        let range = rig.request("GET", &path).header("range", "bytes=5-9");
        let answer = range.send().await.unwrap();
        assert_eq!(answer.status().as_u16(), 200);
        assert!(answer.bytes().await.unwrap() == large);
        rig.stop().await;
    })
    .await;
}

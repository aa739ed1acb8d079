//! A reader who does not read.

use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpSocket, TcpStream},
    time,
};

use super::*;
use crate::{
    api::{events::Tells, feed::Feed},
    id::KeyId,
    store::{events::Selection, testing::on_both},
    telemetry::Telemetry,
};

const EVENTS: usize = 20_000;
/// How many are stored at once.
const BATCH: usize = 1000;

/// Connects with little room for what is not read.
async fn connect(rig: &Rig, path: &str) -> TcpStream {
    let socket = TcpSocket::new_v4().unwrap();
    socket.set_recv_buffer_size(8 * 1024).unwrap();
    let mut stream = socket.connect(rig.address).await.unwrap();
    let request = format!(
        "GET {path} HTTP/1.1\r\nhost: ostler\r\nauthorization: Bearer {}\r\n\r\n",
        rig.admin
    );
    stream.write_all(request.as_bytes()).await.unwrap();
    stream
}

/// Reads a line that ends the way those of HTTP do.
async fn line(stream: &mut (impl tokio::io::AsyncRead + Unpin)) -> String {
    let mut line = Vec::new();
    while !line.ends_with(b"\r\n") {
        line.push(stream.read_u8().await.unwrap());
    }
    line.truncate(line.len() - 2);
    String::from_utf8(line).unwrap()
}

/// Reads the next chunk of an answer.
async fn chunk(stream: &mut (impl tokio::io::AsyncRead + Unpin)) -> Vec<u8> {
    let length = usize::from_str_radix(&line(stream).await, 16).unwrap();
    let mut chunk = vec![0; length];
    stream.read_exact(&mut chunk).await.unwrap();
    assert_eq!(line(stream).await, "");
    chunk
}

on_both! {
    async fn who_does_not_read_holds_nobody_up_and_gets_everything_later(store: Store) {
        let rig = Rig::new(store.clone()).await;
        let project = make_project(&rig).await;
        let path = format!("/projects/{project}/events");
        let mut slow = connect(&rig, &path).await;
        // It has begun to listen when its answer has begun.
        let mut head = [0; 12];
        slow.read_exact(&mut head).await.unwrap();
        assert_eq!(&head, b"HTTP/1.1 200");
        let mut quick = Stream::open(&rig, &path).await;
        assert_eq!(quick.next().await.unwrap().name, "connected");
        let text = "x".repeat(400);
        let mut expected = Vec::new();
        for _ in 0..EVENTS / BATCH {
            let events = vec![output(project, None, &text); BATCH];
            let last = append(&store, events).await;
            expected.extend(last - i64::try_from(BATCH).unwrap() + 1..=last);
        }
        let mut received = Vec::new();
        while received.len() < EVENTS {
            received.push(quick.next_event().await.unwrap().id);
        }
        assert!(received == expected, "the quick one has not got everything");
        let mut slow = tokio::io::BufReader::new(slow);
        while !line(&mut slow).await.is_empty() {}
        let (mut frames, mut received) = (Frames::default(), Vec::new());
        while received.len() < EVENTS {
            let piece = time::timeout(LIMIT, chunk(&mut slow)).await.unwrap();
            // What is held for somebody who does not read is one of these.
            assert!(piece.len() < 64 * 1024, "{}", piece.len());
            let events = frames.push(&piece);
            let events = events.iter().filter(|told| told.name == "output");
            received.extend(events.map(|told| told.id));
        }
        assert!(received == expected, "the slow one has not got everything");
        drop((slow, quick));
        rig.stop().await;
    }
}

#[tokio::test]
async fn somebody_who_listens_costs_little() {
    crate::store::testing::on_sqlite(|store| async move {
        let (feed, tick) = (Feed::new(store), LIMIT);
        let project = ProjectId::new();
        let listener = feed.listen(Selection::Project(project), 0, 0).unwrap();
        let timer = Box::pin(time::sleep(tick));
        let _subscribed = Telemetry::new().subscribed();
        let key = KeyId::new();
        let tells = Tells { first: None, listener, key, project, tick, timer, _subscribed };
        let all = size_of_val(&*tells.timer) + size_of_val(&tells.next());
        assert!(all < 2048, "{all} bytes");
    })
    .await;
}

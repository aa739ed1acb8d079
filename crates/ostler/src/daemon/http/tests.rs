//! A server that is asked over a real connection.

use std::{convert::Infallible, time::Instant};

use axum::{body::Body, extract::ConnectInfo, routing::get};
use hyper::body::{Bytes, Frame};
use rustix::net::sockopt;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
    sync::mpsc,
    time,
};

use super::*;

/// The longest that anything may take.
const LIMIT: Duration = Duration::from_secs(60);
const CALL: &[u8] = b"GET / HTTP/1.1\r\nHost: ostler\r\nConnection: close\r\n\r\n";

async fn start(router: Router, bounds: Bounds) -> (Http, SocketAddr) {
    let listener = bind("127.0.0.1:0".parse().unwrap(), Keys::None).await.unwrap();
    let address = listener.local_addr().unwrap();
    (Http::start_within(listener, router, bounds), address)
}

fn here() -> Router {
    Router::new().route("/", get(async || "here"))
}

/// Sends bytes, and returns everything that comes until the connection ends.
async fn say(address: SocketAddr, bytes: &[u8]) -> String {
    let mut stream = TcpStream::connect(address).await.unwrap();
    // The other side may have enough before it has everything.
    stream.write_all(bytes).await.ok();
    hear(&mut stream).await
}

async fn hear(stream: &mut TcpStream) -> String {
    let (mut heard, mut buffer) = (Vec::new(), [0; 1024]);
    let listened = time::timeout(LIMIT, async {
        while let Ok(n_read @ 1..) = stream.read(&mut buffer).await {
            heard.extend_from_slice(&buffer[..n_read]);
        }
    });
    listened.await.expect("the connection ends");
    String::from_utf8(heard).unwrap()
}

#[tokio::test]
async fn a_client_that_never_finishes_its_call_does_not_hold_up_the_end() {
    let (http, address) = start(here(), Bounds::default()).await;
    let mut unfinished = TcpStream::connect(address).await.unwrap();
    unfinished.write_all(b"GET /health HTTP/1.1\r\nHos").await.unwrap();
    // Answered behind it, so that it was accepted before.
    assert!(say(address, CALL).await.ends_with("here"));
    http.stop(Duration::ZERO).await;
    assert!(TcpStream::connect(address).await.is_err());
}

#[tokio::test]
async fn a_call_that_is_under_way_is_answered_before_the_end() {
    let (begun, mut has_begun) = mpsc::channel(1);
    let (go, may_go) = tokio::sync::watch::channel(false);
    let slow = get(async move || {
        begun.send(()).await.unwrap();
        let mut may_go = may_go;
        may_go.wait_for(|go| *go).await.unwrap();
        "at last"
    });
    let (http, address) = start(Router::new().route("/", slow), Bounds::default()).await;
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(b"GET / HTTP/1.1\r\nHost: ostler\r\n\r\n").await.unwrap();
    has_begun.recv().await.unwrap();
    let stopped = async {
        http.stop(LIMIT).await;
    };
    let answered = async {
        // Nobody is accepted any more once the stop has begun.
        while TcpStream::connect(address).await.is_ok() {
            tokio::task::yield_now().await;
        }
        go.send(true).unwrap();
        hear(&mut stream).await
    };
    let ((), answer) = tokio::join!(stopped, answered);
    assert!(answer.ends_with("at last"), "{answer}");
}

#[tokio::test]
async fn a_head_that_comes_too_slowly_is_cut() {
    let bounds = Bounds { head_within: Duration::from_millis(300), ..Bounds::default() };
    let (http, address) = start(here(), bounds).await;
    let begun = Instant::now();
    for part in ["", "GET / HT", "GET / HTTP/1.1\r\nHost: ostler\r\n"] {
        let answer = say(address, part.as_bytes()).await;
        assert!(!answer.contains("200"), "{answer}");
    }
    assert!(begun.elapsed() >= bounds.head_within * 3);
    // One byte now and then does not help.
    let mut stream = TcpStream::connect(address).await.unwrap();
    let (mut reader, mut writer) = stream.split();
    let drip = async {
        for byte in CALL.iter().cycle() {
            if writer.write_all(&[*byte]).await.is_err() {
                return;
            }
            time::sleep(Duration::from_millis(20)).await;
        }
    };
    let mut heard = Vec::new();
    tokio::select! {
        () = drip => {}
        read = reader.read_to_end(&mut heard) => assert!(read.is_err() || heard.is_empty(), "{heard:?}"),
    }
    http.stop(LIMIT).await;
}

#[tokio::test]
async fn a_head_that_is_too_long_is_refused() {
    let (http, address) = start(here(), Bounds::default()).await;
    let head = |lines: &str| format!("GET / HTTP/1.1\r\nHost: ostler\r\n{lines}\r\n");
    let many: String = (0..64).map(|number| format!("X-{number}: 1\r\n")).collect();
    let large = format!("X-Large: {}\r\n", "x".repeat(100 * 1024));
    let larger = format!("X-Large: {}\r\n", "x".repeat(17 * 1024));
    let target = format!("GET /{} HTTP/1.1\r\nHost: ostler\r\n\r\n", "x".repeat(20 * 1024));
    for call in [head(&many), head(&large), head(&larger)] {
        let answer = say(address, call.as_bytes()).await;
        assert!(answer.starts_with("HTTP/1.1 431"), "{answer}");
    }
    let answer = say(address, target.as_bytes()).await;
    assert!(answer.starts_with("HTTP/1.1 4"), "{answer}");
    let fits = head(&format!("X-Large: {}\r\nConnection: close\r\n", "x".repeat(15 * 1024)));
    assert!(say(address, fits.as_bytes()).await.ends_with("here"));
    http.stop(LIMIT).await;
}

#[tokio::test]
async fn what_is_no_call_is_refused_and_the_next_is_answered() {
    let (http, address) = start(here(), Bounds::default()).await;
    for wrong in [
        &b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03 a greeting of TLS\r\n\r\n"[..],
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        b"GET / HTTP/9.9\r\n\r\n",
        b"GET  /\r\n\r\n",
        b"GET / HTTP/1.1\r\nno colon\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: a\r\nX: \x00\r\n\r\n",
        b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: -1\r\n\r\n",
        b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nx",
        b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: nonsense\r\n\r\nx",
        b"\0\0\0\0\0\0\0\0\r\n\r\n",
    ] {
        let answer = say(address, wrong).await;
        let is_refused = answer.is_empty() || answer.starts_with("HTTP/1.1 4");
        assert!(is_refused, "{answer} to {}", String::from_utf8_lossy(wrong));
    }
    assert!(say(address, CALL).await.ends_with("here"));
    http.stop(LIMIT).await;
}

#[tokio::test]
async fn calls_in_one_go_are_answered_in_order_and_an_old_client_too() {
    let router = Router::new()
        .route("/1", get(async || "first"))
        .route("/2", get(async || "second"))
        .route("/3", get(async |ConnectInfo(peer): ConnectInfo<SocketAddr>| peer.to_string()));
    let (http, address) = start(router, Bounds::default()).await;
    let calls = "GET /1 HTTP/1.1\r\nHost: a\r\n\r\nGET /2 HTTP/1.1\r\nHost: a\r\n\r\n\
                 GET /3 HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(calls.as_bytes()).await.unwrap();
    let answers = hear(&mut stream).await;
    let place = |text: &str| answers.find(text).unwrap_or_else(|| panic!("{text} in {answers}"));
    assert!(place("first") < place("second"), "{answers}");
    assert!(answers.ends_with(&stream.local_addr().unwrap().to_string()), "{answers}");
    // It has no Host, and the connection ends by itself.
    let answer = say(address, b"GET /1 HTTP/1.0\r\n\r\n").await;
    assert!(answer.starts_with("HTTP/1.0 200") && answer.ends_with("first"), "{answer}");
    http.stop(LIMIT).await;
}

#[tokio::test]
async fn beyond_the_most_connections_the_next_waits_until_one_ends() {
    let bounds = Bounds { connections: 2, ..Bounds::default() };
    let (http, address) = start(here(), bounds).await;
    let keep = b"GET / HTTP/1.1\r\nHost: ostler\r\n\r\n";
    let mut kept = Vec::new();
    for _ in 0..bounds.connections {
        let mut stream = TcpStream::connect(address).await.unwrap();
        stream.write_all(keep).await.unwrap();
        let mut byte = [0];
        stream.read_exact(&mut byte).await.unwrap();
        kept.push(stream);
    }
    let mut third = TcpStream::connect(address).await.unwrap();
    third.write_all(CALL).await.unwrap();
    let mut byte = [0];
    let waited = time::timeout(Duration::from_millis(200), third.read(&mut byte)).await;
    assert!(waited.is_err(), "it is not accepted");
    drop(kept.pop());
    assert!(hear(&mut third).await.ends_with("here"));
    http.stop(LIMIT).await;
}

/// A body without an end, which tells when nobody wants it any more.
struct Endless(mpsc::Sender<()>);

impl Drop for Endless {
    fn drop(&mut self) {
        self.0.try_send(()).ok();
    }
}

impl hyper::body::Body for Endless {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        self: std::pin::Pin<&mut Self>,
        _: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        std::task::Poll::Ready(Some(Ok(Frame::data(Bytes::from_static(&[b'x'; 4096])))))
    }
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn who_reads_nothing_of_a_stream_for_long_is_dropped() {
    let bounds = Bounds { unread: Duration::from_millis(500), ..Bounds::default() };
    let (told, mut gone) = mpsc::channel(1);
    let endless = get(async move || Body::new(Endless(told.clone())));
    let (http, address) = start(Router::new().route("/", endless), bounds).await;
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(b"GET / HTTP/1.1\r\nHost: ostler\r\n\r\n").await.unwrap();
    let mut byte = [0];
    stream.read_exact(&mut byte).await.unwrap();
    time::timeout(LIMIT, gone.recv()).await.expect("the stream is given up");
    http.stop(LIMIT).await;
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn what_the_system_refuses_keeps_it_from_nothing_else() {
    let listener = bind("127.0.0.1:0".parse().unwrap(), Keys::None).await.unwrap();
    let stream = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
    // No system holds as much.
    let bounds = Bounds { held_by_system: usize::MAX, ..Bounds::default() };
    server::prepare(&stream, bounds);
    assert!(sockopt::socket_keepalive(&stream).unwrap());
    let unread = u128::from(sockopt::tcp_user_timeout(&stream).unwrap());
    assert_eq!(unread, bounds.unread.as_millis());
}

#[tokio::test]
async fn an_address_that_is_taken_is_told_with_what_to_do() {
    let first = bind("127.0.0.1:0".parse().unwrap(), Keys::None).await.unwrap();
    let address = first.local_addr().unwrap();
    let error = bind(address, Keys::None).await.unwrap_err().to_string();
    assert!(error.contains(&address.to_string()), "{error}");
    assert!(error.contains("another program does") && error.contains("OSTLER_LISTEN"), "{error}");
}

#[tokio::test]
async fn only_this_machine_may_ask_as_long_as_there_is_no_key() {
    for own in ["127.0.0.1:8474", "127.1.2.3:80", "[::1]:8474", "[::ffff:127.0.0.1]:1"] {
        assert!(may_listen(own.parse().unwrap(), Keys::None).is_ok(), "{own}");
    }
    for public in ["0.0.0.0:8474", "[::]:8474", "192.168.0.1:1", "[::ffff:10.0.0.1]:1"] {
        let public = public.parse().unwrap();
        let error = bind(public, Keys::None).await.unwrap_err();
        assert!(matches!(error, ListenError::Public(_)), "{public}");
        let error = error.to_string();
        assert!(error.contains("ostler keys create --name admin --scope admin"), "{error}");
        assert!(may_listen(public, Keys::Some).is_ok(), "{public}");
    }
}

//! A server that is asked over a real connection.

use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::Value;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
};

use super::*;

/// More than anything here takes.
const LONG: Duration = Duration::from_secs(30);

struct Server {
    http: Http,
    address: SocketAddr,
    phase: watch::Sender<Phase>,
}

async fn server(agents: impl Fn() -> Vec<(String, bool)> + Send + Sync + 'static) -> Server {
    let listener = bind("127.0.0.1:0".parse().unwrap()).await.unwrap();
    let address = listener.local_addr().unwrap();
    let (phase, watched) = watch::channel(Phase::Starting);
    Server { http: Http::start(listener, watched, agents), address, phase }
}

impl Server {
    /// Returns the status and the body of an answer.
    async fn ask(&self, line: &str) -> (u16, Value) {
        let mut stream = TcpStream::connect(self.address).await.unwrap();
        let head = format!("{line} HTTP/1.1\r\nHost: ostler\r\nConnection: close\r\n\r\n");
        stream.write_all(head.as_bytes()).await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        assert!(head.to_lowercase().contains("content-type: application/json"), "{head}");
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        (status, serde_json::from_str(body).unwrap())
    }
}

#[tokio::test]
async fn health_lists_the_agents_by_the_names_that_clients_know() {
    let agents = || vec![("claude".to_owned(), true), ("opencode".to_owned(), false)];
    let server = server(agents).await;
    let expected = json!({
        "status": "healthy",
        "agents": { "claudecode": "available", "opencode": "unavailable" },
    });
    assert_eq!(server.ask("GET /health").await, (200, expected));
    server.http.stop(LONG).await;
}

#[tokio::test]
async fn it_is_ready_only_between_start_and_stop() {
    let server = server(Vec::new).await;
    for (phase, status, word) in [
        (Phase::Starting, 503, "starting"),
        (Phase::Ready, 200, "ready"),
        (Phase::Stopping, 503, "stopping"),
    ] {
        server.phase.send_replace(phase);
        assert_eq!(server.ask("GET /ready").await, (status, json!({ "status": word })));
    }
    server.http.stop(LONG).await;
}

#[tokio::test]
async fn what_is_not_there_is_an_error_in_json() {
    let server = server(Vec::new).await;
    for (line, status, code) in [
        ("GET /", 404, "NOT_FOUND"),
        ("POST /v1/chat/completions", 404, "NOT_FOUND"),
        ("POST /health", 405, "METHOD_NOT_ALLOWED"),
    ] {
        let (told, body) = server.ask(line).await;
        assert_eq!((told, body["error"]["code"].as_str()), (status, Some(code)), "{line}");
        assert!(body["error"]["message"].is_string());
    }
    server.http.stop(LONG).await;
}

#[tokio::test]
async fn a_look_that_breaks_is_told_and_the_next_one_may_succeed() {
    let n_looks = AtomicUsize::new(0);
    let server = server(move || match n_looks.fetch_add(1, Ordering::Relaxed) {
        0 => panic!("of a test"),
        _ => vec![("pi".to_owned(), true)],
    });
    let server = server.await;
    assert_eq!(server.ask("GET /health").await.0, 500);
    assert_eq!(server.ask("GET /health").await.1["agents"]["pi"], "available");
    server.http.stop(LONG).await;
}

#[tokio::test(start_paused = true)]
async fn agents_are_looked_for_again_after_a_while_only() {
    let n_looks = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&n_looks);
    let agents = Box::new(move || {
        counted.fetch_add(1, Ordering::Relaxed);
        Vec::new()
    });
    let look = Look { agents, seen: Mutex::default() };
    for (wait, expected) in [(0, 1), (4, 1), (1, 2), (0, 2)] {
        tokio::time::advance(Duration::from_secs(wait)).await;
        look.agents(Instant::now());
        assert_eq!(n_looks.load(Ordering::Relaxed), expected);
    }
}

#[tokio::test]
async fn a_client_that_never_finishes_its_call_does_not_hold_up_the_end() {
    let server = server(Vec::new).await;
    let mut stream = TcpStream::connect(server.address).await.unwrap();
    stream.write_all(b"GET /health HTTP/1.1\r\nHos").await.unwrap();
    // Answered behind it, so that it was accepted before.
    server.ask("GET /ready").await;
    server.http.stop(Duration::ZERO).await;
    assert!(TcpStream::connect(server.address).await.is_err());
}

#[tokio::test]
async fn an_address_that_is_taken_is_told_with_what_to_do() {
    let first = bind("127.0.0.1:0".parse().unwrap()).await.unwrap();
    let address = first.local_addr().unwrap();
    let error = bind(address).await.unwrap_err().to_string();
    assert!(error.contains(&address.to_string()), "{error}");
    assert!(error.contains("another program does") && error.contains("OSTLER_LISTEN"), "{error}");
}

#[tokio::test]
async fn only_this_machine_may_ask() {
    for own in ["127.0.0.1:8474", "127.1.2.3:80", "[::1]:8474", "[::ffff:127.0.0.1]:1"] {
        assert!(may_listen(own.parse().unwrap()).is_ok(), "{own}");
    }
    for public in ["0.0.0.0:8474", "[::]:8474", "192.168.0.1:1", "[::ffff:10.0.0.1]:1"] {
        let error = bind(public.parse().unwrap()).await.unwrap_err();
        assert!(matches!(error, ListenError::Public(_)), "{public}");
        assert!(error.to_string().contains("127.0.0.1"), "{error}");
    }
}

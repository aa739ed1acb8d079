//! A server that is asked over a real connection.

use axum::routing::get;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
};

use super::*;

#[tokio::test]
async fn a_client_that_never_finishes_its_call_does_not_hold_up_the_end() {
    let listener = bind("127.0.0.1:0".parse().unwrap()).await.unwrap();
    let address = listener.local_addr().unwrap();
    let http = Http::start(listener, Router::new().route("/", get(async || "here")));
    let mut unfinished = TcpStream::connect(address).await.unwrap();
    unfinished.write_all(b"GET /health HTTP/1.1\r\nHos").await.unwrap();
    // Answered behind it, so that it was accepted before.
    let mut finished = TcpStream::connect(address).await.unwrap();
    let call = b"GET / HTTP/1.1\r\nHost: ostler\r\nConnection: close\r\n\r\n";
    finished.write_all(call).await.unwrap();
    let mut answer = String::new();
    finished.read_to_string(&mut answer).await.unwrap();
    assert!(answer.ends_with("here"), "{answer}");
    http.stop(Duration::ZERO).await;
    assert!(TcpStream::connect(address).await.is_err());
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

//! The client, with others in the place of the gateway.

use tempfile::TempDir;
use tokio::{io::AsyncReadExt as _, net::UnixListener, task::JoinSet};

use super::*;
use crate::socket;

const HELLO: &str = r#"{"type":"hello","version":"0.1.0","protocol":1,"pid":7,"more":true}"#;

fn folder() -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = socket::path(folder.path());
    (folder, path)
}

/// Says this to the first who connects, listens to what that has to say, and hangs up.
fn speaking(path: &Path, text: String) -> JoinSet<Vec<u8>> {
    let listener = UnixListener::bind(path).unwrap();
    let mut task = JoinSet::new();
    task.spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        stream.write_all(text.as_bytes()).await.ok();
        stream.shutdown().await.ok();
        let mut heard = Vec::new();
        stream.read_to_end(&mut heard).await.ok();
        heard
    });
    task
}

async fn error_of(text: &str) -> String {
    let (_folder, path) = folder();
    let _speaker = speaking(&path, text.to_owned());
    Connection::open(&path).await.unwrap_err().to_string()
}

#[tokio::test]
async fn where_no_gateway_runs_it_says_how_to_start_one() {
    let (_folder, path) = folder();
    let error = Connection::open(&path).await.unwrap_err();
    assert!(matches!(error, ConnectError::Absent(_)), "{error}");
    assert!(error.to_string().contains("ostler serve"), "{error}");
    drop(UnixListener::bind(&path).unwrap());
    let error = Connection::open(&path).await.unwrap_err();
    assert!(matches!(error, ConnectError::Stale(_)), "{error}");
    assert!(error.to_string().contains("ostler serve"), "{error}");
    std::fs::remove_file(&path).unwrap();
    std::fs::write(&path, "no socket").unwrap();
    assert!(matches!(Connection::open(&path).await, Err(ConnectError::Stale(_))));
    tell_to_look(&path).await;
}

#[tokio::test]
async fn a_path_that_no_socket_can_have_is_told_with_the_limit() {
    let path = Path::new("/").join("x".repeat(LONGEST_PATH));
    let error = Connection::open(&path).await.unwrap_err().to_string();
    assert!(error.contains(&LONGEST_PATH.to_string()), "{error}");
    let path = Path::new("/").join("x".repeat(LONGEST_PATH - 1));
    assert!(matches!(Connection::open(&path).await, Err(ConnectError::Absent(_))));
}

#[tokio::test]
async fn another_protocol_is_told_with_who_is_too_old() {
    let older = HELLO.replace(r#""protocol":1"#, r#""protocol":0"#);
    let error = error_of(&format!("{older}\n")).await;
    assert!(error.contains("process 7") && error.contains("too old"), "{error}");
    let newer = HELLO.replace(r#""protocol":1"#, r#""protocol":2"#);
    let error = error_of(&format!("{newer}\n")).await;
    assert!(error.contains("this ostler is too old"), "{error}");
}

#[tokio::test]
async fn what_is_no_gateway_is_told() {
    for (text, says) in [
        ("", "closes the connection"),
        (&HELLO[..20], "does not say hello"),
        ("HTTP/1.1 400 Bad Request\r\n\r\n", "does not say hello"),
        ("{\"type\":\"event\",\"number\":1,\"event\":{}}\n", "does not say hello"),
        ("{\"type\":\"refused\",\"code\":\"busy\",\"message\":\"too many\"}\n", "too many"),
    ] {
        let error = error_of(text).await;
        assert!(error.contains(says), "{text}: {error}");
    }
}

#[tokio::test(start_paused = true)]
async fn one_that_says_nothing_is_not_waited_for() {
    let (_folder, path) = folder();
    let _listener = UnixListener::bind(&path).unwrap();
    assert!(matches!(Connection::open(&path).await, Err(ConnectError::Silent(_))));
}

#[tokio::test]
async fn what_is_said_is_heard_and_what_is_unknown_passes() {
    let (_folder, path) = folder();
    let text = format!(
        "{HELLO}\n{}\n{}\n{}\n",
        r#"{"type":"of_tomorrow","x":1}"#,
        r#"{"type":"refused","code":"queue_full","message":"later","more":1}"#,
        r#"{"type":"event","number":3,"event":{"b":1, "a":2}}"#,
    );
    let mut speaker = speaking(&path, text);
    let mut connection = Connection::open(&path).await.unwrap();
    let heard = connection.ask(&Request::Status).await.unwrap();
    assert!(matches!(heard, Heard::Other));
    let Heard::Refused(refused) = connection.next().await.unwrap() else { panic!() };
    assert_eq!(refused.code, "queue_full");
    let Heard::Event(event) = connection.next().await.unwrap() else { panic!() };
    assert_eq!((event.number, event.event.get()), (3, r#"{"b":1, "a":2}"#));
    assert!(matches!(connection.next().await, Err(TalkError::Closed)));
    drop(connection);
    let heard = speaker.join_next().await.unwrap().unwrap();
    assert_eq!(heard, b"{\"type\":\"status\"}\n");
}

//! Where replies go: a small HTTP server that writes down each one.

use std::{
    io::{self, BufReader, Write as _},
    net::{TcpListener, TcpStream},
    sync::Arc,
};

use serde_json::Value;

use super::{books::Delivered, ledger::Ledger};

/// What a server answers that has what it was sent.
const TAKEN: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n";

/// The server. It listens for as long as the process lives.
pub(crate) struct Receiver {
    port: u16,
}

impl Receiver {
    pub(crate) fn start(ledger: Arc<Ledger>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let ledger = ledger.clone();
                // A connection that is cut was that of a gateway that was killed.
                std::thread::spawn(move || serve(stream, &ledger).ok());
            }
        });
        Self { port }
    }

    /// Returns where the replies of a conversation go.
    pub(crate) fn url(&self, conversation: usize) -> String {
        format!("http://127.0.0.1:{}/c/{conversation}", self.port)
    }
}

/// Returns the conversation whose replies go to an address.
pub(crate) fn conversation_of(path: &str) -> Option<usize> {
    path.rsplit_once("/c/")?.1.parse().ok()
}

/// Takes what comes on a connection until it ends.
fn serve(stream: TcpStream, ledger: &Ledger) -> io::Result<()> {
    let mut reader = BufReader::new(stream);
    while let Some(request) = read(&mut reader)? {
        // Written down before the answer: what is answered has come.
        ledger.deliver(understood(&request));
        reader.get_mut().write_all(TAKEN)?;
    }
    Ok(())
}

#[derive(Debug, PartialEq, Eq)]
struct Request {
    path: String,
    key: String,
    body: Vec<u8>,
}

/// Reads a whole request, or nothing if the connection ended before it.
fn read(reader: &mut impl io::BufRead) -> io::Result<Option<Request>> {
    let mut line = String::new();
    reader.read_line(&mut line)?;
    let Some(path) = line.split(' ').nth(1).map(str::to_owned) else { return Ok(None) };
    let (mut key, mut length) = (String::new(), 0);
    loop {
        line.clear();
        reader.read_line(&mut line)?;
        if line == "\r\n" {
            break;
        }
        if !line.ends_with('\n') {
            return Ok(None);
        }
        let Some((name, value)) = line.trim_end().split_once(':') else { continue };
        match name.to_ascii_lowercase().as_str() {
            "idempotency-key" => value.trim().clone_into(&mut key),
            "content-length" => length = value.trim().parse().map_err(io::Error::other)?,
            "transfer-encoding" => panic!("a reply in chunks is not what was agreed"),
            _ => {}
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    Ok(Some(Request { path, key, body }))
}

fn understood(request: &Request) -> Delivered {
    let body: Value = serde_json::from_slice(&request.body).unwrap();
    assert_eq!(body["id"].as_str(), Some(&*request.key), "the key is the id of the reply");
    Delivered {
        key: request.key.clone(),
        job: body["job"].as_str().unwrap_or_default().to_owned(),
        conversation: conversation_of(&request.path).unwrap(),
        text: body["text"].as_str().filter(|_| body["error"].is_null()).map(str::to_owned),
        is_unsure: body["is_unsure"] == true,
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;

    use super::*;

    fn post(path: &str, key: &str, body: &str) -> String {
        let length = body.len();
        format!(
            "POST {path} HTTP/1.1\r\nHost: x\r\nIdempotency-Key: {key}\r\ncontent-length: {length}\r\n\r\n{body}"
        )
    }

    #[test]
    fn replies_on_one_connection_are_written_down_before_they_are_answered() {
        let ledger = Arc::new(Ledger::default());
        let receiver = Receiver::start(ledger.clone());
        let mut stream = TcpStream::connect(("127.0.0.1", receiver.port)).unwrap();
        for (key, unsure) in [("out_1", false), ("out_1", true)] {
            let body = format!(
                r#"{{"id":"out_1","job":"job_1","text":"hi","error":null,"is_unsure":{unsure}}}"#
            );
            let path = receiver.url(7).split_once("/c/").map(|(_, n)| format!("/c/{n}")).unwrap();
            stream.write_all(post(&path, key, &body).as_bytes()).unwrap();
            let mut answer = vec![0; TAKEN.len()];
            stream.read_exact(&mut answer).unwrap();
            assert_eq!(answer, TAKEN);
        }
        let pages = ledger.pages();
        let seen: Vec<_> =
            pages.delivered.iter().map(|one| (one.conversation, one.is_unsure)).collect();
        assert_eq!(seen, [(7, false), (7, true)]);
        assert_eq!(pages.delivered[0].text.as_deref(), Some("hi"));
    }

    #[test]
    fn a_request_that_is_cut_is_no_reply() {
        let whole = post("/c/1", "out_1", "{}");
        assert!(read(&mut whole.as_bytes()).unwrap().is_some());
        for length in 0..whole.len() {
            let cut = read(&mut &whole.as_bytes()[..length]);
            assert!(cut.ok().flatten().is_none(), "{length} bytes");
        }
    }
}

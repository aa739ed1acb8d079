//! A client of a gateway's socket, written from the documentation of its
//! protocol and not from its code: JSON lines, the server's hello first.

use std::{
    io::{self, BufRead as _, BufReader, Write as _},
    os::unix::net::UnixStream,
    path::Path,
    time::Duration,
};

use serde_json::Value;

/// The longest that an answer may take.
const LIMIT: Duration = Duration::from_secs(100);

/// A connection, after the hello.
pub(crate) struct Client {
    reader: BufReader<UnixStream>,
    /// The process id of the gateway, as it says itself.
    pub(crate) pid: u64,
}

impl Client {
    /// Connects and hears the hello.
    pub(crate) fn connect(socket: &Path) -> io::Result<Self> {
        let stream = UnixStream::connect(socket)?;
        stream.set_read_timeout(Some(LIMIT))?;
        stream.set_write_timeout(Some(LIMIT))?;
        let mut client = Self { reader: BufReader::new(stream), pid: 0 };
        let hello = client.hear()?;
        if hello["type"] != "hello" || hello["protocol"] != 1 {
            return Err(io::Error::other(format!("not a hello: {hello}")));
        }
        client.pid = hello["pid"].as_u64().unwrap_or(0);
        Ok(client)
    }

    /// Says something and hears the next line.
    pub(crate) fn ask(&mut self, request: &Value) -> io::Result<Value> {
        self.tell(request)?;
        self.hear()
    }

    pub(crate) fn tell(&mut self, request: &Value) -> io::Result<()> {
        self.reader.get_mut().write_all(format!("{request}\n").as_bytes())
    }

    /// Hears the next line. A connection that ends, also within a line, is an error.
    pub(crate) fn hear(&mut self) -> io::Result<Value> {
        let mut line = String::new();
        self.reader.read_line(&mut line)?;
        if !line.ends_with('\n') {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        serde_json::from_str(&line).map_err(|error| io::Error::other(format!("{error}: {line}")))
    }
}

//! Servers of every sort, and what becomes of what they send.

use std::{
    fs,
    net::SocketAddr,
    os::unix::fs::{PermissionsExt as _, symlink},
    path::PathBuf,
    sync::atomic::{AtomicUsize, Ordering},
};

use tempfile::TempDir;
use tokio::{
    io::AsyncReadExt as _,
    net::{TcpListener, TcpStream},
    task::JoinSet,
};

use super::*;

const MAX: u64 = 64 * 1024;

/// What a server does after it was asked.
#[derive(Clone)]
enum Act {
    /// Answers with these bytes, and closes.
    Say(Vec<u8>),
    /// Says this, and then `x` for as long as somebody listens.
    Endless(&'static str),
    /// Says this, and then nothing.
    Hold(&'static str),
}

/// A server on this machine.
struct Server {
    host: String,
    calls: Arc<AtomicUsize>,
    _tasks: JoinSet<()>,
}

impl Server {
    async fn start(act: Act) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let host = listener.local_addr().unwrap().to_string();
        let calls = Arc::new(AtomicUsize::new(0));
        let mut tasks = JoinSet::new();
        let counted = Arc::clone(&calls);
        tasks.spawn(async move {
            let mut served = JoinSet::new();
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                counted.fetch_add(1, Ordering::SeqCst);
                served.spawn(serve(stream, act.clone()));
            }
        });
        Self { host, calls, _tasks: tasks }
    }

    async fn of(body: &[u8]) -> Self {
        let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", body.len());
        Self::start(Act::Say([head.as_bytes(), body].concat())).await
    }

    fn n_calls(&self) -> usize {
        self.calls.load(Ordering::SeqCst)
    }

    fn vouched(&self) -> Vec<Vouched> {
        vec![Vouched { hosts: vec![self.host.clone()], may_be_private: true }]
    }
}

async fn serve(mut stream: TcpStream, act: Act) {
    let mut asked = Vec::new();
    while !asked.ends_with(b"\r\n\r\n") {
        match stream.read_u8().await {
            Ok(byte) => asked.push(byte),
            Err(_) => return,
        }
    }
    // Whoever asked may have stopped listening.
    match act {
        Act::Say(bytes) => {
            stream.write_all(&bytes).await.ok();
            stream.shutdown().await.ok();
        }
        Act::Endless(head) => {
            stream.write_all(head.as_bytes()).await.ok();
            while stream.write_all(&[b'x'; 4096]).await.is_ok() {}
        }
        Act::Hold(head) => {
            stream.write_all(head.as_bytes()).await.ok();
            stream.read_u8().await.ok();
        }
    }
}

fn media(url: &str) -> Media {
    Media { url: Some(url.to_owned()), ..Media::default() }
}

/// A place to put files.
struct Desk {
    data: TempDir,
    job: JobId,
    fetcher: Fetcher,
    limit: Duration,
}

impl Desk {
    fn new() -> Self {
        let (data, job) = (tempfile::tempdir().unwrap(), JobId::new());
        Self { data, job, fetcher: Fetcher::new(), limit: LIMIT }
    }

    fn root(&self) -> PathBuf {
        self.data.path().join("media")
    }

    fn folder(&self) -> PathBuf {
        self.root().join(self.job.to_string())
    }

    async fn fetch(&self, media: &[Media], vouched: &[Vouched]) -> Vec<Fetched> {
        let (root, until) = (self.root(), Instant::now() + self.limit);
        let wanted = Wanted { job: self.job, media, root: &root, vouched, max_bytes: MAX, until };
        self.fetcher.fetch(wanted).await
    }

    async fn fetch_one(&self, server: &Server, path: &str) -> Fetched {
        let url = format!("http://{}/{path}", server.host);
        self.fetch(&[media(&url)], &server.vouched()).await.remove(0)
    }

    /// Returns the names of what is there.
    fn names(&self) -> Vec<String> {
        let Ok(entries) = fs::read_dir(self.folder()) else { return Vec::new() };
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
    }
}

async fn missing(act: Act) -> Trouble {
    let (desk, server) = (Desk::new(), Server::start(act).await);
    let fetched = desk.fetch_one(&server, "a.png").await;
    assert_eq!(desk.names(), Vec::<String>::new());
    let Fetched::Missing(trouble) = fetched else { panic!("{fetched:?}") };
    trouble
}

#[tokio::test]
async fn a_file_is_fetched_and_told_by_what_it_is_and_not_by_its_name() {
    let (desk, server) = (Desk::new(), Server::of(b"\x89PNG\r\n\x1a\nand more").await);
    let fetched = desk.fetch_one(&server, "attachments/1/2/run.exe?ex=1&is=2").await;
    let path = desk.folder().join("1-run.exe");
    let expected = path.to_str().unwrap().to_owned();
    assert_eq!(fetched, Fetched::File { path: expected, kind: "image/png" });
    assert_eq!(fs::read(&path).unwrap(), b"\x89PNG\r\n\x1a\nand more");
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(&path), mode(&desk.folder())), (0o600, 0o700));
}

#[tokio::test]
async fn a_further_attempt_uses_what_is_there() {
    let (desk, server) = (Desk::new(), Server::of(b"%PDF-1.7").await);
    let first = desk.fetch_one(&server, "a.pdf").await;
    fs::write(desk.folder().join(".1.part"), "left by one that was killed").unwrap();
    let again = desk.fetch_one(&server, "a.pdf").await;
    assert_eq!((&again, server.n_calls()), (&first, 1));
    // One that did not get through is tried again.
    fs::remove_file(desk.folder().join("1-a.pdf")).unwrap();
    assert_eq!(desk.fetch_one(&server, "a.pdf").await, first);
    assert_eq!((server.n_calls(), desk.names()), (2, vec!["1-a.pdf".to_owned()]));
}

#[tokio::test]
async fn a_hostile_name_stays_in_the_folder_of_its_job() {
    let (desk, server) = (Desk::new(), Server::of(b"text").await);
    for (path, name) in [
        ("..%2f..%2f..%2fetc%2fpasswd", "1-passwd"),
        ("a%E2%80%AEgpj.exe", "1-a_gpj.exe"),
        ("%2e", "1-file"),
        ("x%00%0a.png", "1-x.png"),
        (".ssh", "1-ssh"),
    ] {
        let fetched = desk.fetch_one(&server, path).await;
        let Fetched::File { path: found, kind } = fetched else { panic!("{path}: {fetched:?}") };
        assert_eq!(
            (found.as_str(), kind),
            (desk.folder().join(name).to_str().unwrap(), "text/plain")
        );
    }
    let long = desk.fetch_one(&server, &format!("{}.jpeg", "y".repeat(5000))).await;
    let Fetched::File { path, .. } = long else { panic!("{long:?}") };
    assert!(path.ends_with("yyy.jpeg") && desk.names().iter().all(|name| name.len() <= 102));
    assert_eq!(fs::read_dir(desk.data.path()).unwrap().count(), 1);
}

#[tokio::test]
async fn a_body_without_end_is_cut() {
    for head in [
        "HTTP/1.1 200 OK\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 1000000000000\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 65537\r\n\r\n",
    ] {
        assert_eq!(missing(Act::Endless(head)).await, Trouble::TooLarge(MAX), "{head}");
    }
    // Chunks without end.
    let chunk = format!("8000\r\n{}\r\n", "x".repeat(0x8000));
    let head = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
    let said = format!("{head}{}", chunk.repeat(3));
    assert_eq!(missing(Act::Say(said.into())).await, Trouble::TooLarge(MAX));
}

#[tokio::test]
async fn a_file_may_be_as_large_as_the_limit() {
    let (desk, server) = (Desk::new(), Server::of(&vec![b'x'; 65536]).await);
    let fetched = desk.fetch_one(&server, "most").await;
    assert!(matches!(fetched, Fetched::File { .. }), "{fetched:?}");
    assert_eq!(fs::metadata(desk.folder().join("1-most")).unwrap().len(), MAX);
}

#[tokio::test]
async fn what_does_not_come_is_told() {
    let say = |text: &str| Act::Say(text.as_bytes().to_vec());
    for (act, trouble) in [
        (say("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nshort"), Trouble::BrokenOff),
        (say("HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n"), Trouble::Gone),
        (say("HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n"), Trouble::Gone),
        (say("HTTP/1.1 500 Oops\r\nContent-Length: 0\r\n\r\n"), Trouble::Status(500)),
        (say("HTTP/1.1 206 Partial\r\nContent-Length: 1\r\n\r\nx"), Trouble::Status(206)),
        (say(""), Trouble::Unreachable),
        (say("what?\r\n\r\n"), Trouble::Unreachable),
    ] {
        assert_eq!(missing(act).await, trouble);
    }
    // Nobody listens where somebody did.
    let desk = Desk::new();
    let mut server = Server::of(b"").await;
    server._tasks.shutdown().await;
    let fetched = desk.fetch_one(&server, "a").await;
    assert_eq!(fetched, Fetched::Missing(Trouble::Unreachable));
}

#[tokio::test]
async fn a_redirect_is_not_followed() {
    let inner = Server::of(b"secret").await;
    let moved = format!(
        "HTTP/1.1 302 Found\r\nLocation: http://{}/\r\nContent-Length: 0\r\n\r\n",
        inner.host
    );
    assert_eq!(missing(Act::Say(moved.into())).await, Trouble::Moved);
    assert_eq!(inner.n_calls(), 0);
}

#[tokio::test]
async fn a_server_that_says_nothing_more_is_left_and_so_are_those_after_it() {
    for head in ["", "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nsome"] {
        let desk = Desk { limit: Duration::from_millis(100), ..Desk::new() };
        let server = Server::start(Act::Hold(head)).await;
        let url = format!("http://{}/a", server.host);
        let fetched = desk.fetch(&[media(&url), media(&url)], &server.vouched()).await;
        let slow = Fetched::Missing(Trouble::TooSlow);
        assert_eq!(fetched, [slow.clone(), slow]);
        assert_eq!(desk.names(), Vec::<String>::new());
    }
}

#[tokio::test]
async fn only_hosts_that_are_vouched_for_are_asked_and_none_in_private() {
    let server = Server::of(b"x").await;
    let lookup: Lookup =
        Arc::new(|_| Box::pin(async { Ok(vec!["127.0.0.1:0".parse::<SocketAddr>().unwrap()]) }));
    let desk = Desk { fetcher: Fetcher::with(lookup), ..Desk::new() };
    let port = server.host.rsplit(':').next().unwrap();
    let public = |host: &str| vec![Vouched { hosts: vec![host.to_owned()], may_be_private: false }];
    let (strange, private) = (Trouble::Strange, Trouble::Private);
    for (url, vouched, trouble) in [
        (format!("http://{}/a", server.host), Vec::new(), &strange),
        (format!("http://localhost:{port}/a"), server.vouched(), &strange),
        (format!("http://{}/a", server.host), public("127.0.0.1"), &strange),
        (format!("http://u:p@{}/a", server.host), server.vouched(), &strange),
        (format!("http://{}@evil.example/a", server.host), server.vouched(), &strange),
        (format!("http://{}/a", server.host), public(&server.host), &strange),
        ("https://cdn.example.evil.example/a".to_owned(), public("cdn.example"), &strange),
        ("file:///etc/passwd".to_owned(), public(""), &strange),
        ("http://cdn.example/a".to_owned(), public("cdn.example"), &strange),
        (format!("https://{}/a", server.host), public(&server.host), &private),
        ("https://127.1/a".to_owned(), public("127.0.0.1"), &private),
        ("https://[::1]/a".to_owned(), public("[::1]"), &private),
        // A name that leads to this machine.
        (format!("https://cdn.example:{port}/a"), public(&format!("cdn.example:{port}")), &private),
    ] {
        let fetched = desk.fetch(&[media(&url)], &vouched).await;
        assert_eq!(fetched, [Fetched::Missing(trouble.clone())], "{url}");
    }
    assert_eq!((server.n_calls(), desk.names()), (0, Vec::new()));
}

#[tokio::test]
async fn what_is_here_already_or_has_no_url_is_left_alone() {
    let (desk, server) = (Desk::new(), Server::of(b"x").await);
    let url = format!("http://{}/a", server.host);
    let here = Media { path: Some("/m/1".to_owned()), ..media(&url) };
    let all = [here, Media::default(), media(&url)];
    let fetched = desk.fetch(&all, &server.vouched()).await;
    assert_eq!(fetched[..2], [Fetched::AsItWas, Fetched::AsItWas]);
    assert!(matches!(fetched[2], Fetched::File { .. }));
    assert_eq!((server.n_calls(), desk.names()), (1, vec!["3-a".to_owned()]));
}

#[tokio::test]
async fn a_link_in_the_way_is_not_followed() {
    let (desk, server) = (Desk::new(), Server::of(b"new").await);
    let aim = desk.data.path().join("aim");
    fs::write(&aim, "as it was").unwrap();
    fs::create_dir_all(desk.folder()).unwrap();
    symlink(&aim, desk.folder().join("1-a.txt")).unwrap();
    symlink(&aim, desk.folder().join(".1.part")).unwrap();
    desk.fetch_one(&server, "a.txt").await;
    assert_eq!(fs::read(desk.folder().join("1-a.txt")).unwrap(), b"new");
    assert_eq!(fs::read(&aim).unwrap(), b"as it was");
    fs::remove_dir_all(desk.folder()).unwrap();
    symlink(desk.data.path(), desk.folder()).unwrap();
    let fetched = desk.fetch_one(&server, "a.txt").await;
    assert!(matches!(fetched, Fetched::Missing(Trouble::NotStored(_))), "{fetched:?}");
    // Something else of that name is in the way.
    let other = Desk::new();
    fs::create_dir_all(other.folder().join("1-a.txt/x")).unwrap();
    let fetched = other.fetch_one(&server, "a.txt").await;
    assert!(matches!(fetched, Fetched::Missing(Trouble::NotStored(_))), "{fetched:?}");
}

#[tokio::test]
async fn a_full_disk_is_told() {
    let server = Server::of(&vec![b'x'; 30_000]).await;
    let mut full = tokio::fs::OpenOptions::new().write(true).open("/dev/full").await.unwrap();
    let url = Url::parse(&format!("http://{}/a", server.host)).unwrap();
    let vouched = server.vouched();
    let fetcher = Fetcher::new();
    let trouble = fetcher.download(&vouched[0], &url, MAX, &mut full).await.unwrap_err();
    assert_eq!(trouble, Trouble::DiskFull);
    let mut told = media("https://a/b");
    Fetched::Missing(trouble).note(&mut told);
    assert_eq!(told.trouble.as_deref(), Some("the disk is full"));
}

#[tokio::test]
async fn a_download_that_is_dropped_leaves_nothing_behind() {
    let head = "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nsome";
    let (desk, server) = (Desk::new(), Server::start(Act::Hold(head)).await);
    let half = async {
        while desk.names().is_empty() {
            task::yield_now().await;
        }
    };
    tokio::select! {
        fetched = desk.fetch_one(&server, "a") => panic!("{fetched:?}"),
        () = half => {}
    }
    assert_eq!(desk.names(), Vec::<String>::new());
}

//! Servers of every sort, and what becomes of what they send.

use std::{
    fs,
    net::SocketAddr,
    os::unix::fs::{PermissionsExt as _, symlink},
    path::PathBuf,
    sync::Mutex,
    time::SystemTime,
};

use tempfile::TempDir;
use tokio::{
    io::AsyncReadExt as _,
    net::{TcpListener, TcpStream},
    task::JoinSet,
};

use super::*;
use crate::config::{self, Secret};

const MAX: u64 = 64 * 1024;

/// What a server does after it was asked.
#[derive(Clone)]
enum Act {
    /// Answers with these bytes, and closes.
    Say(Vec<u8>),
    /// Answers with each of these in its turn, and with the last from then on.
    Turns(Vec<Vec<u8>>),
    /// Says this, and then `x` for as long as somebody listens.
    Endless(&'static str),
    /// Says this, and then nothing.
    Hold(&'static str),
}

/// A server on this machine.
struct Server {
    host: String,
    /// What it was asked, with the headers.
    asked: Arc<Mutex<Vec<String>>>,
    _tasks: JoinSet<()>,
}

impl Server {
    async fn start(act: Act) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let host = listener.local_addr().unwrap().to_string();
        let asked = Arc::new(Mutex::new(Vec::new()));
        let mut tasks = JoinSet::new();
        let noted = Arc::clone(&asked);
        tasks.spawn(async move {
            let mut served = JoinSet::new();
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                served.spawn(serve(stream, act.clone(), Arc::clone(&noted)));
            }
        });
        Self { host, asked, _tasks: tasks }
    }

    async fn of(body: &[u8]) -> Self {
        let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", body.len());
        Self::start(Act::Say([head.as_bytes(), body].concat())).await
    }

    fn n_calls(&self) -> usize {
        self.asked.lock().unwrap().len()
    }

    fn asked(&self) -> Vec<String> {
        self.asked.lock().unwrap().clone()
    }

    /// Starts one that sends everybody on.
    async fn that_sends_on_to(place: &str) -> Self {
        let head = "HTTP/1.1 307 Temporary Redirect\r\nContent-Length: 0";
        Self::start(Act::Say(format!("{head}\r\nLocation: {place}\r\n\r\n").into())).await
    }

    fn hosts(&self) -> Hosts {
        Hosts::own(&format!("http://{}", self.host)).unwrap()
    }

    fn vouched(&self) -> Vec<Vouched> {
        vec![Vouched::open(self.hosts())]
    }
}

async fn serve(mut stream: TcpStream, act: Act, noted: Arc<Mutex<Vec<String>>>) {
    let mut asked = Vec::new();
    while !asked.ends_with(b"\r\n\r\n") {
        match stream.read_u8().await {
            Ok(byte) => asked.push(byte),
            Err(_) => return,
        }
    }
    let number = {
        let mut noted = noted.lock().unwrap();
        noted.push(String::from_utf8(asked).unwrap().to_lowercase());
        noted.len()
    };
    // Whoever asked may have stopped listening.
    match act {
        Act::Say(bytes) => {
            stream.write_all(&bytes).await.ok();
            stream.shutdown().await.ok();
        }
        Act::Turns(all) => {
            stream.write_all(&all[number.min(all.len()) - 1]).await.ok();
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
    caps: Caps,
    spare: u64,
}

impl Desk {
    fn new() -> Self {
        let (data, job) = (tempfile::tempdir().unwrap(), JobId::new());
        Self { data, job, fetcher: Fetcher::new(), limit: LIMIT, caps: Caps::all(MAX), spare: 0 }
    }

    fn root(&self) -> PathBuf {
        self.data.path().join("media")
    }

    fn folder(&self) -> PathBuf {
        self.root().join(self.job.to_string())
    }

    async fn fetch(&self, media: &[Media], vouched: &[Vouched]) -> Vec<Fetched> {
        let (root, until) = (self.root(), Instant::now() + self.limit);
        let Self { job, caps, spare, .. } = *self;
        let wanted = Wanted { job, media, root: &root, vouched, caps, spare, until };
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
async fn a_file_is_fetched_and_told_by_what_it_is_and_called_so() {
    let (desk, server) = (Desk::new(), Server::of(b"\x89PNG\r\n\x1a\nand more").await);
    let fetched = desk.fetch_one(&server, "attachments/1/2/run.exe?ex=1&is=2").await;
    let path = desk.folder().join("1-run.exe.png");
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
async fn a_file_without_a_name_is_called_what_it_is_and_found_again() {
    let (desk, server) = (Desk::new(), Server::of(b"OggS and more").await);
    let place = "2010-04-01/Accounts/AC1/Messages/MM1/Media/ME0123";
    let first = desk.fetch_one(&server, place).await;
    let path = desk.folder().join("1-ME0123.ogg");
    let expected = path.to_str().unwrap().to_owned();
    assert_eq!(first, Fetched::File { path: expected, kind: "audio/ogg" });
    // What somebody made of it is not taken for it.
    fs::write(path.with_extension("wav"), "RIFF    WAVEfmt ").unwrap();
    let later = SystemTime::now() + Duration::from_secs(1);
    fs::File::open(path.with_extension("wav")).unwrap().set_modified(later).unwrap();
    assert_eq!(desk.fetch_one(&server, place).await, first);
    assert_eq!((server.n_calls(), desk.names().len()), (1, 2));
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

/// Vouches for a server that is shown a password and may send us on.
fn vouched_with(server: &Server, onward: Hosts) -> Vec<Vouched> {
    let password = Secret::new("very-secret".to_owned());
    let login = Some(Login { user: "AC1".to_owned(), password });
    vec![Vouched { at: server.hosts(), login, onward: Some(onward), waits: &[] }]
}

#[tokio::test]
async fn a_host_may_send_us_on_once_and_only_the_first_sees_the_password() {
    let (desk, second) = (Desk::new(), Server::of(b"OggS and more").await);
    let place = format!("http://{}/signed?x=y", second.host);
    let first = Server::that_sends_on_to(&place).await;
    let url = format!("http://{}/2010-04-01/Accounts/AC1/Media/ME1", first.host);
    let fetched = desk.fetch(&[media(&url)], &vouched_with(&first, second.hosts())).await.remove(0);
    let Fetched::File { path, kind } = fetched else { panic!("{fetched:?}") };
    assert_eq!((fs::read(path).unwrap().as_slice(), kind), (&b"OggS and more"[..], "audio/ogg"));
    let (first, second) = (first.asked(), second.asked());
    let ([first], [second]) = (&first[..], &second[..]) else { panic!("{first:?} {second:?}") };
    // `AC1:very-secret`, in base64, as the headers are written down here.
    assert!(first.contains("authorization: basic qumxonzlcnktc2vjcmv0"), "{first}");
    assert!(
        second.starts_with("get /signed?x=y ") && !second.contains("authorization"),
        "{second}"
    );
}

#[tokio::test]
async fn a_file_that_is_not_there_yet_is_asked_for_again_and_not_for_ever() {
    const WAITS: &[Duration] = &[Duration::from_millis(1), Duration::from_millis(2)];
    let gone = b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n".to_vec();
    let there = b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\noats".to_vec();
    let desk = Desk::new();
    let ask = async |turns: Vec<Vec<u8>>, waits| {
        let server = Server::start(Act::Turns(turns)).await;
        let url = format!("http://{}/a", server.host);
        let vouched = [Vouched { waits, ..Vouched::open(server.hosts()) }];
        (desk.fetch(&[media(&url)], &vouched).await.remove(0), server.n_calls())
    };
    let missing = Fetched::Missing(Trouble::Gone);
    assert_eq!(ask(vec![gone.clone(), there.clone()], &[]).await, (missing.clone(), 1));
    assert_eq!(ask(vec![gone.clone()], WAITS).await, (missing, 3));
    let (fetched, n_calls) = ask(vec![gone.clone(), gone, there], WAITS).await;
    assert!(matches!(fetched, Fetched::File { .. }) && n_calls == 3, "{fetched:?} {n_calls}");
}

#[tokio::test]
async fn who_hands_a_file_out_itself_need_not_send_us_on() {
    let (desk, server) = (Desk::new(), Server::of(b"text").await);
    let url = format!("http://{}/a", server.host);
    let fetched = desk.fetch(&[media(&url)], &vouched_with(&server, Hosts::public([]))).await;
    assert!(matches!(fetched[..], [Fetched::File { .. }]), "{fetched:?}");
}

#[tokio::test]
async fn nobody_is_sent_on_to_where_nobody_vouches_for_nor_twice_nor_into_private() {
    let inner = Server::of(b"secret").await;
    let lookup: Lookup =
        Arc::new(|_| Box::pin(async { Ok(vec!["127.0.0.1:0".parse::<SocketAddr>().unwrap()]) }));
    let desk = Desk { fetcher: Fetcher::with(lookup), ..Desk::new() };
    let port = inner.host.rsplit(':').next().unwrap();
    let public = |name: &str| Hosts::public([name]);
    for (place, onward, trouble) in [
        // Elsewhere, or in another way.
        (format!("http://{}/", inner.host), public(".cdn.example"), Trouble::Moved),
        (format!("http://{}/", inner.host), public(&inner.host), Trouble::Moved),
        (format!("http://u:p@{}/", inner.host), inner.hosts(), Trouble::Moved),
        (format!("//localhost:{port}/"), inner.hosts(), Trouble::Moved),
        ("file:///etc/passwd".to_owned(), inner.hosts(), Trouble::Moved),
        ("http://[/".to_owned(), inner.hosts(), Trouble::Moved),
        // To this machine, by its address and by a name.
        (format!("https://{}/", inner.host), public(&inner.host), Trouble::Private),
        ("https://a.cdn.example/".to_owned(), public(".cdn.example"), Trouble::Private),
    ] {
        let first = Server::that_sends_on_to(&place).await;
        let url = format!("http://{}/a", first.host);
        let fetched = desk.fetch(&[media(&url)], &vouched_with(&first, onward)).await;
        assert_eq!(fetched, [Fetched::Missing(trouble)], "{place}");
        assert_eq!(first.n_calls(), 1);
    }
    assert_eq!((inner.n_calls(), desk.names()), (0, Vec::new()));
    // A circle.
    let first = Server::that_sends_on_to("/again").await;
    let url = format!("http://{}/a", first.host);
    let fetched = desk.fetch(&[media(&url)], &vouched_with(&first, first.hosts())).await;
    assert_eq!(fetched, [Fetched::Missing(Trouble::Moved)]);
    let [one, two] = &first.asked()[..] else { panic!("asked more than twice") };
    assert!(one.contains("authorization") && !two.contains("authorization"));
}

#[tokio::test]
async fn the_address_of_a_stranger_never_sees_the_password() {
    let (desk, ours, theirs) = (Desk::new(), Server::of(b"x").await, Server::of(b"y").await);
    let url = format!("http://{}/a", theirs.host);
    let fetched = desk.fetch(&[media(&url)], &vouched_with(&ours, theirs.hosts())).await;
    assert_eq!(fetched, [Fetched::Missing(Trouble::Strange)]);
    assert_eq!((ours.n_calls(), theirs.n_calls()), (0, 0));
}

#[tokio::test]
async fn each_sort_of_file_has_a_limit_by_what_is_in_it() {
    let limits = config::Media { max_mb: 2, max_image_mb: 1, ..config::Media::default() };
    let large = |start: &[u8]| {
        let mut body = start.to_vec();
        body.resize(1024 * 1024 + 1, b'x');
        body
    };
    let endless = Act::Endless("HTTP/1.1 200 OK\r\n\r\n\u{89}");
    let too_large = |mb: u64| Fetched::Missing(Trouble::TooLarge(mb * 1024 * 1024));
    let desk = Desk { caps: Caps::new(&limits), ..Desk::new() };
    let image = Server::of(&large(b"GIF89a")).await;
    assert_eq!(desk.fetch_one(&image, "a.txt").await, too_large(1));
    let text = Server::of(&large(b"hello")).await;
    assert!(matches!(desk.fetch_one(&text, "a.gif").await, Fetched::File { .. }));
    assert_eq!(desk.fetch_one(&Server::start(endless).await, "b.gif").await, too_large(2));
    assert_eq!(desk.names(), ["1-a.gif"]);
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
    let public = |host: &str| vec![Vouched::open(Hosts::public([host]))];
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
    let to = To { caps: Caps::all(MAX), kind: &kind::of, file: &mut full };
    let trouble = fetcher.download(&vouched[0], &url, to).await.unwrap_err();
    assert_eq!(trouble, Trouble::DiskFull);
    let mut told = media("https://a/b");
    Fetched::Missing(trouble).note(&mut told);
    assert_eq!(told.trouble.as_deref(), Some("the disk is full"));
}

#[tokio::test]
async fn a_file_that_would_leave_too_little_of_the_disk_is_not_fetched() {
    let server = Server::of(b"%PDF-1.7").await;
    let desk = Desk::new();
    let there = desk.fetch_one(&server, "a.pdf").await;
    let tight = Desk { spare: u64::MAX, ..desk };
    let fetched = tight.fetch_one(&server, "b.pdf").await;
    assert_eq!(fetched, Fetched::Missing(Trouble::NoRoom));
    // What is there already needs no room.
    assert_eq!(tight.fetch_one(&server, "a.pdf").await, there);
    assert_eq!((server.n_calls(), tight.names()), (1, vec!["1-a.pdf".to_owned()]));
}

#[tokio::test]
async fn a_recording_that_begins_like_a_film_is_told_by_what_its_channel_says() {
    let (desk, server) = (Desk::new(), Server::of(b"\0\0\0\x20ftypmp42 and more").await);
    for (path, said, expected) in [
        ("a", Some("audio/mp4"), "audio/mp4"),
        ("b.m4a", None, "audio/mp4"),
        ("c.mp4", Some("video/mp4"), "video/mp4"),
    ] {
        let url = format!("http://{}/{path}", server.host);
        let said = Media { media_type: said.map(str::to_owned), ..media(&url) };
        // Also if it was fetched before.
        for _ in 0..2 {
            let fetched = desk.fetch(std::slice::from_ref(&said), &server.vouched()).await;
            let [Fetched::File { kind, .. }] = &fetched[..] else { panic!("{fetched:?}") };
            assert_eq!(*kind, expected, "{path}");
        }
    }
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

//! Tells the service manager how the gateway is: systemd's notification
//! protocol, a datagram to the socket that it names. Without one nothing is said.
//!
//! The variables come from the configuration, which alone reads the environment.

use std::{
    ffi::OsStr,
    io,
    os::unix::{
        ffi::OsStrExt as _,
        net::{SocketAddr, UnixDatagram},
    },
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

use ostler_core::environment::Variables;
use tokio::time::{self, MissedTickBehavior};

/// What tells the service manager.
#[derive(Debug)]
pub(crate) struct Notifier {
    /// Nobody, if no service manager started this.
    to: Option<(UnixDatagram, SocketAddr)>,
    /// How often it wants to hear something before it takes this for dead.
    watchdog: Option<Duration>,
    is_failure_told: AtomicBool,
}

impl Notifier {
    /// Reads whom to tell, as the process of this number.
    pub(crate) fn new(variables: &Variables, pid: u32) -> Self {
        let socket = variables.get(OsStr::new("NOTIFY_SOCKET")).filter(|name| !name.is_empty());
        let to = socket.and_then(|name| {
            open(name)
                .inspect_err(|error| {
                    tracing::warn!(%error, ?name, "the service manager cannot be told anything");
                })
                .ok()
        });
        let watchdog = watchdog(variables, pid).filter(|_| to.is_some());
        Self { to, watchdog, is_failure_told: AtomicBool::new(false) }
    }

    /// Says that the gateway takes messages, and what it does.
    pub(crate) fn ready(&self, status: &str) {
        self.tell(&format!("READY=1\nSTATUS={}", one_line(status)));
    }

    /// Says that the gateway is about to end.
    pub(crate) fn stopping(&self, status: &str) {
        self.tell(&format!("STOPPING=1\nSTATUS={}", one_line(status)));
    }

    /// Says that the gateway ends and starts again, as the same process.
    pub(crate) fn reloading(&self, status: &str) {
        self.tell(&format!("RELOADING=1\nSTATUS={}", one_line(status)));
    }

    /// Says that the gateway lives, for as long as it does well, until this is
    /// dropped. Let it run to the very end: the service manager wants to hear it
    /// also from one that is stopping.
    pub(crate) async fn feed_watchdog(&self, is_well: impl Fn() -> bool) {
        let Some(watchdog) = self.watchdog else { return std::future::pending().await };
        let mut ticks = time::interval(watchdog / 2);
        // After a pause of the whole machine one word is enough.
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut was_well = true;
        loop {
            ticks.tick().await;
            let is_well = is_well();
            if is_well {
                self.tell("WATCHDOG=1");
            } else if was_well {
                tracing::error!(?watchdog, "the gateway is not well; it will be started anew");
            }
            was_well = is_well;
        }
    }

    fn tell(&self, text: &str) {
        let Some((socket, to)) = &self.to else { return };
        if let Err(error) = socket.send_to_addr(text.as_bytes(), to)
            && !self.is_failure_told.swap(true, Ordering::Relaxed)
        {
            tracing::warn!(%error, "the service manager could not be told something");
        }
    }
}

/// Opens the way to a socket: a path, or a name behind `@` where Linux has those.
fn open(name: &OsStr) -> io::Result<(UnixDatagram, SocketAddr)> {
    let to = match name.as_bytes() {
        [b'@', name @ ..] => abstract_address(name)?,
        [b'/', ..] => SocketAddr::from_pathname(name)?,
        _ => return Err(io::Error::new(io::ErrorKind::Unsupported, "no such sockets are known")),
    };
    let socket = UnixDatagram::unbound()?;
    // A service manager that does not read must not stop the gateway.
    socket.set_nonblocking(true)?;
    Ok((socket, to))
}

#[cfg(target_os = "linux")]
fn abstract_address(name: &[u8]) -> io::Result<SocketAddr> {
    use std::os::linux::net::SocketAddrExt as _;

    SocketAddr::from_abstract_name(name)
}

#[cfg(not(target_os = "linux"))]
fn abstract_address(_: &[u8]) -> io::Result<SocketAddr> {
    Err(io::Error::new(io::ErrorKind::Unsupported, "only Linux has abstract sockets"))
}

/// Reads how often the service manager wants to hear of the process of this number.
fn watchdog(variables: &Variables, pid: u32) -> Option<Duration> {
    let number = |name: &str| variables.get(OsStr::new(name))?.to_str()?.parse::<u64>().ok();
    let is_meant = !variables.contains_key(OsStr::new("WATCHDOG_PID"))
        || number("WATCHDOG_PID") == Some(u64::from(pid));
    // Less than this is no limit that could be kept.
    let shortest = 2;
    let micros = number("WATCHDOG_USEC").filter(|micros| is_meant && *micros >= shortest)?;
    Some(Duration::from_micros(micros))
}

/// Makes a text one line: the next would be a word to the service manager.
fn one_line(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    const PID: u32 = 7;

    fn variables(pairs: &[(&str, &OsStr)]) -> Variables {
        pairs.iter().map(|(name, value)| (name.into(), value.into())).collect()
    }

    fn hear(socket: &UnixDatagram) -> Option<String> {
        let mut bytes = [0; 256];
        let length = socket.recv(&mut bytes).ok()?;
        Some(String::from_utf8(bytes[..length].to_vec()).unwrap())
    }

    /// A service manager, and what this process can tell it.
    fn manager(more: &[(&str, &str)]) -> (tempfile::TempDir, UnixDatagram, Notifier) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("notify");
        let socket = UnixDatagram::bind(&path).unwrap();
        socket.set_nonblocking(true).unwrap();
        let mut all = vec![("NOTIFY_SOCKET", path.as_os_str())];
        all.extend(more.iter().map(|(name, value)| (*name, OsStr::new(*value))));
        let notifier = Notifier::new(&variables(&all), PID);
        (folder, socket, notifier)
    }

    #[test]
    fn the_service_manager_hears_of_start_and_stop() {
        let (_folder, socket, notifier) = manager(&[]);
        notifier.ready("listening on 127.0.0.1:8474");
        notifier.stopping("a\nWATCHDOG=1");
        let heard: Vec<_> = std::iter::from_fn(|| hear(&socket)).collect();
        assert_eq!(
            heard,
            ["READY=1\nSTATUS=listening on 127.0.0.1:8474", "STOPPING=1\nSTATUS=a WATCHDOG=1",]
        );
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn an_abstract_socket_is_found_by_its_name() {
        let name = format!("ostler-test-{}", uuid::Uuid::now_v7().simple());
        let address = abstract_address(name.as_bytes()).unwrap();
        let socket = UnixDatagram::bind_addr(&address).unwrap();
        let name = format!("@{name}");
        let named = variables(&[("NOTIFY_SOCKET", OsStr::new(&name))]);
        Notifier::new(&named, PID).ready("");
        assert_eq!(hear(&socket).unwrap(), "READY=1\nSTATUS=");
    }

    #[test]
    fn without_a_service_manager_nothing_is_said_and_nothing_fails() {
        for name in ["", "relative", "vsock:2:1234", "/nowhere/at/all"] {
            let notifier = Notifier::new(&variables(&[("NOTIFY_SOCKET", OsStr::new(name))]), PID);
            notifier.ready("");
        }
        Notifier::new(&Variables::new(), PID).stopping("");
    }

    #[tokio::test(start_paused = true)]
    async fn the_watchdog_is_fed_at_half_its_time_while_all_is_well() {
        let (_folder, socket, notifier) = manager(&[("WATCHDOG_USEC", "20000000")]);
        let is_well = Cell::new(true);
        let for_a_while = |seconds| Duration::from_secs(seconds);
        let fed = notifier.feed_watchdog(|| is_well.get());
        tokio::pin!(fed);
        let n_heard = |socket: &UnixDatagram| {
            let heard = std::iter::from_fn(|| hear(socket));
            heard.inspect(|word| assert_eq!(word, "WATCHDOG=1")).count()
        };
        assert!(time::timeout(for_a_while(35), &mut fed).await.is_err());
        assert_eq!(n_heard(&socket), 4);
        is_well.set(false);
        assert!(time::timeout(for_a_while(40), &mut fed).await.is_err());
        assert_eq!(n_heard(&socket), 0);
        is_well.set(true);
        assert!(time::timeout(for_a_while(10), &mut fed).await.is_err());
        assert_eq!(n_heard(&socket), 1);
    }

    #[test]
    fn a_watchdog_of_another_process_is_not_ours() {
        let read = |pairs: &[(&str, &str)]| {
            let pairs: Vec<_> =
                pairs.iter().map(|(name, value)| (*name, OsStr::new(*value))).collect();
            watchdog(&variables(&pairs), PID)
        };
        let ours = Some(Duration::from_secs(1));
        assert_eq!(read(&[("WATCHDOG_USEC", "1000000")]), ours);
        assert_eq!(read(&[("WATCHDOG_USEC", "1000000"), ("WATCHDOG_PID", "7")]), ours);
        assert_eq!(read(&[("WATCHDOG_USEC", "1000000"), ("WATCHDOG_PID", "8")]), None);
        for wrong in ["0", "", "-1", "soon"] {
            assert_eq!(read(&[("WATCHDOG_USEC", wrong)]), None, "{wrong}");
        }
        assert_eq!(read(&[]), None);
    }
}

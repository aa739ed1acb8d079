//! Where a call on behalf of a caller may lead: not to this machine, nor to the
//! networks around it, where services trust whoever can reach them.
//!
//! What counts is the address that is connected to. A name is looked up here, and
//! only addresses that may be reached are handed on, so that nothing can change
//! between the look and the call.

use std::{
    fmt, io,
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
    sync::Arc,
};

use reqwest::{
    Url,
    dns::{Addrs, Name, Resolve, Resolving},
};
use thiserror::Error;

use crate::store::BoxFuture;

/// Networks of IPv4 that are not the public Internet: address and length of prefix.
const CLOSED_V4: [(Ipv4Addr, u32); 16] = [
    // This network, and unspecified.
    (Ipv4Addr::new(0, 0, 0, 0), 8),
    (Ipv4Addr::new(10, 0, 0, 0), 8),
    // Behind a provider's translation of addresses.
    (Ipv4Addr::new(100, 64, 0, 0), 10),
    (Ipv4Addr::new(127, 0, 0, 0), 8),
    // The host of machines in Azure, which hands out what they are configured with.
    (Ipv4Addr::new(168, 63, 129, 16), 32),
    // Link-local; also where clouds keep the credentials of machines.
    (Ipv4Addr::new(169, 254, 0, 0), 16),
    (Ipv4Addr::new(172, 16, 0, 0), 12),
    // Protocols, documentation, relays, benchmarks.
    (Ipv4Addr::new(192, 0, 0, 0), 24),
    (Ipv4Addr::new(192, 0, 2, 0), 24),
    (Ipv4Addr::new(192, 88, 99, 0), 24),
    (Ipv4Addr::new(192, 168, 0, 0), 16),
    (Ipv4Addr::new(198, 18, 0, 0), 15),
    (Ipv4Addr::new(198, 51, 100, 0), 24),
    (Ipv4Addr::new(203, 0, 113, 0), 24),
    // Multicast, and everything above it: reserved, and broadcast.
    (Ipv4Addr::new(224, 0, 0, 0), 4),
    (Ipv4Addr::new(240, 0, 0, 0), 4),
];

/// What is public of IPv6.
const OPEN_V6: (Ipv6Addr, u32) = (Ipv6Addr::new(0x2000, 0, 0, 0, 0, 0, 0, 0), 3);
/// What is not, although it lies within that.
const CLOSED_V6: [(Ipv6Addr, u32); 4] = [
    // Protocols, among them Teredo, which has an IPv4 address within.
    (Ipv6Addr::new(0x2001, 0, 0, 0, 0, 0, 0, 0), 23),
    (Ipv6Addr::new(0x2001, 0x0db8, 0, 0, 0, 0, 0, 0), 32),
    // 6to4, which has one as well.
    (Ipv6Addr::new(0x2002, 0, 0, 0, 0, 0, 0, 0), 16),
    (Ipv6Addr::new(0x3fff, 0, 0, 0, 0, 0, 0, 0), 20),
];
/// Where networks without IPv4 have all of it, in the last 32 bits.
const NAT64: (Ipv6Addr, u32) = (Ipv6Addr::new(0x64, 0xff9b, 0, 0, 0, 0, 0, 0), 96);

/// Whether an address is one of the public Internet.
pub(crate) fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => !CLOSED_V4
            .iter()
            .any(|(network, length)| (network.to_bits() ^ address.to_bits()) >> (32 - length) == 0),
        IpAddr::V6(address) => {
            if let Some(within) = address.to_ipv4_mapped() {
                return is_public(within.into());
            }
            if lies_in(address, NAT64) {
                let [.., a, b, c, d] = address.octets();
                return is_public(Ipv4Addr::new(a, b, c, d).into());
            }
            lies_in(address, OPEN_V6) && !CLOSED_V6.iter().any(|net| lies_in(address, *net))
        }
    }
}

fn lies_in(address: Ipv6Addr, (network, length): (Ipv6Addr, u32)) -> bool {
    (network.to_bits() ^ address.to_bits()) >> (128 - length) == 0
}

/// A call that would lead where none may.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
#[error(
    "it leads to this machine or a private network; where that is wanted, the gateway's owner \
     sets api.private_webhooks"
)]
pub(crate) struct Private;

/// Checks a URL as far as it says itself where it leads. However an address is
/// written, the URL has it in one form.
pub(crate) fn check(url: &str) -> Result<(), Private> {
    let host = Url::parse(url).ok().and_then(|url| url.host_str().map(str::to_owned));
    let host = host.unwrap_or_default();
    let host = host.trim_end_matches('.');
    if host == "localhost" || host.ends_with(".localhost") {
        return Err(Private);
    }
    let literal = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
    match literal.parse::<IpAddr>() {
        Ok(address) if !is_public(address) => Err(Private),
        Ok(_) | Err(_) => Ok(()),
    }
}

/// What finds the addresses of a name.
pub(crate) type Lookup =
    Arc<dyn Fn(String) -> BoxFuture<'static, io::Result<Vec<SocketAddr>>> + Send + Sync>;

/// Asks the system.
pub(crate) fn system() -> Lookup {
    Arc::new(|name| {
        Box::pin(async move {
            // The port is that of the URL in any case.
            Ok(tokio::net::lookup_host((name.as_str(), 0)).await?.collect())
        })
    })
}

/// Looks names up, and forgets addresses that are not public.
#[derive(Clone)]
pub(crate) struct PublicOnly(pub(crate) Lookup);

impl fmt::Debug for PublicOnly {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PublicOnly")
    }
}

impl Resolve for PublicOnly {
    fn resolve(&self, name: Name) -> Resolving {
        let found = (self.0)(name.as_str().to_owned());
        Box::pin(async move {
            let mut found = found.await?;
            let n_found = found.len();
            found.retain(|address| is_public(address.ip()));
            if found.is_empty() && n_found > 0 {
                return Err(Private.into());
            }
            Ok(Box::new(found.into_iter()) as Addrs)
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn an_address_that_is_not_public_is_refused_however_it_is_written() {
        for host in [
            "127.0.0.1",
            "127.1",
            "2130706433",
            "0x7f000001",
            "0x7f.1",
            "017700000001",
            "0177.0.0.1",
            "127.0.0.1.",
            "168.63.129.16",
            "0",
            "0.0.0.0",
            "10.1.2.3",
            "100.64.0.1",
            "100.127.255.255",
            "169.254.169.254",
            "0xa9fea9fe",
            "172.16.0.1",
            "172.31.255.255",
            "192.0.0.192",
            "192.168.1.1",
            "198.18.0.1",
            "198.19.255.255",
            "224.0.0.1",
            "255.255.255.255",
            "①②⑦.0.0.1",
            "[::]",
            "[::1]",
            "[0:0:0:0:0:0:0:1]",
            "[::ffff:127.0.0.1]",
            "[::ffff:7f00:1]",
            "[::ffff:169.254.169.254]",
            "[::127.0.0.1]",
            "[64:ff9b::7f00:1]",
            "[64:ff9b:1::1]",
            "[2002:7f00:1::]",
            "[2001::1]",
            "[2001:db8::1]",
            "[fc00::1]",
            "[fd12:3456::1]",
            "[fe80::1]",
            "[fec0::1]",
            "[ff02::1]",
            "[3fff::1]",
            "[4000::1]",
            "localhost",
            "LOCALHOST",
            "localhost.",
            "very.localhost",
        ] {
            assert_eq!(check(&format!("http://{host}:8080/x")), Err(Private), "{host}");
            assert_eq!(check(&format!("https://{host}/")), Err(Private), "{host}");
        }
    }

    #[test]
    fn a_public_address_and_a_name_may_be_called() {
        for host in [
            "1.1.1.1",
            "100.63.255.255",
            "100.128.0.1",
            "168.63.129.15",
            "168.63.129.17",
            "172.15.0.1",
            "172.32.0.1",
            "[2606:4700::1111]",
            "[64:ff9b::101:101]",
            "[::ffff:1.1.1.1]",
            "example.org",
            "localhost.example.org",
        ] {
            assert_eq!(check(&format!("https://{host}/")), Ok(()), "{host}");
        }
    }

    #[tokio::test]
    async fn of_a_name_only_public_addresses_are_handed_on() {
        let addresses = |of: &[&str]| {
            let found: Vec<SocketAddr> = of.iter().map(|text| text.parse().unwrap()).collect();
            let lookup: Lookup = Arc::new(move |_| {
                let found = found.clone();
                Box::pin(async move { Ok(found) })
            });
            PublicOnly(lookup).resolve("hooks.example".parse().unwrap())
        };
        let both = addresses(&["127.0.0.1:0", "1.1.1.1:0", "[fd00::1]:0"]).await.unwrap();
        assert_eq!(both.collect::<Vec<_>>(), ["1.1.1.1:0".parse().unwrap()]);
        let none = addresses(&["127.0.0.1:0"]).await.err().unwrap();
        assert!(none.to_string().contains("private"), "{none}");
    }

    proptest! {
        #[test]
        fn an_address_is_as_public_within_ipv6_as_it_is_itself(bits: u32) {
            let address = Ipv4Addr::from_bits(bits);
            let is_open = is_public(address.into());
            prop_assert_eq!(is_public(address.to_ipv6_mapped().into()), is_open);
            if address.is_loopback() || address.is_private() || address.is_link_local()
                || address.is_multicast() || address.is_documentation()
                || address.is_unspecified() || address.is_broadcast()
            {
                prop_assert!(!is_open, "{}", address);
            }
        }
    }
}

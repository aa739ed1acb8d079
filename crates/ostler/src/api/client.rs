//! Where a request comes from: the other end of the connection, or whom a proxy
//! that is trusted speaks for.

use std::net::{IpAddr, SocketAddr};

use axum::http::{HeaderMap, HeaderName};
use ipnet::IpNet;

const FORWARDED: HeaderName = HeaderName::from_static("x-forwarded-for");

/// Returns the address of a caller. Each proxy adds to the right whom it was
/// called by, so that what a stranger claimed stands further left than the first
/// address that is not a proxy's.
pub(super) fn address(peer: IpAddr, headers: &HeaderMap, proxies: &[IpNet]) -> IpAddr {
    let mut address = peer.to_canonical();
    let said = headers.get_all(FORWARDED).iter().rev();
    let said = said.flat_map(|value| value.to_str().unwrap_or_default().rsplit(','));
    for entry in said {
        if !proxies.iter().any(|network| network.contains(&address)) {
            break;
        }
        let Some(before) = read(entry.trim()) else { break };
        address = before;
    }
    address
}

/// Reads an address, which some proxies write with the port.
fn read(text: &str) -> Option<IpAddr> {
    let bare = text.strip_prefix('[').and_then(|text| text.strip_suffix(']')).unwrap_or(text);
    let with_port = || text.parse::<SocketAddr>().ok().map(|address| address.ip());
    bare.parse().ok().or_else(with_port).map(|address| address.to_canonical())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(peer: &str, said: &[&'static str], proxies: &[&str]) -> String {
        let mut headers = HeaderMap::new();
        for said in said {
            headers.append(FORWARDED, said.parse().unwrap());
        }
        let proxies: Vec<_> = proxies.iter().map(|network| network.parse().unwrap()).collect();
        address(peer.parse().unwrap(), &headers, &proxies).to_string()
    }

    #[test]
    fn nobody_is_believed_who_is_not_a_trusted_proxy() {
        assert_eq!(of("9.9.9.9", &["1.1.1.1"], &[]), "9.9.9.9");
        assert_eq!(of("9.9.9.9", &["1.1.1.1"], &["10.0.0.0/8"]), "9.9.9.9");
    }

    #[test]
    fn the_first_address_from_the_right_that_is_no_proxy_counts() {
        let proxies = ["10.0.0.0/8", "fd00::/8"];
        for (said, found) in [
            (vec!["1.1.1.1"], "1.1.1.1"),
            (vec!["6.6.6.6, 1.1.1.1"], "1.1.1.1"),
            (vec!["6.6.6.6, 1.1.1.1, 10.0.0.2"], "1.1.1.1"),
            (vec!["6.6.6.6", "1.1.1.1 ,10.0.0.2"], "1.1.1.1"),
            (vec!["1.1.1.1:4711"], "1.1.1.1"),
            (vec!["[2001:db8::1]:4711, fd00::1"], "2001:db8::1"),
            (vec!["[2001:db8::1]"], "2001:db8::1"),
            (vec!["::ffff:1.1.1.1"], "1.1.1.1"),
        ] {
            assert_eq!(of("10.0.0.1", &said, &proxies), found, "{said:?}");
            assert_eq!(of("::ffff:10.0.0.1", &said, &proxies), found, "{said:?}");
        }
    }

    #[test]
    fn what_cannot_be_read_ends_at_the_last_proxy_that_can() {
        let proxies = ["10.0.0.0/8"];
        for (said, found) in [
            (vec![], "10.0.0.1"),
            (vec![""], "10.0.0.1"),
            (vec!["unknown"], "10.0.0.1"),
            (vec!["1.1.1.1, nonsense, 10.0.0.2"], "10.0.0.2"),
            (vec!["10.0.0.3, 10.0.0.2"], "10.0.0.3"),
        ] {
            assert_eq!(of("10.0.0.1", &said, &proxies), found, "{said:?}");
        }
    }
}

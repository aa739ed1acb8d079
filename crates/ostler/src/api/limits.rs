//! How often somebody may ask: each key, each address, and each address with keys
//! that are none. What is known of them is forgotten when it no longer matters.

use std::{
    hash::Hash,
    net::{IpAddr, Ipv6Addr, SocketAddr},
    num::NonZeroU32,
    sync::atomic::{AtomicU32, Ordering},
    time::Duration,
};

use axum::{
    extract::{ConnectInfo, Request, State},
    middleware::Next,
    response::{IntoResponse as _, Response},
};
use governor::{
    Quota, RateLimiter,
    clock::{Clock, DefaultClock},
    middleware::NoOpMiddleware,
    state::keyed::DashMapStateStore,
};

use super::{ApiError, Code, Service, client};
use crate::{config::Api, id::KeyId};

/// How many keys that are none an address may show in a minute.
const FAILURES: NonZeroU32 = NonZeroU32::new(30).unwrap();
/// How often those are forgotten who have not been seen for a while, in requests.
const SWEEP: u32 = 1024;
/// The bits of an IPv6 address that say whose it is: the rest its owner chooses.
const OWNED: u32 = 64;
/// What watchers ask again and again, and what costs nothing.
const FREE: [&str; 2] = ["/health", "/ready"];
/// What services fetch by links that nobody guesses. Behind a proxy they may share an
/// address with strangers, who would use it up.
const BY_LINK: &str = "/media/";

/// All limits.
pub(super) struct Limits {
    keys: Limit<KeyId>,
    addresses: Limit<IpAddr>,
    failures: Limit<IpAddr>,
}

impl Limits {
    pub(super) fn new(api: &Api) -> Self {
        let per_minute = |number| NonZeroU32::new(number).unwrap_or(NonZeroU32::MIN);
        Self {
            keys: Limit::new(per_minute(api.requests_per_key)),
            addresses: Limit::new(per_minute(api.requests_per_address)),
            failures: Limit::new(FAILURES),
        }
    }

    /// Counts a request with a key.
    pub(super) fn key(&self, key: KeyId) -> Result<(), ApiError> {
        self.keys.count(key).map_err(|wait| too_many("the key made", wait))
    }

    /// Counts a request from an address.
    pub(super) fn address(&self, address: IpAddr) -> Result<(), ApiError> {
        self.addresses.count(owner(address)).map_err(|wait| too_many("this address made", wait))
    }

    /// Counts a request with a key that could not be used.
    pub(super) fn failure(&self, address: IpAddr) -> Result<(), ApiError> {
        let error = |wait| {
            let message = "too many requests of this address had a key that cannot be used";
            ApiError::new(Code::TooManyRequests, message).retry_after(wait)
        };
        self.failures.count(owner(address)).map_err(error)
    }
}

/// Whether requests for a path do not count.
pub(super) fn is_free(path: &str) -> bool {
    FREE.contains(&path) || path.strip_prefix(BY_LINK).is_some_and(|word| !word.contains('/'))
}

fn too_many(who: &str, wait: Duration) -> ApiError {
    let message = format!("{who} too many requests; ask again after Retry-After seconds");
    ApiError::new(Code::TooManyRequests, message).retry_after(wait)
}

/// Returns what an address is counted as.
fn owner(address: IpAddr) -> IpAddr {
    match address {
        IpAddr::V4(_) => address,
        IpAddr::V6(address) => {
            let bits = address.to_bits() >> (u128::BITS - OWNED) << (u128::BITS - OWNED);
            Ipv6Addr::from_bits(bits).into()
        }
    }
}

/// So many times a minute for each of some things: all at once, and then evenly.
struct Limit<K: Hash + Eq + Clone, C: Clock = DefaultClock> {
    limiter: RateLimiter<K, DashMapStateStore<K>, C, NoOpMiddleware<C::Instant>>,
    n_counted: AtomicU32,
}

impl<K: Hash + Eq + Clone> Limit<K> {
    fn new(per_minute: NonZeroU32) -> Self {
        Self::with_clock(per_minute, DefaultClock::default())
    }
}

impl<K: Hash + Eq + Clone, C: Clock> Limit<K, C> {
    fn with_clock(per_minute: NonZeroU32, clock: C) -> Self {
        let state = DashMapStateStore::default();
        let limiter = RateLimiter::new(Quota::per_minute(per_minute), state, clock);
        Self { limiter, n_counted: AtomicU32::new(0) }
    }

    /// Counts one time, or returns how long to wait.
    fn count(&self, key: K) -> Result<(), Duration> {
        if self.n_counted.fetch_add(1, Ordering::Relaxed).is_multiple_of(SWEEP) {
            self.limiter.retain_recent();
            self.limiter.shrink_to_fit();
        }
        let now = || self.limiter.clock().now();
        self.limiter.check_key(&key).map_err(|not_until| not_until.wait_time_from(now()))
    }
}

/// Where a request comes from, as far as that can be known.
#[derive(Clone, Copy, Debug)]
pub(super) struct Address(pub(super) IpAddr);

/// Notes where a request comes from, and refuses it if too many do from there.
pub(super) async fn by_address(
    State(service): State<Service>,
    mut request: Request,
    next: Next,
) -> Response {
    let Some(ConnectInfo(peer)) = request.extensions().get::<ConnectInfo<SocketAddr>>() else {
        return ApiError::new(Code::InternalError, "nobody knows who asks").into_response();
    };
    let proxies = &service.policy().api.trusted_proxies;
    let address = client::address(peer.ip(), request.headers(), proxies);
    if !is_free(request.uri().path())
        && let Err(error) = service.limits().address(address)
    {
        return error.into_response();
    }
    request.extensions_mut().insert(Address(address));
    next.run(request).await
}

#[cfg(test)]
mod tests {
    use governor::clock::FakeRelativeClock;

    use super::*;

    #[test]
    fn who_asked_too_often_is_told_how_long_to_wait_and_others_are_not() {
        let clock = FakeRelativeClock::default();
        let limit = Limit::with_clock(NonZeroU32::new(3).unwrap(), clock.clone());
        assert!((0..3).all(|_| limit.count("a").is_ok()));
        assert_eq!(limit.count("a"), Err(Duration::from_secs(20)));
        assert_eq!(limit.count("b"), Ok(()));
        clock.advance(Duration::from_secs(20));
        assert_eq!(limit.count("a"), Ok(()));
        assert!(limit.count("a").is_err());
    }

    #[test]
    fn who_has_not_asked_for_a_while_is_forgotten() {
        let clock = FakeRelativeClock::default();
        let limit = Limit::with_clock(NonZeroU32::new(600).unwrap(), clock.clone());
        for number in 0..10 * SWEEP {
            clock.advance(Duration::from_millis(200));
            limit.count(number).unwrap();
        }
        assert!(limit.limiter.len() <= 2 * SWEEP as usize, "{}", limit.limiter.len());
    }

    #[test]
    fn all_addresses_of_a_network_at_home_are_one() {
        let owner = |text: &str| owner(text.parse().unwrap()).to_string();
        assert_eq!(owner("2001:db8:1:2:3:4:5:6"), "2001:db8:1:2::");
        assert_eq!(owner("192.0.2.7"), "192.0.2.7");
    }
}

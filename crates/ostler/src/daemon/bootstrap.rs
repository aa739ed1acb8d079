//! The first key: made when a gateway starts that has none, and shown once to the
//! one who started it.

use super::http::Keys;
use crate::{
    clock::Millis,
    key::{KeyText, Scope, wanted::Wanted},
    store::{
        Conn, Store, StoreError,
        audit::{self, Entry},
        duties,
        keys::{self, NewKey},
    },
    ui::Ui,
};

/// Who is written down for the first key.
const MAKER: &str = "bootstrap";

/// Which keys there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Found {
    /// Any, be it revoked or expired.
    any: Keys,
    pub(super) usable: Keys,
}

/// Looks which keys there are.
pub(super) async fn look(store: &Store) -> Result<Found, StoreError> {
    let found = store.read(Millis::now(), |conn, now| {
        Box::pin(async move {
            let usable = keys::is_any_active(conn, *now).await?;
            Ok::<_, StoreError>((usable || keys::is_any(conn).await?, usable))
        })
    });
    let (any, usable) = found.await?;
    let keys = |is_there| if is_there { Keys::Some } else { Keys::None };
    Ok(Found { any: keys(any), usable: keys(usable) })
}

/// Makes the first key if there is none, and shows it. Not in the log, which others
/// may read and which is kept.
pub(super) async fn make(store: &Store, found: Found) -> Result<(), StoreError> {
    if found.any == Keys::Some {
        return Ok(());
    }
    let now = Millis::now();
    let wanted = Wanted {
        name: "admin".to_owned(),
        scopes: vec![Scope::Admin],
        projects: None,
        networks: None,
        expires_at: None,
    };
    let (text, key) = match wanted.make(MAKER.to_owned(), now) {
        Ok(made) => made,
        Err(error) => {
            tracing::warn!(%error, "no first key was made; `ostler keys create` makes one");
            return Ok(());
        }
    };
    let is_first =
        store.write_repeatable((key, now), |conn, (key, now)| Box::pin(add_first(conn, key, *now)));
    if is_first.await? {
        show(&text);
    }
    Ok(())
}

/// Keeps a key, unless there is one by now.
async fn add_first(conn: &mut Conn, key: &NewKey, now: Millis) -> Result<bool, StoreError> {
    // Another gateway may be at it as well: one of them waits here.
    duties::wait(conn, duties::FIRST_KEY).await?;
    if keys::find(conn, key.id).await?.is_some() {
        return Ok(true);
    }
    if keys::is_any(conn).await? {
        return Ok(false);
    }
    keys::add(conn, key).await?;
    let entry = Entry {
        at: now,
        actor: MAKER.to_owned(),
        action: "key.create".to_owned(),
        subject: key.id.to_string(),
        detail: key.summary().to_string(),
    };
    audit::add(conn, &entry).await?;
    Ok(true)
}

fn show(key: &KeyText) {
    Ui::default().notice(&format!(
        "\n  A key for the HTTP service was made. It may do everything, and is shown only now:\n\n      \
         {}\n\n  Keep it. `ostler keys create` makes others.\n",
        key.reveal()
    ));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::testing::on_both;

    async fn all(store: &Store) -> Vec<keys::StoredKey> {
        store.read((), |conn, ()| Box::pin(keys::list(conn, None, 10))).await.unwrap()
    }

    on_both! {
        async fn the_first_start_makes_a_key_that_may_do_everything_and_later_ones_none(store: Store) {
            let nothing = look(&store).await.unwrap();
            assert_eq!(nothing, Found { any: Keys::None, usable: Keys::None });
            make(&store, nothing).await.unwrap();
            let made = all(&store).await;
            assert_eq!((made.len(), made[0].key.created_by.as_str()), (1, MAKER));
            assert_eq!(made[0].key.scopes, [Scope::Admin]);
            // Another gateway that looked at the same time.
            make(&store, nothing).await.unwrap();
            let found = look(&store).await.unwrap();
            assert_eq!(found, Found { any: Keys::Some, usable: Keys::Some });
            make(&store, found).await.unwrap();
            assert_eq!(all(&store).await, made);
            let subject = made[0].key.id.to_string();
            let lines = store.read(subject, |conn, subject| Box::pin(audit::about(conn, subject)));
            let lines = lines.await.unwrap();
            assert_eq!(lines.len(), 1);
            assert!(!lines[0].detail.contains(&made[0].key.hash), "{lines:?}");
        }

        async fn gateways_that_start_at_once_make_one_key(store: Store) {
            let nothing = look(&store).await.unwrap();
            let mut many = tokio::task::JoinSet::new();
            for _ in 0..8 {
                let store = store.clone();
                many.spawn(async move { make(&store, nothing).await.unwrap() });
            }
            many.join_all().await;
            assert_eq!(all(&store).await.len(), 1);
        }

        async fn keys_that_cannot_be_used_open_nothing_and_are_not_replaced(store: Store) {
            make(&store, look(&store).await.unwrap()).await.unwrap();
            store
                .must((), |conn, ()| {
                    Box::pin(async move {
                        let mut keys = keys::list(conn, None, 10).await?;
                        let mut expired = keys.remove(0).key;
                        expired.id = crate::id::KeyId::new();
                        expired.prefix = "ost_expired0".to_owned();
                        expired.expires_at = Some(Millis(1));
                        keys::add(conn, &expired).await
                    })
                })
                .await;
            // The expired one does not count, and so the other one stays the last.
            let all = all(&store).await;
            let active = all.iter().find(|key| key.key.expires_at.is_none()).unwrap().clone();
            let revoked = store.must(active, |conn, key| {
                Box::pin(keys::revoke(conn, key.clone(), Millis::now()))
            });
            assert_eq!(revoked.await, keys::Revoked::Last);
        }
    }
}

//! Whose messages belong to a group. What somebody in a group writes goes to the
//! number that he has there, so that Twilio tells of it twice: as said in the group,
//! and as written to the number. It is the group's, and answered there alone.
//!
//! Who is in which group is kept in memory, for calls are to be answered soon.

use std::{
    collections::HashMap,
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::time::{self, Instant};

use super::{
    api::{Api, Participant},
    code::Trouble,
    heard::Heard,
    kind::Kind,
};

/// How long a call of Twilio's waits until it is known who is in a group.
const PATIENCE: Duration = Duration::from_secs(5);
/// What was asked before that is asked again. Whoever asks for messages does so more
/// often; of several gateways only one does.
const STALE: Duration = Duration::from_secs(300);
/// What was asked before that is asked again before something is taken for a group's: who
/// has left it is not answered there.
const SURE: Duration = Duration::from_secs(5);
/// How many groups are remembered that are not listed.
const GROUPS: usize = 100;

/// Somebody's number, and the one of this gateway's to which he writes in a group.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Binding {
    kind: Kind,
    person: String,
    own: String,
}

impl Binding {
    fn of(participant: &Participant) -> Option<Self> {
        let binding = participant.messaging_binding.as_ref()?;
        let (kind, person) = Kind::of(binding.address.as_deref()?);
        let (_, own) = Kind::of(binding.proxy_address.as_deref()?);
        Some(Self { kind, person: person.to_owned(), own: own.to_owned() })
    }
}

/// What is known of a group.
struct Known {
    bindings: Vec<Binding>,
    asked_at: Instant,
}

/// Who is in groups. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Bound {
    api: Arc<Api>,
    groups: Arc<Mutex<HashMap<String, Known>>>,
    /// Held by whoever asks, so that others can wait for what he hears.
    asking: Arc<tokio::sync::Mutex<()>>,
}

impl fmt::Debug for Bound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Bound")
    }
}

impl Bound {
    pub(crate) fn new(api: Arc<Api>) -> Self {
        Self { api, groups: Arc::default(), asking: Arc::default() }
    }

    /// Whether what somebody wrote to a number is a group's, as Twilio says now, or said a
    /// moment ago.
    pub(crate) async fn has(&self, heard: &Heard) -> bool {
        let is_old = |(_, asked_at): &(String, Instant)| asked_at.elapsed() >= SURE;
        if self.groups_of(heard).iter().any(is_old) {
            let asked = async {
                let _asking = self.asking.lock().await;
                for (group, _) in self.groups_of(heard).into_iter().filter(is_old) {
                    if let Err(why) = self.ask(&group).await {
                        tracing::debug!(group, "it is not known who is in a group: {why}");
                    }
                }
            };
            time::timeout(PATIENCE, asked).await.ok();
        }
        !self.groups_of(heard).is_empty()
    }

    /// Returns the groups whose somebody's message is, as far as is known, and when each
    /// was asked for.
    fn groups_of(&self, heard: &Heard) -> Vec<(String, Instant)> {
        if heard.kind == Kind::Group {
            return Vec::new();
        }
        let is_it = |binding: &Binding| {
            binding.kind == heard.kind
                && binding.person == heard.from
                && heard.to.as_deref().is_some_and(|to| to == binding.own)
        };
        let known = self.lock();
        let of = known.iter().filter(|(_, known)| known.bindings.iter().any(is_it));
        of.map(|(group, known)| (group.clone(), known.asked_at)).collect()
    }

    /// Asks who is in these groups now, and now and then in others that were heard of. The error
    /// is that of a group of which nothing is known at all.
    pub(crate) async fn refresh(&self, listed: &[String]) -> Result<(), Trouble> {
        let _asking = self.asking.lock().await;
        let heard_of: Vec<String> = self.lock().keys().cloned().collect();
        let others = self.unknown(&heard_of);
        let others = others.iter().filter(|group| !listed.contains(group));
        for group in listed.iter().chain(others) {
            self.ask(group).await?;
        }
        Ok(())
    }

    /// Waits until it is known who is in these groups; not for long. Returns whether it
    /// is.
    pub(crate) async fn is_ready(&self, listed: &[String]) -> bool {
        let is_asking = self.asking.try_lock().is_err();
        if !is_asking && self.unknown(listed).is_empty() {
            return true;
        }
        let asked = async {
            let _asking = self.asking.lock().await;
            for group in self.unknown(listed) {
                if let Err(why) = self.ask(&group).await {
                    tracing::warn!(group, "it is not known who is in a group: {why}");
                    return;
                }
            }
        };
        time::timeout(PATIENCE, asked).await.ok();
        let known = self.lock();
        listed.iter().all(|group| known.contains_key(group))
    }

    /// Hears that something happened in a group, by somebody or not: it may be new, or
    /// have new people.
    pub(crate) async fn hear_of(&self, group: &str, by: Option<&Heard>) {
        {
            let known = self.lock();
            let is_full = known.len() >= GROUPS && !known.contains_key(group);
            let is_in = |known: &Known, by: &Heard| {
                let is_he = |it: &Binding| it.kind == by.by && it.person == by.from;
                by.is_own || known.bindings.iter().any(is_he)
            };
            if is_full || by.is_some_and(|by| known.get(group).is_some_and(|it| is_in(it, by))) {
                return;
            }
        }
        let asked = async {
            let _asking = self.asking.lock().await;
            if let Err(why) = self.ask(group).await {
                tracing::debug!(group, "it is not known who is in a group: {why}");
            }
        };
        time::timeout(PATIENCE, asked).await.ok();
    }

    /// Asks who is in a group. One that nobody may look at has nobody in it.
    async fn ask(&self, group: &str) -> Result<(), Trouble> {
        let people = match self.people(group).await {
            Ok(people) => people,
            Err(trouble) if trouble.is_lasting() => Vec::new(),
            // What is known is better than nothing.
            Err(_) if self.lock().contains_key(group) => return Ok(()),
            Err(trouble) => return Err(trouble),
        };
        let bindings = people.iter().filter_map(Binding::of).collect();
        self.lock().insert(group.to_owned(), Known { bindings, asked_at: Instant::now() });
        Ok(())
    }

    /// Returns who is heard in a group: nobody, if it was closed.
    async fn people(&self, group: &str) -> Result<Vec<Participant>, Trouble> {
        if self.api.is_closed(group).await? {
            return Ok(Vec::new());
        }
        self.api.participants(group).await
    }

    /// Returns the groups of which nothing is known, or not for long.
    fn unknown(&self, listed: &[String]) -> Vec<String> {
        let known = self.lock();
        let is_known = |group: &&String| {
            known.get(*group).is_some_and(|known| known.asked_at.elapsed() < STALE)
        };
        listed.iter().filter(|group| !is_known(group)).cloned().collect()
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, Known>> {
        self.groups.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

//! Which channels there are, as far as Discord told: what they are called, and
//! which of them are threads of which. Bounded; what is not in here can be asked
//! for. Pure.

use std::collections::{HashMap, VecDeque};

use twilight_model::{
    channel::Channel,
    gateway::{event::Event, payload::incoming::GuildCreate},
};

use super::names;

/// How many channels are known at most.
const MOST: usize = 20_000;
/// The longest name of a channel, in characters.
const NAME: usize = 100;

/// What is known of a channel.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) name: Option<String>,
    /// The channel that it is a thread of.
    pub(crate) parent: Option<String>,
}

impl Place {
    pub(crate) fn new(name: Option<&str>, parent: Option<String>) -> Self {
        let name = name.map(|name| names::shown(name, NAME)).filter(|name| !name.is_empty());
        Self { name, parent }
    }
}

/// The channels that are known.
#[derive(Debug, Default)]
pub(crate) struct Places {
    by_id: HashMap<String, Place>,
    /// In the order in which they were learnt; the first is forgotten first.
    order: VecDeque<String>,
}

impl Places {
    pub(crate) fn get(&self, channel: &str) -> Option<&Place> {
        self.by_id.get(channel)
    }

    /// Learns of one channel.
    pub(crate) fn put(&mut self, channel: &str, place: Place) {
        if self.by_id.insert(channel.to_owned(), place).is_some() {
            return;
        }
        self.order.push_back(channel.to_owned());
        if self.order.len() > MOST
            && let Some(oldest) = self.order.pop_front()
        {
            self.by_id.remove(&oldest);
        }
    }

    fn forget(&mut self, channel: &str) {
        if self.by_id.remove(channel).is_some() {
            self.order.retain(|known| known != channel);
        }
    }

    fn see(&mut self, channel: &Channel) {
        let parent = channel.parent_id.filter(|_| channel.kind.is_thread());
        let place = Place::new(channel.name.as_deref(), parent.map(|id| id.to_string()));
        self.put(&channel.id.to_string(), place);
    }

    /// Learns what an event tells of channels.
    pub(crate) fn learn(&mut self, event: &Event) {
        #[expect(clippy::wildcard_enum_match_arm, reason = "the others tell nothing of channels")]
        match event {
            Event::GuildCreate(guild) => match guild.as_ref() {
                GuildCreate::Available(guild) => {
                    guild.channels.iter().chain(&guild.threads).for_each(|one| self.see(one));
                }
                GuildCreate::Unavailable(_) => {}
            },
            Event::ChannelCreate(channel) => self.see(channel),
            Event::ChannelUpdate(channel) => self.see(channel),
            Event::ChannelDelete(channel) => self.forget(&channel.id.to_string()),
            Event::ThreadCreate(thread) => self.see(thread),
            Event::ThreadUpdate(thread) => self.see(thread),
            Event::ThreadDelete(thread) => self.forget(&thread.id.to_string()),
            Event::ThreadListSync(sync) => sync.threads.iter().for_each(|one| self.see(one)),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn channel(id: &str, kind: u8, name: &str, parent: Option<&str>) -> Channel {
        let channel = json!({"id": id, "type": kind, "name": name, "parent_id": parent});
        serde_json::from_value(channel).unwrap()
    }

    /// Makes an event of its payload.
    fn event<T: serde::de::DeserializeOwned>(payload: Value) -> T {
        serde_json::from_value(payload).unwrap()
    }

    #[test]
    fn a_thread_has_its_channel_and_a_channel_not_its_category() {
        let mut places = Places::default();
        places.see(&channel("5", 0, "general", Some("1")));
        places.see(&channel("6", 11, "fix the\nbuild", Some("5")));
        assert_eq!(places.get("5"), Some(&Place { name: Some("general".into()), parent: None }));
        let thread = Place { name: Some("fix thebuild".into()), parent: Some("5".into()) };
        assert_eq!(places.get("6"), Some(&thread));
        assert_eq!(places.get("7"), None);
    }

    #[test]
    fn channels_are_learnt_renamed_and_forgotten_by_what_happens() {
        let mut places = Places::default();
        let thread = |name: &str| json!({"id": "6", "type": 11, "name": name, "parent_id": "5"});
        places.learn(&Event::ThreadCreate(Box::new(event(thread("one")))));
        places.learn(&Event::ThreadUpdate(Box::new(event(thread("two")))));
        assert_eq!(places.get("6").unwrap().name.as_deref(), Some("two"));
        assert_eq!(places.order.len(), 1);
        let gone = json!({"id": "6", "guild_id": "1", "parent_id": "5", "type": 11});
        places.learn(&Event::ThreadDelete(event(gone)));
        assert_eq!((places.get("6"), places.order.len()), (None, 0));
        let sync = json!({"guild_id": "1", "threads": [thread("three")], "members": [],
            "channel_ids": []});
        places.learn(&Event::ThreadListSync(event(sync)));
        assert_eq!(places.get("6").unwrap().parent.as_deref(), Some("5"));
        let text = |name: &str| json!({"id": "5", "type": 0, "name": name});
        places.learn(&Event::ChannelCreate(Box::new(event(text("a")))));
        places.learn(&Event::ChannelUpdate(Box::new(event(text("b")))));
        assert_eq!(places.get("5").unwrap().name.as_deref(), Some("b"));
        places.learn(&Event::ChannelDelete(Box::new(event(text("b")))));
        assert_eq!(places.get("5"), None);
    }

    #[test]
    fn the_channel_that_was_learnt_first_makes_room() {
        let mut places = Places::default();
        for n in 0..=MOST {
            places.put(&n.to_string(), Place::default());
        }
        assert_eq!((places.by_id.len(), places.order.len()), (MOST, MOST));
        assert!(places.get("0").is_none() && places.get("1").is_some());
    }
}

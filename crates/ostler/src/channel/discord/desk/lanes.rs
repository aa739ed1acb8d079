//! What waits for what: something that is said at a place waits for what was said
//! there before, and for nothing else. Knows up to where everything was dealt with.
//! Pure.

use std::collections::{BTreeMap, VecDeque};

use crate::channel::discord::shard::Position;

/// How much may be under way at a time.
const MOST: usize = 1000;

/// Everything that was heard and is not dealt with.
#[derive(Debug)]
pub(super) struct Lanes<T> {
    n_heard: u64,
    open: BTreeMap<u64, Open>,
    /// Where the connection stood at the last thing that was heard.
    newest: Option<Position>,
    lanes: BTreeMap<u64, Lane<T>>,
    /// How many look for what was said before all that waits.
    n_holding: usize,
}

/// Something that is not dealt with.
#[derive(Debug)]
struct Open {
    /// Where the connection stood before it.
    before: Option<Position>,
    /// How many parts of it are left.
    n_left: usize,
}

/// What was said at one place, in its order.
#[derive(Debug)]
struct Lane<T> {
    /// What is being dealt with.
    now: Option<Spot>,
    waiting: VecDeque<Waiting<T>>,
}

/// Where something was said, and what the chat calls it. A thread that begins with a
/// message has the message's name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Spot {
    pub(super) channel: String,
    pub(super) message: String,
}

impl Spot {
    /// Returns what is less for what was said earlier: the ids of a chat are numbers that
    /// grow.
    fn age(&self) -> (usize, &str) {
        (self.message.len(), &self.message)
    }
}

#[derive(Debug)]
struct Waiting<T> {
    number: u64,
    spot: Spot,
    what: T,
}

/// Something whose turn it is.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Due<T> {
    pub(super) number: u64,
    pub(super) lane: u64,
    pub(super) what: T,
}

impl<T> Default for Lanes<T> {
    fn default() -> Self {
        Self {
            n_heard: 0,
            open: BTreeMap::new(),
            newest: None,
            lanes: BTreeMap::new(),
            n_holding: 0,
        }
    }
}

impl<T> Lanes<T> {
    pub(super) fn is_full(&self) -> bool {
        self.open.len() >= MOST
    }

    /// Returns up to where everything was dealt with.
    pub(super) fn position(&self) -> Option<&Position> {
        match self.open.first_key_value() {
            Some((_, open)) => open.before.as_ref(),
            None => self.newest.as_ref(),
        }
    }

    /// Opens something that was heard, at a place of the connection if that is known;
    /// returns its number.
    pub(super) fn open(&mut self, at: Option<Position>) -> u64 {
        self.n_heard += 1;
        self.open.insert(self.n_heard, Open { before: self.newest.clone(), n_left: 1 });
        if at.is_some() {
            self.newest = at;
        }
        self.n_heard
    }

    /// Closes something, or the last part of it.
    pub(super) fn close(&mut self, number: u64) {
        if let Some(open) = self.open.get_mut(&number) {
            open.n_left = open.n_left.saturating_sub(1);
            if open.n_left == 0 {
                self.open.remove(&number);
            }
        }
    }

    /// Lets something wait for its turn.
    pub(super) fn put(&mut self, number: u64, spot: Spot, what: T) {
        self.lane_of(&spot.channel).waiting.push_back(Waiting { number, spot, what });
    }

    /// Holds everything back, until what was said before it is known.
    pub(super) fn hold(&mut self) {
        self.n_holding += 1;
    }

    /// Goes on after a hold, with parts of something: each comes before what was said
    /// after it, and after what was heard of that was said before it.
    pub(super) fn release(&mut self, number: u64, found: Vec<(Spot, T)>) {
        self.n_holding = self.n_holding.saturating_sub(1);
        for (spot, what) in found {
            if let Some(open) = self.open.get_mut(&number) {
                open.n_left += 1;
            }
            let waiting = &mut self.lane_of(&spot.channel).waiting;
            let later = waiting.iter().position(|other| spot.age() < other.spot.age());
            waiting.insert(later.unwrap_or(waiting.len()), Waiting { number, spot, what });
        }
        self.close(number);
    }

    /// Returns what can be dealt with now. Each has to be ended.
    pub(super) fn due(&mut self) -> Vec<Due<T>> {
        if self.n_holding > 0 {
            return Vec::new();
        }
        let free = self.lanes.iter_mut().filter(|(_, lane)| lane.now.is_none());
        let due = free.filter_map(|(id, lane)| {
            let Waiting { number, spot, what } = lane.waiting.pop_front()?;
            lane.now = Some(spot);
            Some(Due { number, lane: *id, what })
        });
        due.collect()
    }

    /// Notes that something was dealt with, and its lane is free.
    pub(super) fn ended(&mut self, number: u64, lane: u64) {
        self.close(number);
        if let Some(one) = self.lanes.get_mut(&lane) {
            one.now = None;
            if one.waiting.is_empty() {
                self.lanes.remove(&lane);
            }
        }
    }

    /// Returns the lane in which something waits for a place: where something of that
    /// place is, or the message that the place begins with.
    fn lane_of(&mut self, channel: &str) -> &mut Lane<T> {
        let is_it = |spot: &Spot| spot.channel == channel || spot.message == channel;
        let found = self.lanes.iter().find(|(_, lane)| {
            let waiting = lane.waiting.iter().map(|waiting| &waiting.spot);
            lane.now.iter().chain(waiting).any(is_it)
        });
        let id = found.map(|(id, _)| *id);
        let id = id.unwrap_or_else(|| self.lanes.keys().last().map_or(0, |last| last + 1));
        self.lanes.entry(id).or_insert_with(|| Lane { now: None, waiting: VecDeque::new() })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn at(sequence: u64) -> Option<Position> {
        Some(Position { session: "s".into(), sequence, url: "u".into(), newest: None })
    }

    fn spot(channel: &str, message: &str) -> Spot {
        Spot { channel: channel.to_owned(), message: message.to_owned() }
    }

    /// Hears a message at the next place of the connection.
    fn hear(lanes: &mut Lanes<&'static str>, channel: &str, message: &'static str) {
        let number = lanes.open(at(lanes.n_heard + 1));
        lanes.put(number, spot(channel, message), message);
    }

    fn names(due: &[Due<&'static str>]) -> Vec<&'static str> {
        due.iter().map(|due| due.what).collect()
    }

    fn sequence(lanes: &Lanes<&'static str>) -> Option<u64> {
        lanes.position().map(|position| position.sequence)
    }

    #[test]
    fn a_place_waits_for_itself_and_for_no_other() {
        let mut lanes = Lanes::default();
        for (channel, message) in [("1", "a"), ("1", "b"), ("2", "c"), ("1", "d")] {
            hear(&mut lanes, channel, message);
        }
        let first = lanes.due();
        assert_eq!(names(&first), ["a", "c"]);
        assert_eq!(lanes.due(), []);
        lanes.ended(first[1].number, first[1].lane);
        assert_eq!(lanes.due(), []);
        lanes.ended(first[0].number, first[0].lane);
        let second = lanes.due();
        assert_eq!(names(&second), ["b"]);
        lanes.ended(second[0].number, second[0].lane);
        let third = lanes.due();
        assert_eq!(names(&third), ["d"]);
        lanes.ended(third[0].number, third[0].lane);
        assert!(lanes.lanes.is_empty() && lanes.open.is_empty());
    }

    #[test]
    fn what_is_said_in_a_thread_waits_for_the_message_that_it_begins_with() {
        let mut lanes = Lanes::default();
        hear(&mut lanes, "1", "7");
        hear(&mut lanes, "7", "8");
        let first = lanes.due();
        assert_eq!(names(&first), ["7"]);
        lanes.ended(first[0].number, first[0].lane);
        let second = lanes.due();
        // Nor does it overtake what is said there already.
        hear(&mut lanes, "7", "9");
        assert_eq!((names(&second), lanes.due()), (vec!["8"], vec![]));
    }

    #[test]
    fn the_place_of_the_connection_is_that_before_the_first_that_is_not_dealt_with() {
        let mut lanes = Lanes::default();
        assert_eq!(sequence(&lanes), None);
        for (channel, message) in [("1", "a"), ("2", "b"), ("3", "c")] {
            hear(&mut lanes, channel, message);
        }
        assert_eq!(sequence(&lanes), None);
        let due = lanes.due();
        lanes.ended(due[1].number, due[1].lane);
        assert_eq!(sequence(&lanes), None);
        lanes.ended(due[0].number, due[0].lane);
        assert_eq!(sequence(&lanes), Some(2));
        let without = lanes.open(None);
        lanes.ended(due[2].number, due[2].lane);
        assert_eq!(sequence(&lanes), Some(3));
        lanes.close(without);
        assert_eq!(sequence(&lanes), Some(3));
    }

    #[test]
    fn what_was_missed_is_part_of_what_found_it_and_has_its_turn_where_it_belongs() {
        let mut lanes = Lanes::default();
        hear(&mut lanes, "1", "8");
        hear(&mut lanes, "1", "9");
        let connected = lanes.open(at(3));
        lanes.hold();
        hear(&mut lanes, "1", "12");
        assert_eq!(lanes.due(), []);
        lanes.release(connected, vec![(spot("1", "10"), "10"), (spot("1", "11"), "11")]);
        let mut heard = Vec::new();
        for expected in [None, Some(1), Some(2), Some(2), Some(3)] {
            assert_eq!(sequence(&lanes), expected);
            let due = lanes.due();
            heard.extend(names(&due));
            lanes.ended(due[0].number, due[0].lane);
        }
        assert_eq!((heard, sequence(&lanes)), (vec!["8", "9", "10", "11", "12"], Some(4)));
    }

    #[test]
    fn there_is_an_end_to_what_is_under_way() {
        let mut lanes = Lanes::<()>::default();
        let numbers: Vec<u64> = (0..MOST).map(|_| lanes.open(None)).collect();
        assert!(lanes.is_full());
        lanes.close(numbers[MOST / 2]);
        assert!(!lanes.is_full());
    }

    proptest! {
        #[test]
        fn a_place_has_everything_in_the_order_in_which_it_was_said(
            said in prop::collection::vec((0..3_u64, 0..3_u8), 0..60), cut in 0..60_usize,
        ) {
            let mut lanes = Lanes::default();
            let mut found = Vec::new();
            let mut connected = None;
            for (id, (place, how)) in said.iter().enumerate() {
                if id == cut {
                    connected = Some(lanes.open(None));
                    lanes.hold();
                }
                let spot = spot(&(1_000_000 + place).to_string(), &(id + 1).to_string());
                // Some of what was said is missed, and some of it is found though it was not.
                if *how > 0 || id < cut / 2 {
                    let number = lanes.open(None);
                    lanes.put(number, spot.clone(), id);
                }
                if *how < 2 && id >= cut / 2 {
                    found.push((spot, id));
                }
            }
            let n_found = found.len();
            let connected = connected.unwrap_or_else(|| {
                lanes.hold();
                lanes.open(None)
            });
            let n_heard = lanes.open.len() - 1;
            lanes.release(connected, found);
            let mut told: BTreeMap<u64, Vec<usize>> = BTreeMap::new();
            loop {
                let due = lanes.due();
                if due.is_empty() {
                    break;
                }
                for Due { number, lane, what } in due {
                    told.entry(said[what].0).or_default().push(what);
                    lanes.ended(number, lane);
                }
            }
            prop_assert!(told.values().all(|told| told.is_sorted()), "{told:?}");
            prop_assert_eq!(told.values().map(Vec::len).sum::<usize>(), n_heard + n_found);
            prop_assert!(lanes.open.is_empty() && lanes.lanes.is_empty());
        }
    }
}

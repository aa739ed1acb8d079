//! In which order places are looked at: all of them before those again that could not
//! be looked at. Pure.

use std::{
    collections::{HashSet, VecDeque},
    mem,
    time::Duration,
};

use crate::channel::discord::api::Seat;

/// At how many places it is looked.
pub(super) const PLACES: usize = 100;
/// The first wait before places are looked at again, if there are no others left. It
/// doubles, up to the longest.
const FIRST: Duration = Duration::from_millis(500);
const LONGEST: Duration = Duration::from_secs(5);

/// A place that was not looked at, or not to the end.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Visit {
    First(String),
    Next { place: String, seat: Seat, after: u64, n_pages: usize },
}

/// What comes next.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Turn {
    Visit(Visit),
    Pause(Duration),
}

/// The places that are left.
#[derive(Debug)]
pub(super) struct Tour {
    visits: VecDeque<Visit>,
    /// Those that could not be made, for when the others were.
    again: VecDeque<Visit>,
    known: HashSet<String>,
    /// The places of which it was said that they are put off.
    put_off: HashSet<String>,
    pause: Duration,
}

impl Visit {
    pub(super) fn place(&self) -> &str {
        match self {
            Self::First(place) | Self::Next { place, .. } => place,
        }
    }
}

impl Tour {
    pub(super) fn new() -> Self {
        Self {
            visits: VecDeque::new(),
            again: VecDeque::new(),
            known: HashSet::new(),
            put_off: HashSet::new(),
            pause: FIRST,
        }
    }

    pub(super) fn n_places(&self) -> usize {
        self.known.len()
    }

    /// Returns the places that are left.
    pub(super) fn left(&self) -> Vec<&str> {
        self.visits.iter().chain(&self.again).map(Visit::place).collect()
    }

    /// Adds a place, unless it is known; returns whether there was room for it.
    pub(super) fn add(&mut self, place: String) -> bool {
        if self.known.contains(&place) {
            return true;
        }
        if self.known.len() >= PLACES {
            return false;
        }
        self.known.insert(place.clone());
        self.visits.push_back(Visit::First(place));
        true
    }

    /// Lets a visit go on after the others that are left.
    pub(super) fn go_on(&mut self, visit: Visit) {
        self.visits.push_back(visit);
    }

    /// Lets a visit be tried again when all others were made or tried; returns whether
    /// its place is put off for the first time.
    pub(super) fn put_off(&mut self, visit: Visit) -> bool {
        let is_first = self.put_off.insert(visit.place().to_owned());
        self.again.push_back(visit);
        is_first
    }

    /// Returns what comes next; nothing if no place is left.
    pub(super) fn next(&mut self) -> Option<Turn> {
        if let Some(visit) = self.visits.pop_front() {
            return Some(Turn::Visit(visit));
        }
        if self.again.is_empty() {
            return None;
        }
        self.visits = mem::take(&mut self.again);
        let pause = self.pause;
        self.pause = LONGEST.min(pause * 2);
        Some(Turn::Pause(pause))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn first(place: &str) -> Turn {
        Turn::Visit(Visit::First(place.to_owned()))
    }

    #[test]
    fn what_could_not_be_looked_at_comes_again_after_all_others() {
        let mut tour = Tour::new();
        for place in ["1", "2", "1", "3"] {
            assert!(tour.add(place.to_owned()));
        }
        let Some(Turn::Visit(one)) = tour.next() else { panic!() };
        assert!(tour.put_off(one));
        assert_eq!(tour.next(), Some(first("2")));
        assert_eq!(tour.left(), ["3", "1"]);
        // Where a thread began is added late, and is no reason to wait.
        assert!(tour.add("4".to_owned()));
        assert_eq!([tour.next(), tour.next()], ["3", "4"].map(|place| Some(first(place))));
        let mut pauses = Vec::new();
        for _ in 0..6 {
            let Some(Turn::Pause(pause)) = tour.next() else { panic!() };
            pauses.push(pause.as_millis());
            let Some(Turn::Visit(one)) = tour.next() else { panic!() };
            assert_eq!(one.place(), "1");
            assert!(!tour.put_off(one));
        }
        assert_eq!(pauses, [500, 1000, 2000, 4000, 5000, 5000]);
    }

    #[test]
    fn a_tour_ends_and_has_no_more_than_so_many_places() {
        let mut tour = Tour::new();
        let added = (0..=PLACES).filter(|n| tour.add(n.to_string())).count();
        assert_eq!((added, tour.n_places(), tour.left().len()), (PLACES, PLACES, PLACES));
        // It is known, however many there are.
        assert!(tour.add("0".to_owned()));
        for _ in 0..PLACES {
            assert!(matches!(tour.next(), Some(Turn::Visit(_))));
        }
        assert_eq!(tour.next(), None);
    }
}

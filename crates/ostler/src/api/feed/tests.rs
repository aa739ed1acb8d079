//! Nothing is lost or doubled where memory and store meet, whatever happens in
//! which order.

use proptest::prelude::*;

use super::{
    ring::{Limits, Ring},
    *,
};
use crate::{
    id::CommandId,
    store::events::{Belonging, CommandRef, NewEvent, StoredEvent},
};

/// What can happen, to whom.
#[derive(Clone, Debug)]
enum Step {
    /// An event of this sort is stored.
    Append(usize),
    /// The task reads this many.
    Read(usize),
    /// Retention removes the oldest, all but this many.
    Remove(usize),
    /// A reader looks at the memory.
    Look(usize),
    /// A reader who has to is given a page of this many.
    Page(usize, usize),
    /// A reader loses his connection, and with it this many of the last events, and
    /// comes again.
    Lose(usize, usize),
    /// A reader is told where he stands, loses his connection and comes again.
    Heartbeat(usize),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        8 => (0..SORTS).prop_map(Step::Append),
        4 => (1..6_usize).prop_map(Step::Read),
        1 => (0..20_usize).prop_map(Step::Remove),
        6 => (0..READERS).prop_map(Step::Look),
        6 => (0..READERS, 1..5_usize).prop_map(|(reader, limit)| Step::Page(reader, limit)),
        1 => (0..READERS, 0..4_usize).prop_map(|(reader, lost)| Step::Lose(reader, lost)),
        1 => (0..READERS).prop_map(Step::Heartbeat),
    ]
}

/// Sorts of events: of nobody, of another project, of the project, of its stream.
const SORTS: usize = 4;
const READERS: usize = 4;

struct World {
    events: Vec<StoredEvent>,
    removed: i64,
    ring: Ring,
    readers: Vec<Reader>,
}

struct Reader {
    cursor: Cursor,
    /// Where he stood at the last heartbeat.
    told: i64,
    /// What the memory had reached when he found that he has to ask the store.
    asking: Option<i64>,
    received: Vec<i64>,
    /// How many he had before the last connection.
    safe: usize,
    missed: i64,
}

impl World {
    fn new(projects: [ProjectId; 2]) -> Self {
        let limits = Limits { events: 5, bytes: 12 };
        let of_project = Selection::Project(projects[0]);
        let of_stream = Selection::Stream(projects[0], "s".into());
        let readers = [of_project.clone(), of_stream.clone(), of_project, of_stream];
        let reader = |selection| Reader {
            cursor: Cursor { selection, position: 0 },
            told: 0,
            asking: None,
            received: Vec::new(),
            safe: 0,
            missed: 0,
        };
        let readers = readers.into_iter().map(reader).collect();
        Self { events: Vec::new(), removed: 0, ring: Ring::with_limits(0, limits), readers }
    }

    fn append(&mut self, sort: usize, projects: [ProjectId; 2]) {
        let command = CommandRef { id: CommandId::new(), stream: "s".to_owned() };
        let belongs = match sort {
            0 => None,
            1 => Some(Belonging { project: projects[1], command: Some(command) }),
            2 => Some(Belonging { project: projects[0], command: None }),
            _ => Some(Belonging { project: projects[0], command: Some(command) }),
        };
        let event = NewEvent {
            conversation: None,
            belongs,
            turn: None,
            seq: 0,
            at: Millis(0),
            kind: "output".to_owned(),
            body: "{}".to_owned(),
        };
        let number = self.events.len() as i64 + 1;
        self.events.push(StoredEvent { number, event });
    }

    fn newest(&self) -> i64 {
        self.events.len() as i64
    }

    fn is_of(stored: &StoredEvent, selection: &Selection) -> bool {
        let Some(belongs) = &stored.event.belongs else { return false };
        match selection {
            Selection::Everything => true,
            Selection::Project(project) => belongs.project == *project,
            Selection::Stream(project, _) => {
                belongs.project == *project && belongs.command.is_some()
            }
        }
    }

    fn stored(&self, after: i64) -> impl Iterator<Item = &StoredEvent> {
        let after = after.max(self.removed);
        self.events.iter().filter(move |stored| stored.number > after)
    }

    fn read(&mut self, limit: usize) {
        let page: Vec<_> = self.stored(self.ring.newest()).take(limit).cloned().collect();
        let frame = |stored: &StoredEvent| Bytes::from(stored.number.to_string());
        let entries = page.iter().filter_map(|stored| Entry::new(stored, frame(stored)));
        let last = page.last().map_or(0, |stored| stored.number);
        self.ring.add(last, self.removed, entries);
        let (n_events, n_bytes) = self.ring.weight();
        assert!(n_events <= 5 && n_bytes <= 12);
    }

    /// Returns whether there was something.
    fn look(&mut self, index: usize) -> bool {
        let reader = &mut self.readers[index];
        if reader.asking.is_some() {
            return true;
        }
        match reader.cursor.look(&self.ring) {
            Look::Frames(frames) => {
                let numbers = frames.iter().map(|frame| std::str::from_utf8(frame).unwrap());
                reader.received.extend(numbers.map(|number| number.parse::<i64>().unwrap()));
                true
            }
            Look::Nothing => false,
            Look::Older => {
                reader.asking = Some(self.ring.newest());
                true
            }
        }
    }

    fn page(&mut self, index: usize, limit: usize) {
        let reader = &self.readers[index];
        let Some(newest) = reader.asking else { return };
        let Cursor { selection, position } = &reader.cursor;
        let all = self.stored(*position).filter(|stored| Self::is_of(stored, selection));
        let events: Vec<_> = all.take(limit).cloned().collect();
        let is_all = events.len() < limit;
        let mut portion = Portion { events, is_all, removed: self.removed };
        let reader = &mut self.readers[index];
        reader.asking = None;
        if let Some(missed) = reader.cursor.turn(&mut portion, newest) {
            reader.missed = missed;
        }
        reader.received.extend(portion.events.iter().map(|stored| stored.number));
    }

    fn lose(&mut self, index: usize, lost: usize) {
        let reader = &mut self.readers[index];
        let kept = reader.received.len().saturating_sub(lost).max(reader.safe);
        reader.received.truncate(kept);
        reader.safe = kept;
        let last = reader.received.last().copied().unwrap_or(0);
        // Heartbeats and what was missed have ids, too.
        reader.cursor.position = last.max(reader.told).max(reader.missed);
        reader.asking = None;
    }

    fn heartbeat(&mut self, index: usize) {
        let reader = &mut self.readers[index];
        reader.safe = reader.received.len();
        reader.told = reader.cursor.position;
        reader.asking = None;
    }

    fn check(&self) {
        for reader in &self.readers {
            let Reader { cursor, received, missed, .. } = reader;
            let mut got = received.iter().copied().peekable();
            let all = self.events.iter().filter(|stored| Self::is_of(stored, &cursor.selection));
            for number in all.map(|stored| stored.number) {
                let is_there = got.next_if_eq(&number).is_some();
                assert!(is_there || number <= *missed, "{number} is lost: {received:?}, {missed}");
            }
            assert_eq!(got.next(), None, "more than there is: {received:?}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, ..ProptestConfig::default() })]

    #[test]
    fn nothing_is_lost_or_doubled_between_memory_and_store(
        steps in prop::collection::vec(step(), 0..150),
    ) {
        let projects = [ProjectId::new(), ProjectId::new()];
        let mut world = World::new(projects);
        for step in steps {
            match step {
                Step::Append(sort) => world.append(sort, projects),
                Step::Read(limit) => world.read(limit),
                Step::Remove(kept) => {
                    let newest = world.newest() - i64::try_from(kept).unwrap();
                    world.removed = world.removed.max(newest);
                }
                Step::Look(reader) => drop(world.look(reader)),
                Step::Page(reader, limit) => world.page(reader, limit),
                Step::Lose(reader, lost) => world.lose(reader, lost),
                Step::Heartbeat(reader) => world.heartbeat(reader),
            }
        }
        world.read(usize::MAX);
        for reader in 0..READERS {
            let mut turns = 0;
            while world.look(reader) {
                world.page(reader, 3);
                turns += 1;
                assert!(turns < 1000, "a reader does not come to an end");
            }
        }
        world.check();
    }
}

#[test]
fn what_is_too_much_for_the_memory_is_left_to_the_store() {
    let mut ring = Ring::with_limits(0, Limits { events: 10, bytes: 100 });
    let project = ProjectId::new();
    let entry = |number, n_bytes| Entry {
        number,
        project,
        stream: None,
        frame: vec![b'x'; n_bytes].into(),
    };
    ring.add(2, 0, [entry(1, 10), entry(2, 101)]);
    assert_eq!(ring.weight(), (0, 0));
    let mut cursor = Cursor { selection: Selection::Project(project), position: 0 };
    assert!(matches!(cursor.look(&ring), Look::Older));
    ring.add(3, 0, [entry(3, 10)]);
    cursor.position = 2;
    assert!(matches!(cursor.look(&ring), Look::Frames(frames) if frames.len() == 1));
    assert_eq!(cursor.position, 3);
}

#[test]
fn a_reader_is_given_no_more_than_a_chunk_at_once() {
    let mut ring = Ring::new(0);
    let project = ProjectId::new();
    let long = Bytes::from(vec![b'x'; CHUNK / 3]);
    let entry = |number| Entry { number, project, stream: None, frame: long.clone() };
    ring.add(10, 0, (1..=10).map(entry));
    let mut cursor = Cursor { selection: Selection::Project(project), position: 0 };
    let Look::Frames(frames) = cursor.look(&ring) else { panic!("there is something") };
    assert_eq!((frames.len(), cursor.position), (3, 3));
}

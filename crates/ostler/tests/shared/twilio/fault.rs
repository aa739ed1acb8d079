//! What goes wrong on purpose, request by request.

use std::collections::VecDeque;

/// What happens to one request.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Fault {
    /// It is refused with 429 and not done; with a number of seconds to wait, or none.
    Limit(Option<u32>),
    /// It is refused with this status and not done.
    Fail(u16),
    /// It is refused with this status and code, and not done.
    Refuse(u16, u32),
    /// It is done, and answered with this status.
    DoneButFailed(u16),
    /// It is done, and the connection ends without an answer.
    DoneButCut,
    /// It is not done, and the connection ends without an answer.
    Cut,
    /// It is done and never answered.
    Hang,
    /// It is done, and answered when the test lets it be.
    Held,
    /// It is done and answered: those after it are meant.
    Pass,
}

impl Fault {
    /// Says whether the request is done all the same.
    pub(super) fn is_done(self) -> bool {
        match self {
            Self::DoneButFailed(_) | Self::DoneButCut | Self::Hang | Self::Held | Self::Pass => {
                true
            }
            Self::Limit(_) | Self::Fail(_) | Self::Refuse(..) | Self::Cut => false,
        }
    }
}

/// The faults that are planned, in their order.
#[derive(Debug, Default)]
pub(super) struct Faults {
    planned: VecDeque<(String, Fault)>,
}

impl Faults {
    /// Plans a fault for the next requests whose `METHOD /path` contains a text.
    pub(super) fn plan(&mut self, requests: usize, containing: &str, fault: Fault) {
        let one = (containing.to_owned(), fault);
        self.planned.extend(std::iter::repeat_n(one, requests));
    }

    /// Takes what is planned for a request.
    pub(super) fn take(&mut self, request: &str) -> Option<Fault> {
        let found = self.planned.iter().position(|(part, _)| request.contains(part.as_str()))?;
        self.planned.remove(found).map(|(_, fault)| fault)
    }

    pub(super) fn len(&self) -> usize {
        self.planned.len()
    }
}

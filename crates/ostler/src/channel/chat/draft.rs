//! What is shown of a turn while it runs: its text as far as it came, what its tools
//! do, and what it asks. Made from the events of the turn, one after the other. Pure.

mod asked;
mod reply;
mod status;
mod words;

use serde_json::Value;

use super::{
    Limits, Post, Slot,
    split::{split, split_growing},
};
pub(crate) use reply::{Long, reply};
use {asked::Asked, status::Status};

use crate::media::token;

/// How many pages of a text are shown before the turn is over.
const PAGES: usize = 5;
/// How many numbers a text has for its pages.
const NUMBERS: u32 = 16;
/// What a text ends with of which not all is shown.
const MORE: &str = "\n…";

/// How much is shown beside the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Detail {
    /// Nothing.
    Quiet,
    /// What runs now, and what ran last.
    Normal,
    /// All tools, also of sub-agents, and thoughts.
    Verbose,
}

/// The messages of a turn as they should stand now, in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct View {
    pub(crate) posts: Vec<(Slot, Post)>,
    /// Whether they stay like this.
    pub(crate) is_final: bool,
}

/// What one sees of a draft without making its messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Glance {
    /// Whether there is something to show.
    pub(crate) has_begun: bool,
    /// Whether something was asked, and whether an answer is waited for.
    pub(crate) has_asked: bool,
    pub(crate) is_asking: bool,
    /// How often something changed that is shown, and how often something that is asked.
    pub(crate) changes: u64,
    pub(crate) asked: u64,
}

/// What is known of a turn.
#[derive(Clone, Debug)]
pub(crate) struct Draft {
    limits: Limits,
    detail: Detail,
    /// What was asked, each with the text above it.
    above: Vec<(Text, Asked)>,
    /// The text below all that.
    last: Text,
    status: Status,
    is_over: bool,
    changes: u64,
    asked: u64,
}

/// A text that stands together.
#[derive(Clone, Debug, Default)]
struct Text {
    blocks: Vec<(String, String)>,
    /// Whether there was more of it than can be shown.
    is_full: bool,
}

impl Draft {
    /// Makes one of which nothing is known yet.
    pub(crate) fn new(limits: &Limits, detail: Detail) -> Self {
        Self {
            limits: limits.clone(),
            detail,
            above: Vec::new(),
            last: Text::default(),
            status: Status::default(),
            is_over: false,
            changes: 0,
            asked: 0,
        }
    }

    /// Takes an event of the turn. What it does not know it passes over.
    pub(crate) fn event(&mut self, kind: &str, body: &Value) {
        let is_nested = body.get("parent").is_some_and(|parent| !parent.is_null());
        let is_seen = !is_nested || self.detail == Detail::Verbose;
        let mut is_change = true;
        match kind {
            "status" => self.status(body),
            _ if self.is_over => {}
            "started" if !is_nested => {
                self.texts().for_each(|text| *text = Text::default());
                self.status.begin_again();
            }
            "output" if !is_nested => {
                let most = self.limits.text.saturating_mul(PAGES + 2);
                is_change = self.last.add(text(body, "block"), text(body, "text"), most);
                is_change |= self.status.said();
            }
            "thinking" if !is_nested => {
                self.status.thought(text(body, "text"));
                is_change = self.detail == Detail::Verbose;
            }
            "tool_use" if is_seen => self.status.began(body, self.limits.markup),
            "tool_result" if is_seen => self.status.ended(body),
            "permission" => {
                let known = |id: &str| self.above.iter().any(|(_, asked)| asked.id == id);
                let asked = Asked::read(body, &self.limits, self.first_number(body));
                let asked = asked.filter(|asked| !known(&asked.id));
                if let Some(asked) = asked {
                    self.above.push((std::mem::take(&mut self.last), asked));
                    self.asked += 1;
                }
            }
            "complete" if !is_nested => self.is_over = true,
            _ => is_change = false,
        }
        self.changes += u64::from(is_change);
    }

    /// Returns what can be told at a glance.
    pub(crate) fn glance(&self) -> Glance {
        let mut asked = self.above.iter().map(|(_, asked)| asked);
        let has_begun =
            !self.above.is_empty() || !self.last.blocks.is_empty() || self.status.has_tools();
        Glance {
            has_begun,
            has_asked: !self.above.is_empty(),
            is_asking: !self.is_over && asked.any(Asked::is_open),
            changes: self.changes,
            asked: self.asked,
        }
    }

    /// Shows what is asked without files, for the chat does not take them; returns
    /// whether there were any.
    pub(crate) fn leave_files_out(&mut self) -> bool {
        let had_files = self.above.iter().any(|(_, asked)| asked.has_file());
        if had_files {
            self.limits.files = 0;
        }
        for (_, asked) in &mut self.above {
            asked.leave_file_out(&self.limits);
        }
        self.changes += u64::from(had_files);
        self.asked += u64::from(had_files);
        had_files
    }

    fn status(&mut self, body: &Value) {
        match text(body, "code") {
            "retry" => self.status.tries_again(body),
            "retracted" if !self.is_over => {
                let block = text(body, "block");
                self.texts().for_each(|text| text.take_back(block));
            }
            "permission_resolved" => {
                let request = text(body, "request");
                let mut asked = self.above.iter_mut().rev().map(|(_, asked)| asked);
                if let Some(asked) = asked.find(|asked| asked.is_open_as(request)) {
                    asked.resolve(body, self.limits.markup);
                    self.asked += 1;
                }
            }
            _ => {}
        }
    }

    /// Returns the number of the first choice of a request. One that brings none was
    /// asked where numbers are not seen, or before they went on from turn to turn.
    fn first_number(&self, body: &Value) -> usize {
        let number = body.get("number").and_then(Value::as_u64);
        let number = number.and_then(|number| usize::try_from(number).ok());
        number.unwrap_or_else(|| 1 + self.choices().len())
    }

    /// Returns what the choices of all requests stand for, in the order of their numbers:
    /// the id of the request, a colon and the choice.
    pub(crate) fn choices(&self) -> Vec<String> {
        let asked = self.above.iter().map(|(_, asked)| asked);
        asked.flat_map(Asked::choices).map(str::to_owned).collect()
    }

    fn texts(&mut self) -> impl Iterator<Item = &mut Text> {
        self.above.iter_mut().map(|(text, _)| text).chain([&mut self.last])
    }

    /// Returns the messages as they should stand now.
    pub(crate) fn view(&self) -> View {
        let mut posts = Vec::new();
        let mut first = 0u32;
        for (text, asked) in &self.above {
            posts.extend(numbered(text.pages(self.is_over, &self.limits), first));
            posts.extend(asked.posts(self.is_over, &self.limits));
            first = first.saturating_add(NUMBERS);
        }
        let mut pages = self.last.pages(self.is_over, &self.limits);
        if !self.is_over {
            self.add_status(&mut pages, !posts.is_empty());
        }
        posts.extend(numbered(pages, first));
        View { posts, is_final: self.is_over }
    }

    /// Returns what the tools of the turn did last, if there were any.
    pub(crate) fn tools(&self) -> Option<String> {
        let lines = self.status.lines(Detail::Verbose, &self.limits);
        (self.status.has_tools() && !lines.is_empty()).then(|| lines.join("\n"))
    }

    /// Puts what goes on below the text, on a page of its own if there is no room.
    fn add_status(&self, pages: &mut Vec<String>, has_more_above: bool) {
        // The turn waits for an answer, and that says it all.
        let is_waiting = self.above.last().is_some_and(|(_, asked)| asked.is_open());
        let has_begun = !pages.is_empty() || has_more_above || self.status.has_tools();
        if !has_begun || (is_waiting && pages.is_empty()) {
            return;
        }
        let lines = self.status.lines(self.detail, &self.limits);
        let lines = lines.join("\n");
        if lines.is_empty() {
            return;
        }
        let length = |text: &str| self.limits.measure.of(text);
        match pages.last_mut() {
            Some(page) if length(page) + 1 + length(&lines) <= self.limits.text => {
                page.push('\n');
                page.push_str(&lines);
            }
            Some(_) | None => pages.push(lines),
        }
    }
}

fn numbered(pages: Vec<String>, first: u32) -> impl Iterator<Item = (Slot, Post)> {
    let slots = (first..).map(Slot::Text);
    slots.zip(pages.into_iter().map(|text| Post { text, ..Post::default() }))
}

impl Text {
    /// Adds to a block; returns whether that changes what is shown. More than is shown
    /// is not kept.
    fn add(&mut self, block: &str, more: &str, most: usize) -> bool {
        let used: usize = self.blocks.iter().map(|(_, text)| text.chars().count() + 2).sum();
        let left = most.saturating_sub(used);
        let (kept, rest) = match more.char_indices().nth(left) {
            Some((at, _)) => more.split_at(at),
            None => (more, ""),
        };
        if self.is_full || kept.is_empty() {
            let was_full = self.is_full;
            self.is_full |= !more.is_empty();
            return self.is_full != was_full;
        }
        self.is_full = !rest.is_empty();
        match self.blocks.iter_mut().find(|(name, _)| name == block) {
            Some((_, text)) => text.push_str(kept),
            None => self.blocks.push((block.to_owned(), kept.to_owned())),
        }
        true
    }

    fn take_back(&mut self, block: &str) {
        self.blocks.retain(|(name, _)| name != block);
        // What was not kept may have been of that block alone.
        self.is_full &= !self.blocks.is_empty();
    }

    fn pages(&self, is_over: bool, limits: &Limits) -> Vec<String> {
        let blocks: Vec<&str> = self.blocks.iter().map(|(_, text)| text.as_str()).collect();
        let text = without_tokens(&blocks.join("\n\n"), is_over);
        let measure = limits.measure;
        let cut = if is_over { split } else { split_growing };
        let pieces = cut(&text, limits.text, measure);
        let has_more = self.is_full || pieces.len() > PAGES;
        let mut pages: Vec<String> =
            pieces.into_iter().take(PAGES).map(|piece| piece.text).collect();
        if let Some(page) = pages.last_mut().filter(|_| has_more) {
            let room = limits.text.saturating_sub(measure.of(MORE));
            let has_room = room >= measure.widest();
            if has_room && !measure.fits(page, room) {
                *page = split(page, room, measure)
                    .into_iter()
                    .next()
                    .map(|piece| piece.text)
                    .unwrap_or_default();
            }
            if has_room {
                page.push_str(MORE);
            }
        }
        pages
    }
}

/// Takes out what names files, of which the end of an answer makes use. Whether the last
/// line of a text that grows does that shows only when it is whole.
fn without_tokens(text: &str, is_over: bool) -> String {
    if !text.contains(token::MARK) {
        return text.to_owned();
    }
    let whole = if is_over { text.len() } else { text.rfind('\n').map_or(0, |at| at + 1) };
    let (whole, last) = text.split_at_checked(whole).unwrap_or((text, ""));
    let mut shown = token::take(whole).text;
    if !last.contains(token::MARK) {
        shown.push_str(last);
    }
    shown
}

/// Returns a field of an event that is a text; one that is not there is empty.
fn text<'a>(event: &'a Value, name: &str) -> &'a str {
    event.get(name).and_then(Value::as_str).unwrap_or_default()
}

#[cfg(test)]
mod tests;

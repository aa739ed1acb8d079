//! The gateway as a program, when something is wrong: with what it is started
//! on, with what it is sent, with the disk, with a reader, or at a bad time.

mod changes;
pub(crate) mod daemon;
pub(crate) mod database;
mod disk;
mod hooks;
mod keys;
mod messages;
mod pairing;
mod prompt_files;
mod queue;
mod reader;
mod scheduled;
mod start;
mod steering;
mod stopping;

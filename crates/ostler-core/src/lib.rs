//! Coding-agent CLIs behind one interface.
#![warn(missing_docs)]

pub mod agent;
pub mod event;
pub mod failure;
pub mod lines;
pub mod memo;
pub mod proc;
pub mod request;
pub mod run_dir;

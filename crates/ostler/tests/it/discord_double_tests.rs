//! The double of Discord, held against what Discord documents.

mod commands;
mod interactions;
mod limits;
mod messages;
mod places;
mod refusals;
mod rig;
mod sessions;
mod trouble;

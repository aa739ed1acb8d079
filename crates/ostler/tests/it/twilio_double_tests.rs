//! The double of Twilio, held against what Twilio documents.

mod asking;
mod groups;
mod hearing;
mod refusals;
mod rig;
mod sending;
mod trouble;

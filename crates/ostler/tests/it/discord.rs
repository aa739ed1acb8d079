//! Discord as its users meet it: a gateway, an agent, and a double of Discord.

mod answers;
mod asked;
mod checkup;
mod commands;
mod crashes;
mod double;
mod files;
mod gateways;
mod guide;
mod media;
mod missed;
pub(crate) mod pages;
mod quiet;
pub(crate) mod rig;
mod slow;
mod standing;
mod strangers;
mod trouble;
mod unasked;
mod words;

//! Discord as its users meet it: a gateway, an agent, and a double of Discord.

mod answers;
mod asked;
mod checkup;
mod commands;
mod connection;
mod crashes;
mod crowded;
mod deferred;
mod files;
mod gateways;
mod gone;
mod guide;
mod kills;
mod media;
mod missed;
mod overlooked;
pub(crate) mod pages;
mod people;
mod quiet;
pub(crate) mod rig;
mod shown;
mod slow;
mod standing;
mod strangers;
mod trouble;
mod unasked;
mod words;

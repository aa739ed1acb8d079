//! WhatsApp and SMS as their users meet them: a gateway, an agent, and a double of
//! Twilio.

mod answers;
mod asked;
mod checkup;
mod crashes;
mod decided;
mod delivery;
mod files;
mod forged;
mod gateways;
mod groups;
mod guide;
mod meant;
mod pages;
mod people;
mod polling;
mod quiet;
mod resent;
pub(crate) mod rig;
mod settings;
mod sizes;
mod sought;
mod strangers;
mod trouble;
mod unasked;
mod window;
mod words;

//! WhatsApp and SMS as their users meet them: a gateway, an agent, and a double of
//! Twilio.

mod answers;
mod asked;
mod checkup;
mod crashes;
mod delivery;
mod files;
mod forged;
mod gateways;
mod groups;
mod guide;
mod meant;
mod pages;
mod polling;
mod quiet;
pub(crate) mod rig;
mod strangers;
mod trouble;
mod window;
mod words;

//! Discord as its users meet it: a gateway, an agent, and a double of Discord.

mod answers;
mod asked;
mod rig;
mod strangers;
mod trouble;
mod words;

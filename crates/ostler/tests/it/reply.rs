//! Messages from chats, from outside: every key of `inbound.reply` and every
//! variable that deployments have, each by what it does. The agent is a script
//! that writes down how it was called.

mod command;
mod environment;
mod keys;
mod rig;
mod session;
mod variables;

//! Tests of the whole program, as its users meet it.
#![expect(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::print_stderr,
    reason = "tests start the program from outside, and fail by panicking"
)]

mod agents;
mod attached;
mod bad_input;
#[path = "../shared/chance.rs"]
#[expect(dead_code, reason = "the crash test asks for more")]
mod chance;
mod chat;
mod checkup;
#[path = "../shared/client.rs"]
mod client;
mod config;
mod conformance;
mod demo;
mod discord;
#[path = "../shared/discord/double.rs"]
#[expect(dead_code, unused_imports, reason = "the double can do more than is asked of it here")]
mod discord_double;
mod discord_double_tests;
mod doctor;
mod faults;
mod gateway;
mod gateway_socket;
mod http;
mod init;
mod own_agent;
mod processes;
mod reply;
mod run;
mod store;
mod support;
mod terminal;
mod twilio;
#[path = "../shared/twilio/double.rs"]
#[expect(dead_code, unused_imports, reason = "the double can do more than is asked of it here")]
mod twilio_double;
mod twilio_double_tests;

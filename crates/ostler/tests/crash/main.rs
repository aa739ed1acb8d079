//! What a power cut may cost: nothing that was acknowledged.
//!
//! Senders keep sending while gateways, and the database under them, are killed
//! at random moments and started again. In the end, what the senders were told,
//! what the store has and what a receiver got are compared: each accepted message
//! has one answer, its own, in order, and each reply left once.
//!
//! `OSTLER_TEST_KILLS` says how often to kill (20 unless told), and
//! `OSTLER_TEST_SEED` repeats the choices of a run, which it prints. The moments
//! at which processes are met still differ: that is what this test is about.
#![expect(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "tests start the program from outside, and fail by panicking"
)]

mod books;
#[path = "../shared/chance.rs"]
#[expect(dead_code, reason = "the other tests ask for more")]
mod chance;
#[path = "../shared/client.rs"]
mod client;
mod experiment;
mod gateway;
mod ledger;
mod place;
mod postgres;
mod process;
mod receiver;
mod sender;
mod stored;
mod variants;

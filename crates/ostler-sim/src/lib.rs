//! What stands in for the outside world in tests and demonstrations: a
//! simulated model that real CLIs talk to, and a scripted agent that plays a
//! CLI.

pub mod model;
pub mod scripted;

//! The `ostler` program.

fn main() {}

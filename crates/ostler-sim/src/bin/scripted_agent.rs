//! The scripted agent without the rest of `ostler`; see
//! [`ostler_sim::scripted`].

use std::process::ExitCode;

fn main() -> ExitCode {
    ostler_sim::scripted::main(std::env::args_os().skip(1))
}

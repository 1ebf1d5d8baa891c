//! The command `clearway-aq`.

use std::process::ExitCode;

fn main() -> ExitCode {
    clearway_aq_linux::main()
}

use std::process::ExitCode;

fn main() -> ExitCode {
    clarion::cli::main()
}

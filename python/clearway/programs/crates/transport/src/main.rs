//! The simulator with this transport, which Clearway's commands start.

fn main() -> std::process::ExitCode {
    clearway::Engine::new().transport::<mine::Config>("mine").main()
}

use std::io::{Read, Write};
use std::net::TcpStream;

use super::*;

/// A server on a port that the kernel chooses.
fn server() -> (Server, SocketAddr) {
    let server = Server::new(&"127.0.0.1:0".parse().unwrap()).unwrap();
    let any = rustix::net::getsockname(&server.listener).unwrap();
    (server, SocketAddr::try_from(any).unwrap())
}

#[test]
fn only_addresses_of_this_machine_are_taken() {
    for right in ["127.0.0.1:9121", "[::1]:1", "unix:/run/a"] {
        assert!(right.parse::<Address>().is_ok(), "{right}");
    }
    for (wrong, why) in [
        ("0.0.0.0:9121", "from elsewhere"),
        ("10.0.0.1:9121", "from elsewhere"),
        ("9121", "no address"),
        ("unix:metrics", "begins with /"),
    ] {
        assert!(wrong.parse::<Address>().unwrap_err().contains(why), "{wrong}");
    }
}

#[test]
fn a_slow_scraper_delays_no_other() {
    let (mut server, at) = server();
    // More than the kernel buffers for a connection.
    let body = "x".repeat(16 << 20);
    let mut mute = TcpStream::connect(at).unwrap();
    let mut deaf = TcpStream::connect(at).unwrap();
    deaf.write_all(b"GET / HTTP/1.1\r\n\r\n").unwrap();
    let mut others: Vec<TcpStream> = (0..20).map(|_| TcpStream::connect(at).unwrap()).collect();
    let readers: Vec<_> = others
        .drain(..)
        .map(|mut other| {
            std::thread::spawn(move || {
                other.write_all(b"GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n").unwrap();
                let mut got = Vec::new();
                other.read_to_end(&mut got).unwrap();
                got.len()
            })
        })
        .collect();
    let mut made = 0;
    while !readers.iter().all(std::thread::JoinHandle::is_finished) {
        server.turn(|| {
            made += 1;
            Ok(body.clone())
        });
    }
    for reader in readers {
        assert!(reader.join().unwrap() > body.len());
    }
    assert!(made <= 21, "made once for all that ask at a time");
    // The two are still served.
    assert_eq!(server.clients.len(), 2);
    mute.write_all(b"PUT / HTTP/1.1\r\n\r\n").unwrap();
    let mut got = [0; 12];
    while server.clients.len() == 2 {
        server.turn(|| Ok(String::new()));
    }
    mute.read_exact(&mut got).unwrap();
    assert_eq!(&got, b"HTTP/1.1 405");
}

#[test]
fn the_oldest_goes_when_there_is_no_room() {
    let (mut server, at) = server();
    let mut clients: Vec<TcpStream> = Vec::new();
    for _ in 0..ROOM + 3 {
        clients.push(TcpStream::connect(at).unwrap());
        server.turn(|| Ok(String::new()));
    }
    assert_eq!(server.clients.len(), ROOM);
    let mut byte = [0];
    assert_eq!(clients[0].read(&mut byte).unwrap(), 0, "closed");
}

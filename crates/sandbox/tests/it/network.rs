//! The network is off, and loopback is one's own.

use std::net::TcpListener;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener};

use rehearsal_sandbox::{Layer, Network};

use crate::support::{Escape, Place, Without};

const BY_NAMESPACE: (Layer, &str) = (Layer::Network, "network-namespace");
const BY_FILTER: (Layer, &str) = (Layer::Syscalls, "seccomp");
/// An address that is nobody's, by RFC 5737.
const OUTSIDE: &str = "192.0.2.1:80";

#[test]
fn nothing_outside_can_be_connected_to() {
    Escape { act: "connect", on: OUTSIDE, held_with: "ENETUNREACH", by: BY_NAMESPACE }
        .is_held_in(Place::new(), Without::NotTried);
}

#[test]
fn no_datagram_goes_out() {
    Escape { act: "send a datagram", on: OUTSIDE, held_with: "ENETUNREACH", by: BY_NAMESPACE }
        .is_held_in(Place::new(), Without::NotTried);
}

#[test]
fn no_name_is_resolved() {
    Escape { act: "resolve", on: "example.com:80", held_with: "unresolved", by: BY_NAMESPACE }
        .is_held_in(Place::new(), Without::NotTried);
}

#[test]
fn a_server_on_the_machines_loopback_cannot_be_reached() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    Escape { act: "connect", on: &address, held_with: "ECONNREFUSED", by: BY_NAMESPACE }
        .is_held_in(Place::new(), Without::Succeeds);
}

#[test]
fn an_abstract_socket_of_the_machine_cannot_be_reached() {
    let name = format!("rehearsal-sandbox-test-{}", std::process::id());
    let _listener = UnixListener::bind_addr(&SocketAddr::from_abstract_name(&name).unwrap()).unwrap();
    Escape { act: "connect to an abstract socket", on: &name, held_with: "ECONNREFUSED", by: BY_NAMESPACE }
        .is_held_in(Place::new(), Without::Succeeds);
}

#[test]
fn an_abstract_socket_of_the_machine_cannot_be_reached_with_the_network_allowed() {
    let name = format!("rehearsal-sandbox-test-allowed-{}", std::process::id());
    let _listener = UnixListener::bind_addr(&SocketAddr::from_abstract_name(&name).unwrap()).unwrap();
    let place = Place::new().with(|policy| policy.network = Network::Allowed);
    let by = (Layer::Privileges, "landlock-scope");
    Escape { act: "connect to an abstract socket", on: &name, held_with: "EPERM", by }
        .is_held_in(place, Without::Succeeds);
}

#[test]
fn a_socket_file_of_the_machine_in_a_temporary_directory_cannot_be_reached() {
    let directory = tempfile::tempdir_in("/tmp").unwrap();
    let path = directory.path().join("socket");
    let _listener = UnixListener::bind(&path).unwrap();
    let by = (Layer::Files, "mount-namespace");
    Escape { act: "connect to a unix socket", on: path.to_str().unwrap(), held_with: "ENOENT", by }
        .is_held_in(Place::new(), Without::Succeeds);
}

#[test]
fn no_raw_socket_can_be_opened() {
    let on = format!("{} {}", libc::AF_INET, libc::SOCK_RAW);
    Escape { act: "socket", on: &on, held_with: "EPERM", by: BY_FILTER }
        .is_held_in(Place::new(), Without::NotTried);
}

#[test]
fn no_packet_socket_can_be_opened() {
    let on = format!("{} {}", libc::AF_PACKET, libc::SOCK_RAW);
    Escape { act: "socket", on: &on, held_with: "EPERM", by: BY_FILTER }
        .is_held_in(Place::new(), Without::NotTried);
}

#[test]
fn no_socket_to_the_hypervisor_can_be_opened() {
    let on = format!("{} {}", libc::AF_VSOCK, libc::SOCK_STREAM);
    Escape { act: "socket", on: &on, held_with: "EPERM", by: BY_FILTER }
        .is_held_in(Place::new(), Without::NotTried);
}

#[test]
fn the_machines_loopback_is_there_when_the_network_is_allowed() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let sandbox = Place::new().with(|policy| policy.network = Network::Allowed).prepare();
    assert_eq!(sandbox.attempt("connect", &address).outcome(), "done");
}

#[test]
fn a_loopback_of_ones_own_works() {
    let sandbox = Place::new().prepare();
    for address in ["127.0.0.1:0", "[::1]:0", "0.0.0.0:0", "localhost:0"] {
        assert_eq!(sandbox.attempt("serve", address).outcome(), "hello", "{address}");
    }
}

#[test]
fn unix_sockets_work() {
    let sandbox = Place::new().prepare();
    for path in ["/tmp/socket", "socket"] {
        assert_eq!(sandbox.attempt("serve on a unix socket", path).outcome(), "hello", "{path}");
    }
}

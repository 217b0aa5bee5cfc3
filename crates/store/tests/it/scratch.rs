//! A server of one's own: what it leaves behind is nothing, however its owner ends.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use sqlx::postgres::PgConnectOptions;

use crate::bench::block_on;
use crate::server;

/// Told to the process that is to be killed.
const HOLDER: &str = "REHEARSAL_TEST_SCRATCH_HOLDER";

fn directory_of(url: &str) -> PathBuf {
    let options: PgConnectOptions = url.parse().unwrap();
    options.get_socket().unwrap().clone()
}

#[test]
fn a_server_that_is_dropped_is_gone() {
    let Some(server) = server::start() else { return };
    let directory = directory_of(&block_on(server.database()).unwrap());
    assert!(directory.is_dir());
    drop(server);
    assert!(!directory.exists());
}

#[test]
fn a_server_whose_owner_is_killed_is_gone() {
    if server::server().is_none() {
        return;
    }
    let mut owner = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "scratch::owner", "--ignored", "--nocapture", "--test-threads=1"])
        .env(HOLDER, "yes")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(owner.stdout.take().unwrap()).lines();
    let told = lines.map_while(Result::ok).find_map(|line| Some(line.split_once("holds ")?.1.to_owned()));
    let directory = PathBuf::from(told.unwrap());
    assert!(directory.is_dir());
    owner.kill().unwrap();
    owner.wait().unwrap();
    let deadline = Instant::now() + Duration::from_secs(60);
    while Path::new(&directory).exists() {
        assert!(Instant::now() < deadline, "{} is still there", directory.display());
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// The other side: holds a server until it is killed.
#[test]
#[ignore = "started by `a_server_whose_owner_is_killed_is_gone`"]
fn owner() {
    if std::env::var_os(HOLDER).is_none() {
        return;
    }
    let server = server::start().unwrap();
    let directory = directory_of(&block_on(server.database()).unwrap());
    writeln!(std::io::stdout(), "holds {}", directory.display()).unwrap();
    // Ends when the parent does, if it does not kill us before.
    std::io::stdin().lines().for_each(drop);
}

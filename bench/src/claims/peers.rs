//! The peers, which are packages of npm: installed into a cache outside of the checkout, pinned, and driven by a small
//! script each that adds jobs and says how long it took to claim and complete them.

use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::cache::{installed, npm};

/// A queue to compare with.
#[derive(Clone, Copy)]
pub(super) struct Peer {
    pub(super) package: &'static str,
    version: &'static str,
    script: &'static str,
}

pub(super) const ALL: [Peer; 2] = [
    Peer { package: "graphile-worker", version: "0.18.0", script: include_str!("graphile-worker.mjs") },
    Peer { package: "pg-boss", version: "12.35.0", script: include_str!("pg-boss.mjs") },
];

/// A peer that can be run.
pub(super) struct Installed {
    script: PathBuf,
}

impl Installed {
    pub(super) fn install(peer: Peer) -> Result<Self, String> {
        let root = installed(&format!("{}-{}", peer.package, peer.version), |root| {
            let package = format!("{}@{}", peer.package, peer.version);
            npm(&mut Command::new("npm"), &[&package, "pg"], root)
        })?;
        let script = root.join("claims.mjs");
        let mut file = std::fs::File::create(&script).map_err(|error| error.to_string())?;
        file.write_all(peer.script.as_bytes()).map_err(|error| error.to_string())?;
        Ok(Self { script })
    }

    /// Claims and completes so many jobs. The script says how many milliseconds that took, without its own start.
    pub(super) fn round(&self, url: &str, jobs: u64, clients: usize) -> Duration {
        let (host, database) = (parameter(url, "host"), url.trim_start_matches("postgres:///"));
        let database = database.split('?').next().unwrap_or_default();
        let output = Command::new("node")
            .arg(&self.script)
            .args([host, database, parameter(url, "user")])
            .args([jobs.to_string(), clients.to_string()])
            .stderr(Stdio::inherit())
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stdout);
        let millis: f64 = said.lines().last().and_then(|line| line.parse().ok()).unwrap_or(f64::NAN);
        Duration::from_secs_f64(millis / 1_000.0)
    }
}

fn parameter<'u>(url: &'u str, name: &str) -> &'u str {
    let values = url.split(['?', '&']).filter_map(|pair| pair.split_once('='));
    values.into_iter().find(|(key, _)| *key == name).map_or("", |(_, value)| value)
}

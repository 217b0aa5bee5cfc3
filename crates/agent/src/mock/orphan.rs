//! A process that the stand-in leaves behind.
//!
//! It is this program again, with orders in its environment: so it can enter a session of its own, which
//! `std` cannot do to a child.

use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};
use std::time::Duration;

use super::actions::SpawnChild;
use super::error::MockError;
use super::misbehave::ignore_sigterm;

/// Set for the process that is left behind: `detach`, `ignore_sigterm` and its life in milliseconds.
pub(super) const ORDERS: &str = "REHEARSAL_MOCK_CHILD";

/// A test that fails to end it must not leave it for ever.
const LIFETIME: Duration = Duration::from_mins(1);

/// Starts it, and returns once it is as it was ordered.
#[expect(clippy::disallowed_methods, reason = "it is to be left behind, which nobody else wants")]
pub(super) fn spawn(order: &SpawnChild) -> Result<u32, MockError> {
    let lifetime = order.lifetime.map_or(LIFETIME, |span| span.0);
    let orders = format!("{} {} {}", order.detach, order.ignore_sigterm, lifetime.as_millis());
    let failed = |source| MockError::Io { what: "start a child".into(), source };
    let program = std::env::current_exe().map_err(failed)?;
    let mut child = Command::new(program)
        .args(std::env::args_os().skip(1))
        .env(ORDERS, orders)
        .stdin(Stdio::null())
        .stdout(if order.hold_output { Stdio::inherit() } else { Stdio::null() })
        // Carries nothing but the word that it is ready.
        .stderr(Stdio::piped())
        .spawn()
        .map_err(failed)?;
    let mut ready = String::new();
    if let Some(stderr) = child.stderr.take() {
        BufReader::new(stderr).read_line(&mut ready).map_err(failed)?;
    }
    if ready.trim() != "ready" {
        return Err(failed(std::io::Error::other(format!("it said `{}`", ready.trim()))));
    }
    Ok(child.id())
}

/// Its whole life.
pub(super) fn live(orders: &str) -> Result<i32, MockError> {
    let wrong = || MockError::Value {
        name: ORDERS,
        value: orders.to_owned(),
        expected: "`true|false true|false MILLISECONDS`",
    };
    let [detach, ignore, lifetime] = orders.split(' ').collect::<Vec<_>>()[..] else {
        return Err(wrong());
    };
    let lifetime: u64 = lifetime.parse().map_err(|_| wrong())?;
    if detach == "true" {
        rustix::process::setsid().map_err(|error| MockError::Io {
            what: "enter a session of its own".into(),
            source: error.into(),
        })?;
    }
    if ignore == "true" {
        ignore_sigterm()?;
    }
    writeln!(std::io::stderr(), "ready").map_err(MockError::output)?;
    std::thread::sleep(Duration::from_millis(lifetime));
    Ok(0)
}

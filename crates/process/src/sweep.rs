//! Ends processes that do not want to end: frozen first, so that none is born while others die.

use std::collections::HashSet;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use camino::Utf8Path;
use rehearsal_core::RunId;
use rustix::process::{Pid, Signal, WaitOptions};

use super::table::{self, Entry, ProcessId};
use super::wire::Escaped;
use super::{RUN_DIR_VARIABLE, RUN_ID_VARIABLE};
use crate::policy::{SWEEP_LIMIT, SWEEP_PAUSE};

/// Rounds of freezing before the kill comes anyway.
const FREEZE_ROUNDS: u32 = 16;

/// Makes this process inherit what a killed shim leaves behind, so that it can be ended. For the worker, once,
/// at its start.
pub fn become_subreaper() -> io::Result<()> {
    rustix::process::set_child_subreaper(Some(rustix::process::getpid()))?;
    IS_SUBREAPER.store(true, Ordering::SeqCst);
    Ok(())
}

/// Whether what loses its parent becomes our child.
static IS_SUBREAPER: AtomicBool = AtomicBool::new(false);

/// The living processes that were started for a run, wherever they are by now: for the recovery after a worker
/// and its shim both died. Processes of other users are not ours to see.
pub fn processes_of_run(run: &RunId) -> Vec<ProcessId> {
    processes_marked(&mark_of(run))
}

/// The living processes that have this in their environment: `NAME=value`.
pub fn processes_marked(assignment: &str) -> Vec<ProcessId> {
    marked(&table::all(), assignment).iter().map(|entry| entry.id).collect()
}

/// Ends all processes that were started for a run, and what they started. Blocks until they are gone.
pub fn kill_processes_of_run(run: &RunId) -> Escaped {
    kill_processes_marked(&mark_of(run))
}

/// Ends all processes that have this in their environment, and what they started. Blocks until they are gone.
pub fn kill_processes_marked(assignment: &str) -> Escaped {
    kill_all(|table| marked(table, assignment))
}

/// Ends all processes that were started for the run of this directory, and what they started.
pub fn kill_processes_in(run_dir: &Utf8Path) -> Escaped {
    let own = format!("{RUN_DIR_VARIABLE}={run_dir}");
    // Later tries of a run have a directory in its own.
    let below = format!("{own}/");
    let me = own_pid();
    kill_all(|table| {
        let is_own = |entry: &&Entry| {
            let started_for = |variable: &str| variable == own || variable.starts_with(&below);
            entry.id.pid != me && !entry.is_dead() && entry.any_variable(started_for)
        };
        table.iter().filter(is_own).cloned().collect()
    })
}

/// Ends what a run left behind when its shim is gone: by the run's mark, by the shim's session, and what came to
/// us as an orphan.
pub(super) fn kill_orphans(run: Option<&RunId>, session: i32) -> Escaped {
    kill_all(|table| {
        let mut found = run.map(|run| marked(table, &mark_of(run))).unwrap_or_default();
        found.extend(table.iter().filter(|entry| entry.session == session && !entry.is_dead()).cloned());
        found.extend(adopted(table));
        found
    })
}

/// Orphans that a killed shim left to us: we start only shims in sessions of their own.
fn adopted(table: &[Entry]) -> Vec<Entry> {
    if !IS_SUBREAPER.load(Ordering::SeqCst) {
        return Vec::new();
    }
    let me = own_pid();
    let our_session = table.iter().find(|entry| entry.id.pid == me).map(|entry| entry.session);
    let is_stranger = |entry: &&Entry| {
        entry.parent == me && Some(entry.session) != our_session && !entry.is_dead() && !entry.is_shim()
    };
    table.iter().filter(is_stranger).cloned().collect()
}

fn mark_of(run: &RunId) -> String {
    format!("{RUN_ID_VARIABLE}={run}")
}

fn marked(table: &[Entry], assignment: &str) -> Vec<Entry> {
    let me = own_pid();
    let is_marked = |entry: &&Entry| entry.id.pid != me && !entry.is_dead() && entry.has_variable(assignment);
    table.iter().filter(is_marked).cloned().collect()
}

fn kill_all(roots: impl Fn(&[Entry]) -> Vec<Entry>) -> Escaped {
    let me = own_pid();
    let find = || {
        let table = table::all();
        let mut found = roots(&table);
        let pids = found.iter().map(|entry| entry.id.pid).collect();
        found.extend(table::descendants(&table, &pids).into_iter().filter(|entry| entry.id.pid != me));
        found.retain(|entry| !entry.is_dead());
        found
    };
    let mut escaped = Escaped::default();
    let mut inherited = Vec::new();
    sweep(
        find,
        |entry| {
            escaped.add(&entry.name);
            inherited.push(entry.id.pid);
        },
        |victims| {
            if victims > 0 {
                std::thread::sleep(SWEEP_PAUSE);
            }
            find().is_empty()
        },
    );
    reap(&inherited);
    escaped
}

/// Those that became our children as orphans stay zombies until someone asks for them.
fn reap(pids: &[i32]) {
    let me = own_pid();
    let ours = pids
        .iter()
        .filter(|pid| Entry::read(**pid).is_some_and(|entry| entry.parent == me && entry.is_dead()));
    for pid in ours.filter_map(|pid| Pid::from_raw(*pid)) {
        let _ = rustix::process::waitpid(Some(pid), WaitOptions::NOHANG);
    }
}

fn own_pid() -> i32 {
    rustix::process::getpid().as_raw_nonzero().get()
}

/// Freezes and kills what `find` finds, again and again, until `settle` says that nothing is left. `settle` is
/// told how many were killed and gives them the time to go. `note` hears of each victim once. Returns how many
/// are still there when the patience ends.
pub(super) fn sweep(
    mut find: impl FnMut() -> Vec<Entry>,
    mut note: impl FnMut(&Entry),
    mut settle: impl FnMut(usize) -> bool,
) -> u32 {
    let deadline = Instant::now() + SWEEP_LIMIT;
    let mut noted = HashSet::new();
    loop {
        let victims = freeze(&mut find);
        for victim in &victims {
            if noted.insert(victim.id) {
                note(victim);
            }
            victim.id.signal(Signal::KILL);
        }
        if settle(victims.len()) {
            return 0;
        }
        if Instant::now() >= deadline {
            return u32::try_from(victims.len()).unwrap_or(u32::MAX);
        }
    }
}

/// Stops processes until no new one appears: whoever is stopped starts no other.
fn freeze(find: &mut impl FnMut() -> Vec<Entry>) -> Vec<Entry> {
    let mut frozen = HashSet::new();
    let mut victims = find();
    for _ in 0..FREEZE_ROUNDS {
        let before = frozen.len();
        for victim in &victims {
            if frozen.insert(victim.id) {
                victim.id.signal(Signal::STOP);
            }
        }
        if frozen.len() == before {
            break;
        }
        victims = find();
    }
    victims
}

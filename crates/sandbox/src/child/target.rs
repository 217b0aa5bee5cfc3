//! The process that becomes the command.

use std::os::fd::{AsFd, BorrowedFd, IntoRawFd, OwnedFd, RawFd};

use rustix::fs::{Mode, OFlags, open};
use rustix::io::{Errno, fcntl_dupfd_cloexec};
use rustix::process::{Signal, chdir, set_parent_process_death_signal, setrlimit, setsid};

use super::wire::{self, Message};
use super::{AtStage, Failure, Job};
use crate::command::Executable;
use crate::error::Stage;
use crate::plan::{LandlockRules, Plan};
use crate::sys;

pub(super) fn become_target(plan: &Plan, job: &mut Job, groups: &[OwnedFd], control: BorrowedFd<'_>) -> ! {
    // Above every number that the command may be given, so that arranging those does not cut it off.
    let above = match fcntl_dupfd_cloexec(control, first_free(job)) {
        Ok(above) => above,
        Err(errno) => fail(control, Failure { stage: Stage::Descriptors, errno }),
    };
    match run(plan, job, groups) {
        Ok(()) => sys::exit(0),
        Err(failure) => fail(above.as_fd(), failure),
    }
}

fn fail(control: BorrowedFd<'_>, failure: Failure) -> ! {
    wire::send(control, Message::Failed(failure));
    sys::exit(127)
}

/// Returns when there was nothing to run.
fn run(plan: &Plan, job: &mut Job, groups: &[OwnedFd]) -> Result<(), Failure> {
    setsid().at(Stage::Start)?;
    if plan.namespaces.is_none() {
        set_parent_process_death_signal(Some(Signal::KILL)).at(Stage::Start)?;
    }
    for group in groups {
        rustix::io::write(group, b"0").at(Stage::Group)?;
    }
    match job {
        Job::Try => restrict(plan),
        Job::Run(executable) => {
            chdir(executable.directory.as_c_str()).at(Stage::Directory)?;
            arrange(&mut executable.descriptors).at(Stage::Descriptors)?;
            restrict(plan)?;
            sys::reset_signals();
            execute(executable)
        }
    }
}

fn restrict(plan: &Plan) -> Result<(), Failure> {
    for (resource, limit) in &plan.limits {
        setrlimit(*resource, *limit).at(Stage::Limits)?;
    }
    if let Some(rules) = &plan.landlock {
        apply_landlock(rules).at(Stage::Landlock)?;
    }
    if let Some(filter) = &plan.filter {
        sys::load_filter(filter).at(Stage::Filter)?;
    }
    Ok(())
}

fn apply_landlock(rules: &LandlockRules) -> Result<(), Errno> {
    let ruleset = sys::landlock_ruleset(&rules.handled)?;
    for (path, access) in &rules.allowed {
        match open(path.as_c_str(), OFlags::PATH | OFlags::CLOEXEC, Mode::empty()) {
            Ok(place) => sys::landlock_allow(ruleset.as_fd(), place.as_fd(), *access)?,
            Err(Errno::NOENT | Errno::ACCESS) => {}
            Err(errno) => return Err(errno),
        }
    }
    sys::landlock_restrict(ruleset.as_fd())
}

/// Puts every descriptor at its number and closes the others at the exec.
///
/// In two rounds: first out of the way of all numbers that are given out, then into place.
fn arrange(descriptors: &mut [(RawFd, OwnedFd)]) -> Result<(), Errno> {
    let free = highest(descriptors).saturating_add(1);
    for (_, descriptor) in &mut *descriptors {
        let away = fcntl_dupfd_cloexec(descriptor.as_fd(), free)?;
        // The old number is not closed: it may by now be in use for another one.
        let _old = std::mem::replace(descriptor, away).into_raw_fd();
    }
    sys::close_range(0, free.saturating_sub(1), false)?;
    for (number, descriptor) in &*descriptors {
        sys::duplicate_to(descriptor.as_fd(), *number)?;
    }
    sys::close_range(free, RawFd::MAX, true)
}

fn first_free(job: &Job) -> RawFd {
    match job {
        Job::Try => 0,
        Job::Run(executable) => highest(&executable.descriptors).saturating_add(1),
    }
}

fn highest(descriptors: &[(RawFd, OwnedFd)]) -> RawFd {
    descriptors.iter().map(|(number, _)| *number).max().unwrap_or(2)
}

/// Tries each path in turn, as a shell would, and returns the error that says most.
fn execute(executable: &Executable) -> Result<(), Failure> {
    let mut failure = Errno::NOENT;
    for candidate in &executable.candidates {
        match sys::execute(candidate, &executable.arguments, &executable.environment) {
            Errno::NOENT | Errno::NOTDIR => {}
            Errno::ACCESS => failure = Errno::ACCESS,
            errno => {
                failure = errno;
                break;
            }
        }
    }
    Err(failure).at(Stage::Execute)
}

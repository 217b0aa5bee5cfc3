//! Preparing a sandbox, and starting commands in it.

use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Arc, OnceLock};

use camino::Utf8Path;
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};
use rustix::process::{Resource, Rlimit, WaitId, WaitIdOptions, getrlimit, waitid};

use crate::bubblewrap;
use crate::cgroup::{Controller, Group, Pool};
use crate::child::{self, Failure, Job, Launch, Message};
use crate::command::Command;
use crate::confined::Confined;
use crate::error::{SandboxError, Stage};
use crate::filter;
use crate::landlock::{self, Allowed};
use crate::layout::{Layout, Places};
use crate::means::Available;
use crate::plan::{LandlockRules, Namespaces, Plan};
use crate::policy::{Limits, Network, Policy};
use crate::proven::{self, Shape};
use crate::scratch::Scratch;
use rehearsal_core::sandbox::{Demand, ProjectMode};
use rehearsal_core::sandbox::{Rung, SandboxReport};

/// A policy that was tried and found to hold as [`report`](Self::report) says. Commands run in it one after the other or at the same
/// time, each with the limits for itself.
#[derive(Debug)]
pub struct Sandbox {
    plan: Arc<Plan>,
    places: Places,
    report: SandboxReport,
    pool: Arc<Pool>,
    /// The program that makes the namespaces, where we cannot, with its arguments.
    wrapper: Option<Wrapper>,
    /// For temporary files, where there is no private file system.
    scratch: Option<Scratch>,
    /// Set if this is as one of the same shape was found to be, and was not tried out itself.
    untried: Option<Untried>,
}

#[derive(Debug)]
struct Untried {
    policy: Policy,
    highest: Rung,
    /// What takes its place if it turns out not to hold.
    tried: OnceLock<Box<Sandbox>>,
}

#[derive(Debug)]
struct Wrapper {
    program: std::path::PathBuf,
    network: Network,
    filter: Option<Vec<libc::sock_filter>>,
}

impl Sandbox {
    /// Tries a policy out, and steps down as far as the kernel makes it necessary.
    pub fn prepare(policy: &Policy) -> Result<Self, SandboxError> {
        Self::prepare_at_most(policy, Rung::Full)
    }

    /// The same on a lower rung than could be had, to see what it is like there.
    #[doc(hidden)]
    pub fn prepare_at_most(policy: &Policy, highest: Rung) -> Result<Self, SandboxError> {
        check_limits(&policy.limits)?;
        let highest = if policy.demand == Demand::Off { Rung::Off } else { highest };
        // What is required is seen, not remembered.
        let known = if policy.demand == Demand::Required {
            None
        } else {
            proven::recall(&Shape::of(policy, highest))
        };
        let Some(available) = known else { return Self::prepare_by_trying(policy, highest) };
        let untried = Untried { policy: policy.clone(), highest, tried: OnceLock::new() };
        Ok(Self { untried: Some(untried), ..Self::with(policy, &Places::resolve(policy)?, &available)? })
    }

    fn prepare_by_trying(policy: &Policy, highest: Rung) -> Result<Self, SandboxError> {
        let places = Places::resolve(policy)?;
        let mut available = Available::up_to(highest);
        loop {
            let sandbox = Self::with(policy, &places, &available)?;
            match sandbox.try_out() {
                Ok(()) => {
                    proven::remember(Shape::of(policy, highest), &available);
                    return sandbox.if_demanded(policy.demand);
                }
                Err(failure) => available.give_up(failure).map_err(|failure| set_up_error(failure, ""))?,
            }
        }
    }

    /// What holds for all that runs in it.
    pub fn report(&self) -> &SandboxReport {
        match self.untried.as_ref().and_then(|untried| untried.tried.get()) {
            Some(tried) => &tried.report,
            None => &self.report,
        }
    }

    /// Starts a command. Blocks for the few milliseconds until it was executed.
    pub fn spawn(&self, command: Command) -> Result<Confined, SandboxError> {
        let Some(untried) = &self.untried else { return self.execute(command) };
        if let Some(tried) = untried.tried.get() {
            return tried.execute(command);
        }
        let again = command.try_clone()?;
        match self.execute(command) {
            // Unless what is to be shown has become something else meanwhile: somebody may want to be let in.
            Err(SandboxError::SetUp { .. })
                if Places::resolve(&untried.policy).is_ok_and(|now| now == self.places) =>
            {
                let tried = Box::new(Self::prepare_by_trying(&untried.policy, untried.highest)?);
                untried.tried.get_or_init(|| tried).execute(again)
            }
            started => started,
        }
    }

    fn execute(&self, command: Command) -> Result<Confined, SandboxError> {
        let program = command.program();
        let executable = self.wrapped(command)?.into_executable()?;
        self.start(Job::Run(executable)).map_err(|failure| set_up_error(failure, &program))
    }

    fn with(policy: &Policy, places: &Places, available: &Available) -> Result<Self, SandboxError> {
        let pool = if available.groups.is_ok() { Pool::find(&policy.limits) } else { Pool::none() };
        let mode = available.project_mode(policy.mode);
        let filter =
            filter::program(available.internet_sockets(policy.network)).filter(|_| available.filter.is_ok());
        let wrapper = available.bubblewrap.as_ref().ok().filter(|_| available.uses_bubblewrap());
        let wrapper = wrapper.map(|program| Wrapper {
            program: program.clone(),
            network: policy.network,
            filter: filter.clone(),
        });
        let needs_scratch = available.namespaces.is_err() && wrapper.is_none() && available.landlock.is_ok();
        let scratch = needs_scratch.then(Scratch::make).transpose().map_err(temporary_directory_error)?;
        let plan = Plan {
            namespaces: namespaces(policy, places, available, mode)?,
            limits: limits(&policy.limits, available, &pool),
            // A `bwrap` with set-user-id could not start; it gives up privileges by itself.
            drop_privileges: available.privileges.is_ok() && wrapper.is_none(),
            landlock: landlock_rules(places, available, mode, scratch.as_ref())?,
            filter: filter.filter(|_| wrapper.is_none()),
        };
        let report = available.report(policy, &pool);
        Ok(Self {
            plan: Arc::new(plan),
            places: places.clone(),
            report,
            pool: Arc::new(pool),
            wrapper,
            scratch,
            untried: None,
        })
    }

    /// Does everything but executing a command.
    fn try_out(&self) -> Result<(), Failure> {
        if self.wrapper.is_some() {
            return self.try_wrapper();
        }
        self.start(Job::Try).map(drop)
    }

    /// The program must be able to run another one.
    fn try_wrapper(&self) -> Result<(), Failure> {
        let failed = |errno| Failure { stage: Stage::Execute, errno };
        let command = self.wrapped(Command::new("/bin/true", "/")).and_then(Command::into_executable);
        let mut confined = self.start(Job::Run(command.map_err(|_| failed(Errno::INVAL))?))?;
        if confined.wait_blocking().is_success() { Ok(()) } else { Err(failed(Errno::PERM)) }
    }

    fn if_demanded(self, demand: Demand) -> Result<Self, SandboxError> {
        let missing = self.report.missing();
        if demand != Demand::Required || missing.is_empty() {
            return Ok(self);
        }
        let why = |why: &Option<String>| why.clone().unwrap_or_default();
        Err(SandboxError::Required(
            missing.into_iter().map(|(layer, report)| (layer, why(&report.why))).collect(),
        ))
    }

    fn wrapped(&self, command: Command) -> Result<Command, SandboxError> {
        /// A number that no runner uses for a report of its own.
        const FILTER_DESCRIPTOR: i32 = 63;
        let command = match &self.scratch {
            Some(scratch) => command.env("TMPDIR", scratch.path()),
            None => command,
        };
        let Some(wrapper) = &self.wrapper else { return Ok(command) };
        let filter = wrapper.filter.as_deref().map(bubblewrap::filter_file).transpose();
        let filter = filter.map_err(temporary_directory_error)?;
        let arguments = bubblewrap::arguments(
            &self.places,
            self.report.project,
            wrapper.network,
            filter.is_some().then_some(FILTER_DESCRIPTOR),
        );
        let command = command.through(wrapper.program.clone().into_os_string(), arguments);
        Ok(match filter {
            Some(filter) => command.descriptor(FILTER_DESCRIPTOR, filter),
            None => command,
        })
    }

    fn start(&self, job: Job) -> Result<Confined, Failure> {
        let failed = |stage| move |errno| Failure { stage, errno };
        let group_failed = |error: std::io::Error| Failure { stage: Stage::Group, errno: errno_of(&error) };
        let group = self.pool.take().map_err(group_failed)?;
        let (ours, theirs) =
            socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)
                .map_err(failed(Stage::Start))?;
        let groups = group.doors().map_err(group_failed)?;
        let launch = Launch { plan: Arc::clone(&self.plan), job, groups, control: theirs };
        let forked =
            group.fork(|| child::start(launch)).map_err(group_failed)?.map_err(failed(Stage::Start))?;
        match child::receive(ours.as_fd()) {
            Ok(Some((Message::Started, storage))) => {
                let project =
                    (self.report.project == ProjectMode::Overlay).then(|| self.places.project.clone());
                Ok(Confined::new(forked, ours, storage, project, group, Arc::clone(&self.pool)))
            }
            Ok(Some((Message::Failed(failure), _))) => {
                self.clean_up(ours, &forked.pidfd, group);
                Err(failure)
            }
            _ => {
                self.clean_up(ours, &forked.pidfd, group);
                Err(Failure { stage: Stage::Start, errno: Errno::CHILD })
            }
        }
    }

    /// Waits for the end of a child that failed, which it reaches by itself.
    fn clean_up(&self, control: OwnedFd, pidfd: &OwnedFd, group: Group) {
        drop(control);
        let _reaped = waitid(WaitId::PidFd(pidfd.as_fd()), WaitIdOptions::EXITED);
        self.pool.give_back(group);
    }
}

fn set_up_error(failure: Failure, program: &str) -> SandboxError {
    let source = std::io::Error::from(failure.errno);
    match failure.stage {
        Stage::Execute => SandboxError::Execute { program: program.to_owned(), source },
        stage => SandboxError::SetUp { stage, source },
    }
}

fn errno_of(error: &std::io::Error) -> Errno {
    Errno::from_io_error(error).unwrap_or(Errno::IO)
}

fn temporary_directory_error(source: std::io::Error) -> SandboxError {
    SandboxError::SetUp { stage: Stage::Mounts, source }
}

fn check_limits(limits: &Limits) -> Result<(), SandboxError> {
    /// With less, no interpreter starts, and nothing would say why.
    const LEAST_BYTES: u64 = 1 << 20;
    const MOST_CPUS: f64 = 65536.0;
    if limits.cpus.is_some_and(|cpus| !(0.01..=MOST_CPUS).contains(&cpus)) {
        return Err(SandboxError::Limit(format!("{} CPUs", limits.cpus.unwrap_or_default())));
    }
    for bytes in limits.memory.into_iter().chain([limits.files]) {
        if bytes < LEAST_BYTES {
            return Err(SandboxError::Limit(format!("{bytes} bytes")));
        }
    }
    for (count, what) in [(limits.processes, "processes"), (limits.open_files, "open files")] {
        if count.is_some_and(|count| count < 4) {
            return Err(SandboxError::Limit(format!("{} {what}", count.unwrap_or_default())));
        }
    }
    Ok(())
}

fn namespaces(
    policy: &Policy,
    places: &Places,
    available: &Available,
    mode: ProjectMode,
) -> Result<Option<Namespaces>, SandboxError> {
    if available.namespaces.is_err() {
        return Ok(None);
    }
    let layout = Layout::new(places, mode, policy.limits.files, available.fresh_proc.is_ok())?;
    let user = rustix::process::geteuid().as_raw();
    let group = rustix::process::getegid().as_raw();
    Ok(Some(Namespaces {
        network: policy.network == Network::Private,
        user_map: format!("{user} {user} 1"),
        group_map: format!("{group} {group} 1"),
        mounts: layout.steps,
        slots: layout.slots,
        proc: layout.proc,
    }))
}

/// Limits of each process. Memory only where no group limits it: the address space never, because runtimes reserve much more of it
/// than they use (16 GB for Node with WebAssembly, 64 GB for Deno).
fn limits(limits: &Limits, available: &Available, pool: &Pool) -> Vec<(Resource, Rlimit)> {
    if available.limits.is_err() {
        return Vec::new();
    }
    let mut wanted = vec![(Resource::Core, 0)];
    wanted.extend(limits.open_files.map(|count| (Resource::Nofile, count)));
    if !pool.has(Controller::Memory) {
        wanted.extend(limits.memory.map(|bytes| (Resource::Data, bytes)));
    }
    if !pool.has(Controller::Processes) && available.counts_processes_by_user() {
        wanted.extend(limits.processes.map(|count| (Resource::Nproc, count)));
    }
    let at_most_allowed = |(resource, wanted): (Resource, u64)| {
        let limit = getrlimit(resource).maximum.map_or(wanted, |maximum| wanted.min(maximum));
        (resource, Rlimit { current: Some(limit), maximum: Some(limit) })
    };
    wanted.into_iter().map(at_most_allowed).collect()
}

fn landlock_rules(
    places: &Places,
    available: &Available,
    mode: ProjectMode,
    scratch: Option<&Scratch>,
) -> Result<Option<LandlockRules>, SandboxError> {
    let abi = match &available.landlock {
        Ok(abi) if !available.uses_bubblewrap() => *abi,
        _ => return Ok(None),
    };
    let mut allowed = if available.namespaces.is_ok() {
        let private = places.hidden.iter().cloned().map(Allowed::Everything);
        std::iter::once(Allowed::Read("/".into()))
            .chain(private)
            .chain([Allowed::Everything("/dev".into())])
            .collect()
    } else {
        around_hidden(places)
    };
    allowed.extend(places.writable.iter().cloned().map(Allowed::Everything));
    if mode != ProjectMode::ReadOnly {
        allowed.push(Allowed::Everything(places.project.clone()));
    }
    let scratch = scratch.and_then(|scratch| Utf8Path::from_path(scratch.path()));
    allowed.extend(scratch.map(|path| Allowed::Everything(path.to_owned())));
    landlock::rules(abi, &allowed).map(Some)
}

/// Where nothing can be mounted over what is hidden.
fn around_hidden(places: &Places) -> Vec<Allowed> {
    const DEVICES: [&str; 8] = [
        "/dev/null",
        "/dev/zero",
        "/dev/full",
        "/dev/random",
        "/dev/urandom",
        "/dev/tty",
        "/dev/shm",
        "/dev/pts",
    ];
    let masked = places.masked.iter().map(|(path, _)| path.clone());
    let hidden: Vec<_> = places.hidden.iter().cloned().chain(masked).collect();
    let mut allowed = landlock::everything_but(&hidden);
    allowed.extend(places.readable.iter().cloned().map(Allowed::Read));
    allowed.push(Allowed::Read(places.project.clone()));
    allowed.extend(DEVICES.iter().map(|path| Allowed::Everything(Utf8Path::new(path).to_owned())));
    allowed
}

//! Runs any command as an agent: `supervise RUN_DIR WORKING_DIR PROGRAM [ARG…]`. With `--lease MILLISECONDS SOCKET` in
//! front of it, the agent outlives this process, and can be adopted at the socket: `supervise --adopt SOCKET RUN` tries to.
//! With `--confined` behind that, it is confined as far as the system allows.
//!
//! What a program has to do to use this crate: call `shim_main` when it is started as a shim, before anything
//! else, and be a subreaper. Also the other process in this crate's tests.

#[path = "../tests/it/line_driver.rs"]
mod line_driver;

use std::io::Write;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use line_driver::LineDriver;
use rehearsal_agent::process::{SHIM_ARGUMENT, become_subreaper, shim_main};
use rehearsal_agent::{
    Agent, BootInstant, Confinement, Lease, Orphan, Permission, ProcessAgent, Rendezvous, RunRequest,
};
use rehearsal_core::{Budget, RunId, TaskId, Timestamp, VirtualClock};
use rehearsal_sandbox::{Demand, Network, ProjectMode};
use tokio_util::sync::CancellationToken;

fn main() -> Result<ExitCode, Box<dyn std::error::Error>> {
    let mut args = std::env::args_os();
    if args.nth(1).is_some_and(|first| first == SHIM_ARGUMENT) {
        return Ok(ExitCode::from(u8::try_from(shim_main(args))?));
    }
    become_subreaper()?;
    let mut args: Vec<String> = std::env::args().skip(1).collect();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    if let [flag, socket, run] = args.as_slice()
        && flag == "--adopt"
    {
        let found = runtime.block_on(Orphan::find(socket.as_str().into(), &RunId::new(run.as_str())?));
        let told = found.map_or_else(|error| error.to_string(), |orphan| format!("found {}", orphan.pid()));
        writeln!(std::io::stdout(), "{told}")?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut lease = None;
    if let [flag, millis, socket, ..] = args.as_slice()
        && flag == "--lease"
    {
        lease = Some((Duration::from_millis(millis.parse()?), Rendezvous::new(socket.into(), String::new())));
        args.drain(..3);
    }
    let is_confined = args.first().is_some_and(|flag| flag == "--confined");
    args.drain(..usize::from(is_confined));
    let confinement = is_confined
        .then(|| Confinement::of_tools(ProjectMode::Writable, Network::Allowed, Demand::BestEffort));
    let (_keeper, lease, rendezvous) = match lease {
        Some((length, rendezvous)) => {
            let (keeper, lease) = Lease::new(BootInstant::now(), length);
            (Some(keeper), Some(lease), Some(rendezvous))
        }
        None => (None, None, None),
    };
    let [run_dir, working_dir, program, rest @ ..] = args.as_slice() else {
        return Err("usage: supervise RUN_DIR WORKING_DIR PROGRAM [ARG…]".into());
    };
    let request = RunRequest {
        run: RunId::new(run_dir.rsplit('/').next().unwrap_or_default())?,
        task: TaskId::new("example")?,
        prompt: String::new(),
        working_dir: working_dir.into(),
        run_dir: run_dir.into(),
        model: None,
        system_prompt: None,
        permission: Permission::default(),
        timeout: None,
        idle_timeout: None,
        budget: Budget::default(),
        env_grants: Vec::new(),
        env: std::collections::BTreeMap::new(),
        resume: None,
        lease,
        rendezvous,
    };
    let driver = LineDriver::new(program, rest.iter().cloned());
    let clock = Arc::new(VirtualClock::starting_at(Timestamp(0)));
    let agent =
        ProcessAgent::new(Box::new(driver), std::env::vars().collect(), clock).with_confinement(confinement);
    let report = runtime.block_on(agent.run(request, Arc::new(|_| {}), CancellationToken::new()));
    let mut out = std::io::stdout().lock();
    writeln!(out, "{}", report.verdict.outcome)?;
    for warning in &report.warnings {
        writeln!(out, "warning: {warning}")?;
    }
    let status = std::fs::read_to_string("/proc/self/status")?;
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap_or_default();
    writeln!(out, "peak memory: {}", peak.trim())?;
    Ok(ExitCode::SUCCESS)
}

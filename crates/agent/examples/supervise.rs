//! Runs any command as an agent: `supervise RUN_DIR WORKING_DIR PROGRAM [ARG…]`. With `--lease MILLISECONDS SOCKET` in
//! front of it, the agent outlives this process, and another one can adopt it: `supervise --adopt SOCKET RUN`. With
//! `--confined`, it is confined as far as the system allows.
//!
//! What a program has to do to use this crate: call `shim_main` when it is started as a shim, before anything
//! else, and be a subreaper. Also the other process in this crate's tests.

#[path = "../tests/it/line_driver.rs"]
mod line_driver;

use std::io::Write;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use line_driver::line_driver;
use rehearsal_agent::{
    Agent, BootInstant, Confinement, Containment, Lease, LeaseKeeper, Orphan, Permission, ProcessAgent,
    Rendezvous, RunReport, RunRequest,
};
use rehearsal_core::{Budget, RunId, TaskId, Timestamp, VirtualClock};
use rehearsal_process::{SHIM_ARGUMENT, become_subreaper, shim_main};
use rehearsal_sandbox::{Demand, Network, ProjectMode};
use tokio_util::sync::CancellationToken;

type Failure = Box<dyn std::error::Error>;

fn main() -> Result<ExitCode, Failure> {
    let mut args = std::env::args_os();
    if args.nth(1).is_some_and(|first| first == SHIM_ARGUMENT) {
        return Ok(ExitCode::from(u8::try_from(shim_main(args))?));
    }
    become_subreaper()?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let args: Vec<String> = std::env::args().skip(1).collect();
    let report = match args.as_slice() {
        [flag, socket, run] if flag == "--adopt" => runtime.block_on(adopt(socket, run))?,
        args => runtime.block_on(run(args))?,
    };
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

async fn adopt(socket: &str, run: &str) -> Result<RunReport, Failure> {
    let orphan = Orphan::find(socket.into(), &RunId::new(run)?).await?;
    let (_keeper, lease) = Lease::new(BootInstant::now(), Duration::from_mins(1));
    let agent = agent("", &[]);
    let report = agent.adopt(orphan, lease, Arc::new(|_| {}), CancellationToken::new()).await;
    report.ok_or_else(|| "it is of another kind".into())
}

async fn run(mut args: &[String]) -> Result<RunReport, Failure> {
    let mut leased: Option<(LeaseKeeper, Lease, Rendezvous)> = None;
    if let [flag, millis, socket, rest @ ..] = args
        && flag == "--lease"
    {
        let (keeper, lease) = Lease::new(BootInstant::now(), Duration::from_millis(millis.parse()?));
        leased = Some((keeper, lease, Rendezvous::new(socket.into(), String::new())));
        args = rest;
    }
    let mut confinement = None;
    if let [flag, rest @ ..] = args
        && flag == "--confined"
    {
        confinement =
            Some(Confinement::of_tools(ProjectMode::Writable, Network::Allowed, Demand::BestEffort));
        args = rest;
    }
    let [run_dir, working_dir, program, rest @ ..] = args else {
        return Err("usage: supervise RUN_DIR WORKING_DIR PROGRAM [ARG…]".into());
    };
    let mut request = request(run_dir, working_dir)?;
    let _keeper = leased.map(|(keeper, lease, rendezvous)| {
        (request.lease, request.rendezvous) = (Some(lease), Some(rendezvous));
        keeper
    });
    let agent =
        agent(program, rest).contained(confinement.map_or_else(Containment::default, Containment::Sandbox));
    Ok(agent.run(request, Arc::new(|_| {}), CancellationToken::new()).await)
}

fn agent(program: &str, args: &[String]) -> ProcessAgent {
    let driver = line_driver(program, args.iter().cloned());
    let clock = Arc::new(VirtualClock::starting_at(Timestamp(0)));
    ProcessAgent::new(driver, std::env::vars().collect(), clock)
}

fn request(run_dir: &str, working_dir: &str) -> Result<RunRequest, Failure> {
    Ok(RunRequest {
        run: RunId::new(run_dir.rsplit('/').next().unwrap_or_default())?,
        task: TaskId::new("example")?,
        prompt: String::new(),
        working_dir: working_dir.into(),
        run_dir: run_dir.into(),
        model: None,
        system_prompt: None,
        permission: Permission::default(),
        allow: Vec::new(),
        timeout: None,
        idle_timeout: None,
        calls: rehearsal_agent::CallLimits::default(),
        budget: Budget::default(),
        env_grants: Vec::new(),
        env: std::collections::BTreeMap::new(),
        resume: None,
        lease: None,
        rendezvous: None,
    })
}

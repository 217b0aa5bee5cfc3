//! Runs any command as an agent: `supervise RUN_DIR WORKING_DIR PROGRAM [ARG…]`.
//!
//! What a program has to do to use this crate: call `shim_main` when it is started as a shim, before anything
//! else, and be a subreaper. Also the other process in this crate's tests.

#[path = "../tests/it/line_driver.rs"]
mod line_driver;

use std::io::Write;
use std::process::ExitCode;
use std::sync::Arc;

use line_driver::LineDriver;
use rehearsal_agent::process::{SHIM_ARGUMENT, become_subreaper, shim_main};
use rehearsal_agent::{Agent, Permission, ProcessAgent, RunRequest};
use rehearsal_core::{Budget, RunId, TaskId, Timestamp, VirtualClock};
use tokio_util::sync::CancellationToken;

fn main() -> Result<ExitCode, Box<dyn std::error::Error>> {
    let mut args = std::env::args_os();
    if args.nth(1).is_some_and(|first| first == SHIM_ARGUMENT) {
        return Ok(ExitCode::from(u8::try_from(shim_main(args))?));
    }
    become_subreaper()?;
    let args: Vec<String> = std::env::args().skip(1).collect();
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
        lease: None,
    };
    let driver = LineDriver::new(program, rest.iter().cloned());
    let clock = Arc::new(VirtualClock::starting_at(Timestamp(0)));
    let agent = ProcessAgent::new(Box::new(driver), std::env::vars().collect(), clock);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
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

//! `run SESSION`.

mod summary;
pub(crate) mod view;

use std::sync::Arc;

use async_trait::async_trait;
use clap::Args;
use rehearsal_agent::cli_of;
use rehearsal_agent::environment::Variables;
use rehearsal_app::crew::check_role;
use rehearsal_app::project::Project;
use rehearsal_app::sessions::the_session;
use rehearsal_core::config::{HumanDuration, Overrides, PermissionMode, Profile, TestingSettings};
use rehearsal_core::{AgentName, Outcome, OutcomeName, SessionName};
use rehearsal_engine::{
    AgentSetup, LoopLock, Policy, Reach, Role, Roles, SessionPolicy, SetupError, StopSwitch, Undisturbed,
    WorkEnd, WorkOptions, WorkReporter, WorkSummary, Worker, Workspace,
};
use rehearsal_process::SpawnError;
use serde::Serialize;

use super::Done;
use crate::context::Context;
use crate::error::CliError;
use crate::exit::Exit;
use crate::interruption::{self, Manners};
use crate::ui::harmless;
use crate::words;

#[derive(Debug, Default, Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of the command line")]
#[command(after_help = "Examples:
  rehearsal run hello
  rehearsal run hello --agent reviewer --iterations 3 --max-cost 2.50
  rehearsal run hello --dry-run          # print the prompt and the command, run nothing

Ctrl-C once finishes the iteration and ends the loop; twice stops the agent now. Nothing is lost either way.")]
pub(crate) struct RunArgs {
    /// Which session; can be left out if there is only one
    session: Option<SessionName>,
    /// At most so many iterations [default: 10]
    #[arg(long, short = 'n', value_name = "N")]
    iterations: Option<u32>,
    /// The longest a run may take, like 45m [default: 1h]
    #[arg(long, value_name = "DURATION")]
    timeout: Option<HumanDuration>,
    /// The longest an agent may be silent [default: 15m]
    #[arg(long, value_name = "DURATION")]
    idle_timeout: Option<HumanDuration>,
    /// Let the agent do everything without being asked
    #[arg(long)]
    trust: bool,
    /// The model
    #[arg(long, value_name = "MODEL")]
    model: Option<String>,
    /// Which agent of the configuration [default: implementer]
    #[arg(long, value_name = "NAME")]
    agent: Option<AgentName>,
    /// Stop when the runs of this loop have cost so much
    #[arg(long, value_name = "USD", value_parser = super::work::dollars)]
    max_cost: Option<f64>,
    /// Stop after so many failed runs in a row [default: 3]
    #[arg(long, value_name = "N")]
    max_failures: Option<u32>,
    /// The longest wait for a rate limit or a quota [default: 6h]
    #[arg(long, value_name = "DURATION")]
    max_wait: Option<HumanDuration>,
    /// Take the agent's word that all is complete
    #[arg(long)]
    accept_complete: bool,
    /// A message to put into every prompt
    #[arg(long, short, value_name = "TEXT")]
    message: Option<String>,
    /// Print the prompt and the command, and run nothing
    #[arg(long)]
    dry_run: bool,
    /// With --json: every event as a line, the summary last
    #[arg(long, requires = "json")]
    follow: bool,
}

/// `run --dry-run --json`.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct DryRun {
    /// The task that would be worked on.
    task: String,
    /// The program and its arguments.
    command: Vec<String>,
    /// What cannot be had from this version of the agent.
    warnings: Vec<String>,
    /// What it would be told.
    prompt: String,
}

pub(crate) async fn run(args: RunArgs, context: &Context) -> Done {
    context.may_change()?;
    let project = context.project()?;
    if args.dry_run {
        let (worker, session, setup) = prepare(&args, &project, context).await?;
        return dry_run(&worker, &session, &setup, context).await;
    }
    let (summary, interrupted) = run_loop(&args, &project, context).await?;
    summary::show(&summary, context);
    let exit = exit_of(&summary.end, interrupted);
    context.ui.document(summary);
    Ok(exit)
}

/// The loop alone, for whoever shows its summary in another way.
pub(crate) async fn run_loop(
    args: &RunArgs,
    project: &Project,
    context: &Context,
) -> Result<(WorkSummary, Exit), CliError> {
    let (worker, _, _) = prepare(args, project, context).await?;
    // Should a supervisor be killed, what it supervised comes to us and not to the init process.
    rehearsal_process::become_subreaper()?;
    let _lock = LoopLock::take(&project.state_dir())?;
    let interruption = interruption::listen(worker.stop.clone(), MANNERS, context.ui)?;
    let summary = Box::pin(worker.run()).await?;
    Ok((summary, interruption.exit()))
}

const MANNERS: Manners = Manners {
    first: "the loop ends after this iteration; Ctrl-C again stops the agent now",
    kill_drains: false,
};

fn overrides(args: &RunArgs) -> Overrides {
    Overrides::default()
        .set("agent", args.agent.as_ref())
        .set("agents.*.model", args.model.as_ref())
        .set("agents.*.permission", args.trust.then_some(PermissionMode::Trust))
        .set("agents.*.timeout", args.timeout)
        .set("agents.*.idle_timeout", args.idle_timeout)
        .set("loop.iterations", args.iterations)
        .set("loop.max_failures", args.max_failures)
        .set("loop.max_cost", args.max_cost)
        .set("loop.max_wait", args.max_wait)
        .set("loop.accept_complete", args.accept_complete.then_some(true))
}

/// A worker for the session, from the settings.
async fn prepare(
    args: &RunArgs,
    project: &Project,
    context: &Context,
) -> Result<(Worker, SessionName, AgentSetup), CliError> {
    let settings = project.settings_with(overrides(args))?;
    let store = project.store().await?;
    let session = the_session(&*store, args.session.clone()).await?;
    let profile = settings.profile().cloned().ok_or_else(|| CliError::usage("no agent is configured"))?;
    check_permission(&profile, args.trust)?;
    check_role(&profile, project)?;
    let setup =
        set_up(&profile, args, project, context).await.map_err(|error| setup_error(&error, &profile))?;
    let role = Role { agent: setup.agent(), profile, template: Some(project.loop_template()?) };
    let policy = SessionPolicy {
        session: session.clone(),
        agent: settings.agent.clone(),
        iterations: settings.loop_.iterations,
        max_failures: settings.loop_.max_failures,
        max_wait: settings.loop_.max_wait.0,
        accept_complete: settings.loop_.accept_complete,
        message: args.message.clone(),
        test_command: test_command(&settings.testing),
    };
    let worker = Worker {
        store,
        clock: Arc::clone(&context.clock),
        roles: Arc::new(OneRole(role)),
        workspace: Workspace::Checkout(project.root.clone()),
        state_dir: project.state_dir(),
        quality: settings.quality.rules(),
        variables: crate::context::variables(),
        options: WorkOptions {
            policy: Policy::Session(policy),
            max_cost: settings.loop_.max_cost,
            lease: settings.work.lease.0,
            limits: settings.limits(),
            look_every: Some(super::work::LOOK_EVERY),
            seed: None,
        },
        testing: settings.testing,
        reporter: reporter(args.follow, context),
        stop: StopSwitch::default(),
        moments: Arc::new(Undisturbed),
    };
    Ok((worker, session, setup))
}

/// The one agent of a session, whatever its name.
struct OneRole(Role);

#[async_trait]
impl Roles for OneRole {
    async fn role(&self, _name: &AgentName) -> Option<Result<Role, SetupError>> {
        Some(Ok(self.0.clone()))
    }
}

/// What agents are told to run: the command, or ours, which knows the runner.
fn test_command(testing: &TestingSettings) -> Option<String> {
    let ours = || testing.framework.as_ref().map(|_| "rehearsal test --agent".to_owned());
    testing.command.clone().or_else(ours)
}

/// What is only shown need not be here.
async fn set_up(
    profile: &Profile,
    args: &RunArgs,
    project: &Project,
    context: &Context,
) -> Result<AgentSetup, SetupError> {
    let ours: Variables = crate::context::variables();
    let clock = || Arc::clone(&context.clock);
    match AgentSetup::new(profile, ours.clone(), clock(), &project.root, Reach::ItsVendor).await {
        Err(SetupError::Program(SpawnError::ProgramMissing { .. })) if args.dry_run => {
            AgentSetup::of_missing_program(profile, ours, clock(), &project.root)
        }
        done => done,
    }
}

fn setup_error(error: &SetupError, profile: &Profile) -> CliError {
    let this = CliError::of(Exit::Agent, error);
    match (error, cli_of(profile.driver).install) {
        (SetupError::Program(SpawnError::ProgramMissing { .. }), Some(install)) => this
            .hint(format!("install it with `{install}`, or set `program:` in .rehearsal/config.yaml"))
            .hint("`rehearsal agent list` shows which agents are here"),
        _ => this.hint("set `program:` in .rehearsal/config.yaml; `rehearsal doctor` shows what is missing"),
    }
}

/// Trust is given on the command line, by whoever runs it; a committed file cannot give it.
pub(crate) fn check_permission(profile: &Profile, trust: bool) -> Result<(), CliError> {
    if profile.permission == PermissionMode::Trust && !trust {
        return Err(CliError::usage(format!(
            "`permission: trust` in {} needs your word",
            profile.origins.get("permission")
        ))
        .hint("run it with `--trust`, or set `permission: accept_edits`"));
    }
    Ok(())
}

fn reporter(follow: bool, context: &Context) -> WorkReporter {
    if follow {
        return super::work::follow();
    }
    super::work::live(context)
}

async fn dry_run(worker: &Worker, session: &SessionName, setup: &AgentSetup, context: &Context) -> Done {
    let Some(task) = worker.store.next_task(Some(session), context.now()).await? else {
        return Err(CliError::usage(format!("session `{session}` has no task that could be worked on now"))
            .hint(format!("`rehearsal task list --session {session}` shows what there is")));
    };
    let request = worker.preview(&task).await?;
    let prompt = request.prompt.clone();
    let line = setup.command_line(&request);
    let mut command = vec![line.program];
    command.extend(line.args);
    let quoted: Vec<String> = command.iter().map(|word| words::command::quote(word)).collect();
    let ui = context.ui;
    ui.say(format!("# command (the prompt goes to its standard input)\n{}", harmless(&quoted.join(" "))));
    let warnings: Vec<String> = line.warnings.iter().map(words::notice).collect();
    for warning in &warnings {
        ui.say(format!("# note: {}", harmless(warning)));
    }
    ui.say(format!("\n# prompt for task {}\n{}", task.id, harmless(&prompt)));
    ui.document(DryRun { task: task.id.to_string(), command, warnings, prompt });
    Ok(Exit::Ok)
}

/// What the end of a loop means for a script.
pub(crate) fn exit_of(end: &WorkEnd, interrupted: Exit) -> Exit {
    match end {
        WorkEnd::NothingToDo
        | WorkEnd::AllDone
        | WorkEnd::Complete { .. }
        | WorkEnd::MaxIterations
        | WorkEnd::Idle
        | WorkEnd::Once => Exit::Ok,
        WorkEnd::Blocked { .. } | WorkEnd::NeedsHuman { .. } => Exit::NeedsHuman,
        WorkEnd::BudgetReached { .. } => Exit::Budget,
        WorkEnd::TooManyFailures { last: Outcome::TimedOut { .. } } => Exit::Timeout,
        WorkEnd::LineStopped { cause } if cause.name() == OutcomeName::SandboxUnavailable => Exit::Sandbox,
        WorkEnd::SomeFailed { .. } | WorkEnd::TooManyFailures { .. } | WorkEnd::LineStopped { .. } => {
            Exit::Agent
        }
        WorkEnd::WaitTooLong { .. } => Exit::TryLater,
        WorkEnd::Interrupted => interrupted,
    }
}

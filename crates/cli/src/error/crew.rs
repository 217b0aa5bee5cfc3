//! Why the crew cannot work, plan or test, and what to do about it.

use rehearsal_app::crew::CrewError;
use rehearsal_app::plan::PlanningError;
use rehearsal_app::testing::TestingError;
use rehearsal_crew::planner::PlannerError;
use rehearsal_crew::{ChoiceError, RoleError};
use rehearsal_llm::model::ModelError;

use super::CliError;
use crate::exit::Exit;

impl From<RoleError> for CliError {
    fn from(error: RoleError) -> Self {
        match error {
            RoleError::Wrong { path, error } => {
                Self::in_file(error, path.as_str()).hint("`rehearsal schema role` has the form of the file")
            }
            RoleError::Unknown { name, near, known } => Self::usage(format!("there is no role `{name}`"))
                .did_you_mean(near, || {
                    format!("there are {}; your own go to `.rehearsal/agents/NAME.yaml`", known.join(", "))
                }),
            RoleError::Unreadable { .. } => Self::of(Exit::Usage, &error),
        }
    }
}

impl From<ChoiceError> for CliError {
    fn from(error: ChoiceError) -> Self {
        let this = Self::of(Exit::Usage, &error);
        match error {
            ChoiceError::NoName { .. } => this.hint("write `VENDOR:NAME`, such as `anthropic:claude-sonnet-4-5`"),
            ChoiceError::NoVendor => this.hint("set ANTHROPIC_API_KEY, OPENAI_API_KEY or GEMINI_API_KEY, or the address of your own server in ANTHROPIC_BASE_URL, OPENAI_BASE_URL or GOOGLE_GEMINI_BASE_URL"),
            ChoiceError::SeveralVendors { .. } => this.hint("say which: `--model anthropic:NAME`, `openai:NAME`, `responses:NAME` or `gemini:NAME`; or `model:` of the agent or of the role"),
            ChoiceError::Endpoint { .. } => this.hint("look at the vendor's variables"),
        }
    }
}

impl From<CrewError> for CliError {
    fn from(error: CrewError) -> Self {
        match error {
            CrewError::Role(error) => error.into(),
            CrewError::NoModel(error) => error.into(),
            CrewError::Client(error) => Self::of(Exit::Internal, &error),
            CrewError::Toolbox(_) => Self::of(Exit::Usage, &error),
            CrewError::Project(error) => error.into(),
        }
    }
}

impl From<PlanningError> for CliError {
    fn from(error: PlanningError) -> Self {
        let this = Self::usage(error.to_string());
        match error {
            PlanningError::NoGoal => this.hint("say what you want: rehearsal plan 'Fix the login'"),
            PlanningError::Unusable(_) => {
                this.hint("`rehearsal schema plan` has its form, and `rehearsal crew list` the agents")
            }
            PlanningError::Role(error) => error.into(),
            PlanningError::NoModel(error) => {
                Self::from(error).hint("a plan of your own needs no model: `rehearsal plan --from FILE`")
            }
            PlanningError::Client(error) => Self::of(Exit::Internal, &error),
            PlanningError::Planner(error) => planner_error(&error),
            PlanningError::Project(error) => error.into(),
        }
    }
}

fn planner_error(error: &PlannerError) -> CliError {
    let told = |exit| CliError::of(exit, error);
    match error {
        PlannerError::Model(
            ModelError::RateLimited { .. }
            | ModelError::QuotaExhausted { .. }
            | ModelError::Overloaded { .. }
            | ModelError::Resting { .. },
        ) => told(Exit::TryLater).hint("try again later; nothing was added"),
        PlannerError::Model(ModelError::Unauthorized { .. }) => {
            told(Exit::Agent).hint("look at the vendor's key, such as ANTHROPIC_API_KEY")
        }
        PlannerError::Model(_) => told(Exit::Agent).hint("nothing was added"),
        PlannerError::Malformed { .. } | PlannerError::Silent => told(Exit::Agent).hint(
            "ask again, with other words or another `--model`; a plan of your own goes in with `--from FILE`",
        ),
    }
}

impl From<TestingError> for CliError {
    fn from(error: TestingError) -> Self {
        match error {
            TestingError::Timeout(why) => Self::usage(why),
            TestingError::NoSandbox { .. } => Self::new(Exit::Sandbox, error.to_string()).hint(
                "`rehearsal doctor` shows which layer is missing; `--sandbox best-effort` runs without it",
            ),
            TestingError::Tester(error) => error.into(),
            TestingError::Project(error) => error.into(),
        }
    }
}

//! The profile of an agent, changed so that it asks the stage and nobody else.

use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};
use rehearsal_agent::cli_of;
use rehearsal_agent::clis::{Endpoint, KNOWN, Retries, StageModel};
use rehearsal_agent::environment::{Variables, tool_environment};
use rehearsal_core::config::{HumanDuration, Profile};
use rehearsal_sandbox::READABLE_IN_HOME;

use crate::caller::Caller;

/// The environment of a check: tools, a scratch home, no keys. Without them a CLI finds no login and can spend nothing.
pub(super) fn environment(caller: &Caller, home: &Utf8Path, temp: &Utf8Path) -> Variables {
    let mut env = tool_environment(&caller.environment);
    env.retain(|name, _| !leads_elsewhere(name));
    env.insert("HOME".to_owned(), home.to_string());
    env.insert("TMPDIR".to_owned(), temp.to_string());
    env
}

/// The same agent, asking the stage at `url`, for at most `limit` each time.
pub(super) fn on_stage(
    profile: &Profile,
    caller: &Caller,
    url: &str,
    home: &Utf8Path,
    limit: Duration,
) -> std::io::Result<Profile> {
    let cli = cli_of(profile.driver);
    let setup = cli.on_stage(Endpoint { url, model: StageModel::Any, retries: Retries::None });
    setup.write_files(home)?;
    let mut staged = profile.clone();
    staged.env.retain(|name, _| !leads_elsewhere(name));
    staged.env.extend(setup.environment());
    staged.args.extend(setup.arguments);
    staged.model = setup.model;
    staged.timeout = HumanDuration(limit);
    staged.idle_timeout = HumanDuration(limit);
    if let Some(home) = caller.variable("HOME") {
        show_home(&mut staged, Utf8Path::new(home));
    }
    Ok(staged)
}

/// What a run sees of the user's home, a check sees as well, although its own home is another one.
fn show_home(profile: &mut Profile, home: &Utf8Path) {
    let sandbox = &mut profile.sandbox;
    let below = |path: &String| home.join(path).into_string();
    sandbox.write = sandbox.write.iter().map(below).collect();
    sandbox.read = sandbox.read.iter().map(below).collect();
    let toolchains = READABLE_IN_HOME.iter().map(|path| home.join(path));
    sandbox.read.extend(toolchains.filter(|path| path.exists()).map(Utf8PathBuf::into_string));
}

/// Whether a variable could lead a CLI to a model, a login or a home of the user.
fn leads_elsewhere(name: &str) -> bool {
    let is_of_a_cli = || KNOWN.0.iter().any(|cli| cli.variables.contains(&name));
    let name = name.to_ascii_uppercase();
    let parts = ["_KEY", "_TOKEN", "_BASE_URL", "_PROXY", "_USE_BEDROCK", "_USE_VERTEX"];
    name == "HOME"
        || name.starts_with("XDG_")
        || name.starts_with("AWS_")
        || is_of_a_cli()
        || parts.iter().any(|part| name.ends_with(part))
}

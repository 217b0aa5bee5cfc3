//! What of our environment an agent gets to see.
//!
//! An allow-list: what is not known to be harmless stays out. `GIT_*` would turn the agent's git to another
//! repository, the variables of other agents make a CLI believe that it runs inside one of them, and secrets
//! that were not granted are nobody's business.

use std::collections::BTreeMap;

use camino::Utf8Path;
use rehearsal_core::{RunId, TaskId};

use crate::RunRequest;
use crate::clis::AgentCli;
use rehearsal_process::{RUN_DIR_VARIABLE, RUN_ID_VARIABLE};

/// A snapshot of variables, by name.
pub type Variables = BTreeMap<String, String>;

/// Harmless by themselves, or needed by every tool: who and where we are, which language, which network.
/// A trailing `*` stands for any rest.
const HARMLESS: &[&str] = &[
    "PATH",
    "HOME",
    "USER",
    "LOGNAME",
    "SHELL",
    "LANG",
    "LANGUAGE",
    "LC_*",
    "TERM",
    "COLORTERM",
    "NO_COLOR",
    "TZ",
    "TMPDIR",
    "XDG_*",
    "HOSTNAME",
    "SSL_CERT_*",
    "NODE_EXTRA_CA_CERTS",
    "CURL_CA_BUNDLE",
    "REQUESTS_CA_BUNDLE",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "ALL_PROXY",
    "NO_PROXY",
    "http_proxy",
    "https_proxy",
    "all_proxy",
    "no_proxy",
];

/// Where toolchains live: without these an agent could not build what its user can.
const TOOLCHAINS: &[&str] = &[
    "CARGO_HOME",
    "RUSTUP_HOME",
    "RUSTUP_TOOLCHAIN",
    "GOPATH",
    "GOROOT",
    "GOCACHE",
    "GOMODCACHE",
    "GOTOOLCHAIN",
    "JAVA_HOME",
    "MAVEN_HOME",
    "GRADLE_USER_HOME",
    "ANDROID_HOME",
    "NVM_DIR",
    "NVM_BIN",
    "VOLTA_HOME",
    "PNPM_HOME",
    "BUN_INSTALL",
    "DENO_DIR",
    "PYENV_ROOT",
    "VIRTUAL_ENV",
    "CONDA_PREFIX",
    "UV_CACHE_DIR",
    "RBENV_ROOT",
    "GEM_HOME",
    "ASDF_DIR",
    "ASDF_DATA_DIR",
    "MISE_DATA_DIR",
    "DOTNET_ROOT",
    "NIX_PATH",
    "NIX_SSL_CERT_FILE",
    "LD_LIBRARY_PATH",
];

/// What a CLI gets to see of `ours` to reach its model, and what it is granted besides.
pub fn granted(ours: &Variables, cli: &AgentCli, besides: &[String]) -> Variables {
    let grants = cli.variables.iter().copied().chain(besides.iter().map(String::as_str));
    ours.iter()
        .filter(|(name, _)| grants.clone().any(|pattern| matches(pattern, name)))
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect()
}

/// What a build or a test gets to see of `ours`: where tools are, and no secrets.
pub fn tool_environment(ours: &Variables) -> Variables {
    let passes = |name: &str| HARMLESS.iter().chain(TOOLCHAINS).any(|pattern| matches(pattern, name));
    ours.iter().filter(|(name, _)| passes(name)).map(|(name, value)| (name.clone(), value.clone())).collect()
}

/// Which run a process belongs to.
#[derive(Debug, Clone, Copy)]
pub struct RunIdentity<'a> {
    /// The task.
    pub task: &'a TaskId,
    /// The run.
    pub run: &'a RunId,
    /// Where its files are.
    pub run_dir: &'a Utf8Path,
    /// Where it works.
    pub working_dir: &'a Utf8Path,
}

/// What a command sees that an agent of ours lets run: as [`tool_environment`], and which run it is in.
pub fn tool_environment_in_run(ours: &Variables, run: RunIdentity<'_>) -> Variables {
    let mut env = tool_environment(ours);
    env.extend(unattended());
    env.extend(identity(run));
    keep_git_in_the_foreground(&mut env);
    env
}

/// The whole environment of one run: what may pass of `ours`, then what the driver and the request set, then
/// what identifies the run, which nobody may change.
pub fn agent_environment(
    ours: &Variables,
    grants: &[&str],
    driver: &Variables,
    request: &RunRequest,
) -> Variables {
    let granted = |name: &str| {
        let named = grants.iter().copied().chain(request.env_grants.iter().map(String::as_str));
        HARMLESS.iter().chain(TOOLCHAINS).copied().chain(named).any(|pattern| matches(pattern, name))
    };
    let mut env: Variables = ours
        .iter()
        .filter(|(name, _)| granted(name))
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect();
    env.extend(unattended());
    env.extend(driver.clone());
    env.extend(request.env.clone());
    env.extend(identity(RunIdentity {
        task: &request.task,
        run: &request.run,
        run_dir: &request.run_dir,
        working_dir: &request.working_dir,
    }));
    keep_git_in_the_foreground(&mut env);
    env
}

/// git tidies up in the background after a commit. That would outlive the agent, and be ended half-way and told as
/// left behind: it has to be over with the command.
fn keep_git_in_the_foreground(env: &mut Variables) {
    let given = env.get("GIT_CONFIG_COUNT").map_or(Ok(0), |count| count.parse::<u32>());
    // What git cannot read either is not ours to mend.
    let Ok(given) = given else { return };
    let settings = ["gc.autoDetach", "maintenance.autoDetach"];
    for (at, setting) in (given..).zip(settings) {
        env.insert(format!("GIT_CONFIG_KEY_{at}"), setting.to_owned());
        env.insert(format!("GIT_CONFIG_VALUE_{at}"), "false".to_owned());
        env.insert("GIT_CONFIG_COUNT".to_owned(), at.saturating_add(1).to_string());
    }
}

/// Nobody is there to answer: git must fail instead of asking for a password, and take the message it has
/// instead of opening an editor.
fn unattended() -> impl Iterator<Item = (String, String)> {
    [("GIT_TERMINAL_PROMPT", "0"), ("GIT_EDITOR", "true"), ("SSH_ASKPASS_REQUIRE", "never")]
        .into_iter()
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
}

fn identity(run: RunIdentity<'_>) -> impl Iterator<Item = (String, String)> {
    [
        ("REHEARSAL_TASK_ID", run.task.as_str()),
        (RUN_ID_VARIABLE, run.run.as_str()),
        (RUN_DIR_VARIABLE, run.run_dir.as_str()),
        ("TASK_ID", run.task.as_str()),
        ("TASK_DIR", run.run_dir.as_str()),
        ("TASK_WORKTREE", run.working_dir.as_str()),
    ]
    .into_iter()
    .map(|(name, value)| (name.to_owned(), value.to_owned()))
}

fn matches(pattern: &str, name: &str) -> bool {
    match pattern.strip_suffix('*') {
        Some(prefix) => name.starts_with(prefix),
        None => pattern == name,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clis::KNOWN;
    use crate::request::tests::request;

    fn variables(pairs: &[(&str, &str)]) -> Variables {
        pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    fn names(ours: &[(&str, &str)], driver: &str, grants: &[&str]) -> Vec<String> {
        let mut request = request();
        request.env_grants = grants.iter().map(|&grant| grant.to_owned()).collect();
        let env = agent_environment(
            &variables(ours),
            KNOWN.of_program(driver).variables,
            &Variables::new(),
            &request,
        );
        let added = agent_environment(&Variables::new(), &[], &Variables::new(), &request);
        env.into_keys().filter(|name| !added.contains_key(name)).collect()
    }

    #[test]
    fn foreign_git_agent_and_secret_variables_stay_out() {
        let ours = [
            ("PATH", "/bin"),
            ("LC_ALL", "C"),
            ("GIT_DIR", "/elsewhere/.git"),
            ("GIT_INDEX_FILE", "x"),
            ("CLAUDECODE", "1"),
            ("CLAUDE_CODE_ENTRYPOINT", "cli"),
            ("CODEX_SANDBOX", "1"),
            ("OPENCODE", "1"),
            ("GEMINI_CLI", "1"),
            ("AWS_SECRET_ACCESS_KEY", "s"),
            ("GITHUB_TOKEN", "t"),
            ("SSH_AUTH_SOCK", "/tmp/s"),
            ("REHEARSAL_RUN_ID", "outer"),
        ];
        assert_eq!(names(&ours, "claude", &[]), ["LC_ALL", "PATH"]);
    }

    #[test]
    fn each_driver_gets_its_own_key_and_no_other() {
        let ours = [("ANTHROPIC_API_KEY", "a"), ("OPENAI_API_KEY", "o"), ("GEMINI_API_KEY", "g")];
        assert_eq!(names(&ours, "claude", &[]), ["ANTHROPIC_API_KEY"]);
        assert_eq!(names(&ours, "codex", &[]), ["OPENAI_API_KEY"]);
        assert_eq!(names(&ours, "gemini", &[]), ["GEMINI_API_KEY"]);
        assert_eq!(names(&ours, "opencode", &[]).len(), 3);
        assert_eq!(names(&ours, "crew", &[]).len(), 3);
        assert!(names(&ours, "command", &[]).is_empty());
    }

    #[test]
    fn a_grant_names_one_variable_or_a_prefix() {
        let ours = [("GITHUB_TOKEN", "t"), ("AWS_REGION", "r"), ("AWS_PROFILE", "p"), ("OTHER", "x")];
        assert_eq!(
            names(&ours, "command", &["GITHUB_TOKEN", "AWS_*"]),
            ["AWS_PROFILE", "AWS_REGION", "GITHUB_TOKEN"]
        );
    }

    #[test]
    fn settings_of_git_that_a_profile_gives_stay_beside_ours() {
        let mut request = request();
        request.env = variables(&[
            ("GIT_CONFIG_COUNT", "1"),
            ("GIT_CONFIG_KEY_0", "user.name"),
            ("GIT_CONFIG_VALUE_0", "Robot"),
        ]);
        let env = agent_environment(&Variables::new(), &[], &Variables::new(), &request);
        assert_eq!((&*env["GIT_CONFIG_KEY_0"], &*env["GIT_CONFIG_VALUE_0"]), ("user.name", "Robot"));
        assert_eq!((&*env["GIT_CONFIG_COUNT"], &*env["GIT_CONFIG_KEY_2"]), ("3", "maintenance.autoDetach"));
    }

    #[test]
    fn the_identity_of_the_run_cannot_be_overridden() {
        let mut request = request();
        request.env = variables(&[("TASK_ID", "forged"), ("MOCK_OUTCOME", "success"), ("GIT_EDITOR", "vi")]);
        let driver = variables(&[("DISABLE_TELEMETRY", "1"), ("MOCK_OUTCOME", "driver")]);
        let env = agent_environment(&Variables::new(), &[], &driver, &request);
        let text: Vec<String> = env.iter().map(|(name, value)| format!("{name}={value}")).collect();
        assert_eq!(
            text,
            [
                "DISABLE_TELEMETRY=1",
                "GIT_CONFIG_COUNT=2",
                "GIT_CONFIG_KEY_0=gc.autoDetach",
                "GIT_CONFIG_KEY_1=maintenance.autoDetach",
                "GIT_CONFIG_VALUE_0=false",
                "GIT_CONFIG_VALUE_1=false",
                "GIT_EDITOR=vi",
                "GIT_TERMINAL_PROMPT=0",
                "MOCK_OUTCOME=success",
                "REHEARSAL_RUN_ID=run1",
                "REHEARSAL_TASK_DIR=/runs/run1",
                "REHEARSAL_TASK_ID=task1",
                "SSH_ASKPASS_REQUIRE=never",
                "TASK_DIR=/runs/run1",
                "TASK_ID=task1",
                "TASK_WORKTREE=/worktree",
            ]
        );
    }
}

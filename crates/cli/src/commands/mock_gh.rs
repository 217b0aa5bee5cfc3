//! `mock-gh`, and this program under the name `gh`.

use std::process::ExitCode;

use camino::{Utf8Path, Utf8PathBuf};
use clap::Args;
use rehearsal_forge::mock_gh::{MockGhEnv, run};

use crate::context::variables;
use crate::exit::Exit;
use crate::ui::Ui;

/// Only for `--help`: what is played is read before any other argument of ours.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  GH_MOCK_PR_NUMBER=42 rehearsal mock-gh pr create
  GH_MOCK_MERGE_STATUS=CONFLICTING rehearsal mock-gh pr view 42 --json mergeStateStatus
  GH_STATE_FILE=gh.json GH_MOCK_LOG=gh.log rehearsal mock-gh pr merge 42 --merge
  ln -s \"$(command -v rehearsal)\" bin/gh && PATH=\"$PWD/bin:$PATH\" gh pr list

Plays pr create, view, list, checks, review, comment, merge, close and edit, api (the checks of a commit) and auth \
status. GH_STATE_FILE makes it remember from call to call; then it merges for real where origin is a directory. \
GH_MOCK_MERGE_FAIL, GH_MOCK_CREATE_FAIL, GH_MOCK_PR_EXISTS and GH_MOCK_CHECKS=pending,red,green make it answer \
otherwise. GH_MOCK_LOG names a file that gets a line for each call.")]
pub(crate) struct MockGhArgs {
    /// What is asked of gh
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    foreign: Vec<String>,
}

/// Whether we were started under the name that is played.
pub(crate) fn is_gh(program: &str) -> bool {
    Utf8Path::new(program).file_name() == Some("gh")
}

/// Plays, unless it is asked for our own help.
pub(crate) fn play(args: impl Iterator<Item = String>) -> Option<ExitCode> {
    let args: Vec<String> = args.collect();
    if matches!(args.first().map(String::as_str), Some("--help" | "-h")) {
        return None;
    }
    let here = std::env::current_dir().ok().and_then(|dir| Utf8PathBuf::from_path_buf(dir).ok());
    let Some(dir) = here else {
        Ui { json: false }.aside("error: the working directory cannot be used");
        return Some(Exit::Usage.into());
    };
    let env = MockGhEnv { vars: variables(), dir };
    let code = run(&args, &env, &mut std::io::stdin(), &mut std::io::stdout(), &mut std::io::stderr());
    Some(ExitCode::from(code))
}

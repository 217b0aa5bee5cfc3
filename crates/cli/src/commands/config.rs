//! `config show`.

use clap::{Args, Subcommand};
use serde::Serialize;

use super::Done;
use crate::context::Context;
use crate::exit::Exit;
use crate::ui::table;

#[derive(Debug, Subcommand)]
#[command(after_help = "Example: rehearsal config show --origin")]
pub(crate) enum ConfigCommand {
    /// Show all settings as they come together
    Show(ShowArgs),
}

#[derive(Debug, Args)]
#[command(after_help = "Example: rehearsal config show --origin

Flag > environment (REHEARSAL_*) > .rehearsal/config.yaml > user's config.yaml > default.")]
pub(crate) struct ShowArgs {
    /// Say where each comes from
    #[arg(long)]
    origin: bool,
}

/// `config show --json`.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct ConfigDocument {
    settings: Vec<SettingView>,
    /// Where the database, the runs and the logs of this repository are.
    state: String,
}

#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct SettingView {
    /// Its name in the file.
    key: String,
    /// Its value; `-` is none.
    value: String,
    /// Who set it: `default`, a file, `environment`, `command line`.
    origin: String,
}

/// A default that is longer is a list.
const LONGEST_DEFAULT: usize = 40;

impl SettingView {
    /// For people: a long list that nobody has changed is not spelled out. The document has it.
    fn shown(&self) -> String {
        let is_long_default = self.origin == "default" && self.value.len() > LONGEST_DEFAULT;
        if is_long_default { "as shipped".to_owned() } else { self.value.clone() }
    }
}

pub(crate) fn run(command: &ConfigCommand, context: &Context) -> Done {
    let ConfigCommand::Show(args) = command;
    let project = context.project()?;
    let settings = project.settings()?;
    let settings: Vec<SettingView> = settings
        .lines()
        .into_iter()
        .map(|(key, value, origin)| SettingView { key, value, origin: origin.to_string() })
        .collect();
    let row = |setting: &SettingView| {
        let mut row = vec![setting.key.clone(), setting.shown()];
        row.extend(args.origin.then(|| setting.origin.clone()));
        row
    };
    let headings: &[&str] = if args.origin { &["SETTING", "VALUE", "ORIGIN"] } else { &["SETTING", "VALUE"] };
    context.ui.say(table(headings, &settings.iter().map(row).collect::<Vec<_>>()));
    let state = project.state_dir()?.into_string();
    context.ui.say(format!("\nstate: {state}"));
    context.ui.document(ConfigDocument { settings, state });
    Ok(Exit::Ok)
}

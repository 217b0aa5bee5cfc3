//! The script's YAML. Every key is documented here: `rehearsal schema stage-script` prints it.

use std::collections::BTreeMap;
use std::fmt;

use rehearsal_core::config::HumanDuration;
use rehearsal_core::yaml::Spanned;
use serde::de::{self, Visitor};
use serde::{Deserialize, Deserializer};

use super::{LintPolicy, Times};

/// What the stage plays.
#[derive(Debug, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct StageScriptFile {
    /// Made-up ids and pauses follow from it.
    #[serde(default)]
    pub(super) seed: u64,
    /// How fast answers come; all at once without it.
    #[serde(default)]
    pub(super) speed: SpeedFile,
    /// What becomes of requests that no vendor would take.
    #[serde(default)]
    pub(super) lint: LintPolicy,
    /// The models that there are, for those who ask.
    #[serde(default)]
    pub(super) models: Vec<String>,
    /// Texts to use as `{{name}}`.
    #[serde(default)]
    pub(super) vars: BTreeMap<String, String>,
    /// The answers. A request gets the first one that is not used up and whose `when` fits.
    #[cfg_attr(feature = "schema", schemars(with = "Vec<TurnFile>"))]
    pub(super) turns: Vec<Spanned<TurnFile>>,
}

/// The answer to one request: what is thought, said and done, or what goes wrong.
#[derive(Debug, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub(super) struct TurnFile {
    /// What it is called in reports.
    #[serde(default)]
    pub(super) name: Option<String>,
    /// Which requests it may answer; without it any of the main conversation.
    #[serde(default)]
    pub(super) when: Option<ConditionFile>,
    /// What must hold of the request that it answers; it is refused otherwise.
    #[serde(default)]
    pub(super) expect: Option<ConditionFile>,
    /// Regular expressions to find in the request; what their first group matched is `{{name}}` from here on.
    #[serde(default)]
    #[cfg_attr(feature = "schema", schemars(with = "BTreeMap<String, String>"))]
    pub(super) capture: BTreeMap<String, Spanned<String>>,
    /// What the model thinks.
    #[serde(default)]
    #[cfg_attr(feature = "schema", schemars(with = "Option<String>"))]
    pub(super) think: Option<Spanned<String>>,
    /// What it says.
    #[serde(default)]
    #[cfg_attr(feature = "schema", schemars(with = "Option<String>"))]
    pub(super) say: Option<Spanned<String>>,
    /// What it wants done, all at once.
    #[serde(default, rename = "do")]
    #[cfg_attr(feature = "schema", schemars(with = "Vec<ActionFile>"))]
    pub(super) actions: Vec<Spanned<ActionFile>>,
    /// Why it stops; without it as its answer is: for tools, or at its end.
    #[serde(default)]
    pub(super) finish: Option<FinishFile>,
    /// What it costs.
    #[serde(default)]
    pub(super) usage: Option<UsageFile>,
    /// What goes wrong.
    #[serde(default)]
    pub(super) fault: Option<FaultFile>,
    /// How many requests it answers: a number, or `any`. One without it.
    #[serde(default)]
    pub(super) times: Option<Times>,
}

/// What may be asked of a request. All that is given must hold.
#[derive(Debug, Default, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub(super) struct ConditionFile {
    /// The user's last message contains this.
    #[serde(default)]
    pub(super) contains: Option<String>,
    /// The user's last message matches this regular expression.
    #[serde(default)]
    #[cfg_attr(feature = "schema", schemars(with = "Option<String>"))]
    pub(super) matches: Option<Spanned<String>>,
    /// The results of the last tool calls contain this.
    #[serde(default)]
    pub(super) result: Option<String>,
    /// The model's name contains this.
    #[serde(default)]
    pub(super) model: Option<String>,
    /// Whose request it is: `main`, `side`, `agent` for any sub-agent, `agent-2` for the second.
    #[serde(default)]
    #[cfg_attr(feature = "schema", schemars(with = "Option<String>"))]
    pub(super) lane: Option<Spanned<String>>,
    /// These tools are offered.
    #[serde(default)]
    pub(super) tools: Vec<String>,
}

/// Something to be done. The first four become calls of whatever tool the agent offers for it.
#[derive(Debug, Clone, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub(crate) enum ActionFile {
    /// A file is written.
    WriteFile(WriteFile),
    /// A text in a file is replaced.
    EditFile(EditFile),
    /// A file is read.
    ReadFile(String),
    /// A shell command is run.
    Run(String),
    /// This very tool is called.
    Tool(ToolFile),
}

#[derive(Debug, Clone, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub(crate) struct WriteFile {
    /// Where; below the agent's working directory if it is not absolute.
    pub(crate) path: String,
    /// What.
    pub(crate) content: String,
}

#[derive(Debug, Clone, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub(crate) struct EditFile {
    /// Where.
    pub(crate) path: String,
    /// What is replaced.
    pub(crate) find: String,
    /// By what.
    pub(crate) replace: String,
}

/// A tool by its name.
#[derive(Debug, Clone, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub(crate) struct ToolFile {
    /// Its name.
    pub(crate) name: String,
    /// Where codex looks for it: `mcp__SERVER`.
    #[serde(default)]
    pub(crate) namespace: Option<String>,
    /// What it is called with.
    #[serde(default)]
    pub(crate) arguments: Option<BTreeMap<String, serde_json::Value>>,
    /// The same, for a tool that takes free text.
    #[serde(default)]
    pub(crate) text: Option<String>,
}

#[derive(Debug, Clone, Copy, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub(super) enum FinishFile {
    /// It has said what it wanted.
    Stop,
    /// It may say no more.
    Length,
    /// It must not say it.
    Refused,
}

/// Tokens.
#[derive(Debug, Clone, Copy, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub(super) struct UsageFile {
    /// Read.
    #[serde(default)]
    pub(super) input: u64,
    /// Written.
    #[serde(default)]
    pub(super) output: u64,
    /// Read from a cache.
    #[serde(default)]
    pub(super) cache_read: u64,
    /// Kept in a cache.
    #[serde(default)]
    pub(super) cache_write: u64,
}

/// What goes wrong.
#[derive(Debug, Clone, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub(super) enum FaultFile {
    /// The vendor answers an error: 401, 429, 500, 529.
    Status(StatusFile),
    /// The connection ends after so many frames.
    Cut(usize),
    /// Nothing more comes after so many frames.
    HangAfter(usize),
    /// No answer at all.
    Hang,
    /// Nothing comes for a while.
    Stall(StallFile),
    /// The frame after so many is no JSON.
    Malformed(usize),
    /// The first frame takes so long.
    FirstToken(HumanDuration),
}

#[derive(Debug, Clone, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub(super) struct StatusFile {
    /// The HTTP status.
    #[cfg_attr(feature = "schema", schemars(range(min = 400, max = 599)))]
    #[cfg_attr(feature = "schema", schemars(with = "u16"))]
    pub(super) code: Spanned<u16>,
    /// After how long to ask again, as `7s` or `2m`; vendors tell it in whole seconds, and so does the stage.
    #[serde(default)]
    pub(super) retry_after: Option<HumanDuration>,
    /// Whether to ask again at all (`x-should-retry`).
    #[serde(default)]
    pub(super) retry: Option<bool>,
    /// In the vendor's words.
    #[serde(default)]
    pub(super) message: Option<String>,
}

#[derive(Debug, Clone, Copy, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub(super) struct StallFile {
    /// After so many frames.
    pub(super) after: usize,
    /// For so long.
    #[serde(rename = "for")]
    pub(super) time: HumanDuration,
}

/// How fast answers come.
#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub(super) enum SpeedFile {
    /// All at once.
    #[default]
    Instant,
    /// Like a model, by the seed.
    Profile(ProfileFile),
}

#[derive(Debug, Clone, Copy, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub(super) struct ProfileFile {
    /// Until the first frame.
    pub(super) first_token: HumanDuration,
    /// How many frames follow in a second.
    #[cfg_attr(feature = "schema", schemars(range(min = 0.1)))]
    pub(super) frames_per_second: f64,
    /// By how much of itself a pause may differ: 0 for none, 1 for up to double.
    #[serde(default)]
    #[cfg_attr(feature = "schema", schemars(range(min = 0.0, max = 1.0)))]
    pub(super) jitter: f64,
}

impl<'de> Deserialize<'de> for Times {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct TimesVisitor;
        impl Visitor<'_> for TimesVisitor {
            type Value = Times;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a number, or `any`")
            }
            fn visit_u64<E: de::Error>(self, number: u64) -> Result<Times, E> {
                Ok(Times::Exactly(number))
            }
            fn visit_i64<E: de::Error>(self, number: i64) -> Result<Times, E> {
                u64::try_from(number)
                    .map(Times::Exactly)
                    .map_err(|_| E::custom("a number of times is not negative"))
            }
            fn visit_str<E: de::Error>(self, text: &str) -> Result<Times, E> {
                match text {
                    "any" => Ok(Times::Any),
                    other => Err(E::custom(format!("`{other}`: expected a number, or `any`"))),
                }
            }
        }
        deserializer.deserialize_any(TimesVisitor)
    }
}

#[cfg(feature = "schema")]
impl schemars::JsonSchema for Times {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Times".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({ "oneOf": [{ "type": "integer", "minimum": 0 }, { "const": "any" }] })
    }
}

//! The script file: runs of actions.

use camino::Utf8Path;
use rehearsal_core::Place;
use rehearsal_core::yaml::{self, Spanned};
use serde::{Deserialize, Serialize};

use super::actions::Action;
use super::error::MockError;

pub(super) enum Script {
    /// The same at every call.
    Every(Vec<Action>),
    /// The n-th at the n-th call, and not one more.
    Each(Vec<Vec<Action>>),
}

/// A script for the stand-in agent, as people write it: one of `run` and `runs`.
#[derive(Debug, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", schemars(extend("oneOf" = [{ "required": ["run"] }, { "required": ["runs"] }])))]
pub struct ScriptFile {
    /// What is played at every call.
    #[serde(default)]
    #[cfg_attr(feature = "schema", schemars(with = "Vec<Action>"))]
    run: Option<Vec<Spanned<Action>>>,
    /// What is played at the first call, at the second, and so on; one call more is an error.
    #[serde(default)]
    #[cfg_attr(feature = "schema", schemars(with = "Vec<Vec<Action>>"))]
    runs: Option<Vec<Vec<Spanned<Action>>>>,
}

/// What is played at every call, as a script file has it.
#[derive(Debug, Serialize)]
pub struct RunScript<'a> {
    /// The actions, in order.
    pub run: &'a [Action],
}

impl Script {
    pub(super) fn read(path: &Utf8Path) -> Result<Self, MockError> {
        let text = fs_err::read_to_string(path)
            .map_err(|source| MockError::Io { what: "read the script".into(), source })?;
        Self::parse(&text).map_err(|(place, message)| MockError::Script {
            path: path.to_owned(),
            place,
            message,
        })
    }

    fn parse(text: &str) -> Result<Self, (Option<Place>, String)> {
        let file: ScriptFile = yaml::from_str(text).map_err(|error| (error.place, error.message))?;
        match (file.run, file.runs) {
            (Some(run), None) => Ok(Self::Every(checked(run)?)),
            (None, Some(runs)) => Ok(Self::Each(runs.into_iter().map(checked).collect::<Result<_, _>>()?)),
            _ => Err((
                None,
                "expected one of `run`, a list of actions, and `runs`, a list of such lists".into(),
            )),
        }
    }

    /// What is played at a call, counted from 1.
    pub(super) fn run(&self, call: u64, path: &Utf8Path, state: &Utf8Path) -> Result<&[Action], MockError> {
        match self {
            Self::Every(run) => Ok(run),
            Self::Each(runs) => {
                let at = usize::try_from(call - 1).unwrap_or(usize::MAX);
                runs.get(at).map(Vec::as_slice).ok_or_else(|| MockError::PastEnd {
                    path: path.to_owned(),
                    state: state.to_owned(),
                    runs: runs.len(),
                    call,
                })
            }
        }
    }
}

/// An action that can never be reached is a mistake.
pub fn checked(run: Vec<Spanned<Action>>) -> Result<Vec<Action>, (Option<Place>, String)> {
    let mut ended_by = None;
    for action in &run {
        if let Some(end) = ended_by {
            let message = format!("nothing after `{end}` is ever played: it ends the run");
            return Err((action.place, message));
        }
        ended_by = action.value.ends_run();
    }
    Ok(run.into_iter().map(|action| action.value).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error_of(text: &str) -> String {
        let Err((place, message)) = Script::parse(text) else { panic!("accepted: {text}") };
        format!("{}: {message}", place.map(|place| place.to_string()).unwrap_or_default())
    }

    #[test]
    fn a_mistake_is_shown_with_its_place_and_what_was_expected() {
        let error = error_of("run:\n  - say: hi\n  - wirte: { path: a }\n");
        assert!(error.starts_with("3:5: unknown variant `wirte`, expected one of say, write, "), "{error}");
        assert_eq!(error_of("run:\n  - write: { path: a.txt }\n"), "2:14: missing field `content`");
        let error = error_of("run:\n  - patch: { path: a, find: b, with: c }\n");
        assert!(
            error.starts_with("2:32: unknown field `with`, expected one of path, find, replace"),
            "{error}"
        );
        let error = error_of("run:\n  - sleep: soon\n");
        assert!(error.ends_with("expected a duration like `300ms`, `2s`, `5m` or `1h`"), "{error}");
        assert!(error.starts_with("2:"), "{error}");
    }

    #[test]
    fn what_can_never_be_played_is_a_mistake() {
        assert_eq!(
            error_of("runs:\n  - - hang\n    - say: still here?\n"),
            "3:7: nothing after `hang` is ever played: it ends the run"
        );
    }

    #[test]
    fn a_script_has_a_run_or_runs() {
        let expected = ": expected one of `run`, a list of actions, and `runs`, a list of such lists";
        assert_eq!(error_of("{}"), expected);
        assert_eq!(error_of("run: []\nruns: []"), expected);
    }

    proptest::proptest! {
        #[test]
        fn no_text_panics(text in "(runs?:|\n|  - |say|crash|sleep|: |\\{|\\}|\\[|hang|1h|é|.){0,20}") {
            let _ = Script::parse(&text);
        }
    }

    const SCHEMA: &str = include_str!("../../../../schemas/mock-script.json");

    /// What an editor would report for a script.
    fn wrong_by_schema(text: &str) -> Vec<String> {
        let script: serde_json::Value = rehearsal_core::yaml::from_str(text).unwrap();
        let schema = serde_json::from_str(SCHEMA).unwrap();
        let (mut compiler, mut schemas) = (boon::Compiler::new(), boon::Schemas::new());
        compiler.add_resource("script", schema).unwrap();
        let root = compiler.compile("script", &mut schemas).unwrap();
        schemas.validate(&script, root).err().map(|error| error.to_string()).into_iter().collect()
    }

    #[test]
    fn the_schema_has_every_action() {
        assert_eq!(wrong_by_schema(include_str!("every_action.yaml")), Vec::<String>::new());
        let Script::Each(runs) = Script::parse(include_str!("every_action.yaml")).unwrap() else {
            panic!("it has `runs`");
        };
        for action in runs.iter().flatten().map(Action::name) {
            assert!(SCHEMA.contains(&format!("\"{action}\"")), "`{action}` is not in the schema");
        }
    }

    #[test]
    fn what_cannot_be_played_is_wrong_by_the_schema() {
        for wrong in [
            "run: [{ wirte: { path: a, content: b } }]",
            "run: [{ write: { path: a } }]",
            "run: [{ write: { path: a, content: b, mode: 1 } }]",
            "run: [{ sleep: soon }]",
            "run: [{ sleep: -1 }]",
            "run: [{ error: { kind: tired } }]",
            "run: [{ tool: { name: Read, end: maybe } }]",
            "run: [hangs]",
            "run: [{ crash: { signal: usr1 } }]",
            "run: [{ spawn_child: { detached: true } }]",
            "runs: [say: hi]",
            "rnu: []",
            "{}",
            "{ run: [], runs: [] }",
        ] {
            assert!(Script::parse(wrong).is_err(), "the parser takes {wrong}");
            assert_ne!(wrong_by_schema(wrong), Vec::<String>::new(), "the schema takes {wrong}");
        }
    }

    #[test]
    fn every_action_can_be_written() {
        let text = include_str!("every_action.yaml");
        let Script::Each(runs) = Script::parse(text).unwrap() else { panic!("it has `runs`") };
        let written: std::collections::BTreeSet<&str> = runs.iter().flatten().map(Action::name).collect();
        assert_eq!(written.len(), Action::COUNT, "{written:?}");
    }
}

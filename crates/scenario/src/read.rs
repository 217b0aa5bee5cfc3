//! Reads scenarios from YAML and checks them.

use std::collections::BTreeSet;

use rehearsal_core::config::{Layer, Origin};
use rehearsal_core::flow::{self, Flow, Step};
use rehearsal_core::{Place, SourceError, StateName, Task, TaskId, nearest, yaml};

use crate::rehearsal::Flows;
use crate::scenario::{Act, Deed, Scenario};

/// Reads the scenarios of a file: one, or several with `---` between them.
pub fn parse(text: &str) -> Result<Vec<Scenario>, SourceError> {
    let scenarios: Vec<Scenario> = yaml::read_multiple(text)?.iter().map(read).collect::<Result<_, _>>()?;
    if scenarios.is_empty() {
        return Err(SourceError::at(None, "there is no scenario in this file"));
    }
    let mut names = BTreeSet::new();
    for scenario in &scenarios {
        check(scenario)?;
        if !names.insert(&scenario.name.value) {
            let message = format!("scenario `{}` is there twice", scenario.name.value);
            return Err(SourceError::at(scenario.name.place, message));
        }
    }
    Ok(scenarios)
}

fn read(document: &yaml::Node) -> Result<Scenario, SourceError> {
    let mut scenario: Scenario = document.to()?;
    if let Some(config) = document.get("config") {
        scenario.config = Layer::of(config.clone(), Origin::file("the scenario"))?;
    }
    Ok(scenario)
}

fn check(scenario: &Scenario) -> Result<(), SourceError> {
    let name = &scenario.name;
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    if name.value.is_empty() || name.value.len() > 80 || !name.value.chars().all(is_plain) {
        let message = format!("`{}` is not a name for a scenario", name.value);
        return Err(SourceError::at(name.place, message)
            .hint("up to 80 letters, digits, `-`, `_` and `.`: it names a directory"));
    }
    if scenario.workers == 0 || scenario.workers > 64 {
        return Err(SourceError::at(name.place, "`workers` must be between 1 and 64"));
    }
    let tasks = task_ids(scenario)?;
    for act in &scenario.meanwhile {
        check_act(act, &tasks)?;
    }
    for (task, _) in &scenario.expect.tasks.0 {
        known(&task.value, &tasks, task.place)?;
    }
    for (agent, role) in &scenario.agents {
        for (at, call) in role.0.calls.iter().enumerate() {
            let wrong = |what: String| {
                SourceError::at(name.place, format!("call {} of agent `{agent}` {what}", at + 1))
            };
            if let Some(task) = &call.task {
                known(task, &tasks, name.place)?;
            }
            if call.script.is_some() && call.has_shorthand() {
                return Err(wrong("has a `script`, and more beside it".into())
                    .hint("say all of it in the script, or nothing"));
            }
        }
    }
    Ok(())
}

/// The ids of the tasks, written or generated.
pub(crate) fn task_ids(scenario: &Scenario) -> Result<Vec<TaskId>, SourceError> {
    let mut ids = Vec::new();
    for (at, task) in scenario.tasks.iter().enumerate() {
        let id = match &task.value.id {
            Some(id) => id.clone(),
            None => TaskId::new(format!("t{}", at + 1))
                .map_err(|error| SourceError::at(task.place, error.to_string()))?,
        };
        if ids.contains(&id) {
            return Err(SourceError::at(task.place, format!("task `{id}` is there twice")));
        }
        if task.value.title.trim().is_empty() {
            return Err(SourceError::at(task.place, "a task needs a `title`"));
        }
        ids.push(id);
    }
    if ids.is_empty() {
        return Err(SourceError::at(scenario.name.place, "a scenario needs at least one task"));
    }
    Ok(ids)
}

fn check_act(act: &yaml::Spanned<Act>, tasks: &[TaskId]) -> Result<(), SourceError> {
    let place = act.place;
    if act.value.at.is_some() == act.value.when.is_some() {
        return Err(SourceError::at(place, "expected exactly one of `at` and `when`")
            .hint("`at: 10s` after the beginning, or `when: { moment: run_started, task: ID }`"));
    }
    if let Some(when) = &act.value.when {
        if let Some(task) = &when.task {
            known(task, tasks, place)?;
        }
        if let Some(step) = &when.step
            && !Step::names().any(|name| name == step)
        {
            let error = SourceError::at(place, format!("unknown step `{step}`"));
            return Err(match nearest(step, Step::names()) {
                Some(near) => error.hint(format!("did you mean `{near}`?")),
                None => error.hint(format!("known steps: {}", Step::names().collect::<Vec<_>>().join(", "))),
            });
        }
    }
    match &act.value.what {
        Deed::KillWorker(kill) if kill.worker.is_none() && act.value.at.is_some() => {
            Err(SourceError::at(place, "which worker is to be killed?").hint("add `worker: 1`"))
        }
        Deed::PauseWorker(pause) if pause.worker.is_none() && act.value.at.is_some() => {
            Err(SourceError::at(place, "which worker is to be paused?").hint("add `worker: 1`"))
        }
        Deed::Cancel(task) | Deed::Approve(task) | Deed::Retry(task) | Deed::Unblock(task) => {
            known(task, tasks, place)
        }
        Deed::Reject(rejection) => known(&rejection.task, tasks, place),
        Deed::Edit(edit) => known(&edit.task, tasks, place),
        _ => Ok(()),
    }
}

fn known(task: &TaskId, tasks: &[TaskId], place: Option<Place>) -> Result<(), SourceError> {
    if tasks.contains(task) {
        return Ok(());
    }
    let error = SourceError::at(place, format!("there is no task `{task}` in this scenario"));
    Err(match nearest(task.as_str(), tasks.iter().map(TaskId::as_str)) {
        Some(near) => error.hint(format!("did you mean `{near}`?")),
        None => error,
    })
}

/// Every expected status must be possible in the task's flow.
pub(crate) fn check_statuses(scenario: &Scenario, flows: &Flows) -> Result<(), SourceError> {
    let ids = task_ids(scenario)?;
    for (id, expected) in &scenario.expect.tasks.0 {
        let Some(status) = &expected.status else { continue };
        let own = ids.iter().zip(&scenario.tasks).find(|(known, _)| **known == id.value);
        let flow = own.map_or(&flows.usual, |(_, task)| flows.of(&task.value));
        let states: Vec<&str> = flow.states.keys().map(StateName::as_str).collect();
        let words = Task::STATUSES.into_iter().filter(|word| !states.contains(word));
        let known: Vec<&str> = states.iter().copied().chain(words).collect();
        if known.contains(&status.value.as_str()) {
            continue;
        }
        let told = format!("no task of flow `{}` has the status `{}`", flow.name, status.value);
        let error = SourceError::at(status.place, told);
        return Err(match nearest(&status.value, known.iter().copied()) {
            Some(near) => error.hint(format!("did you mean `{near}`?")),
            None => error.hint(format!("there are {}", known.join(", "))),
        });
    }
    Ok(())
}

pub(crate) fn inline_flow(scenario: &Scenario) -> Option<Result<Flow, SourceError>> {
    let text = &scenario.flow.value;
    text.contains('\n').then(|| {
        flow::parse(text).map_err(|error| {
            let place = scenario.flow.place;
            let told =
                error.place.map_or_else(String::new, |place| format!(" (line {} of the flow)", place.line));
            SourceError { message: format!("{}{told}", error.message), place, hint: error.hint }
        })
    })
}

//! What a loop may spend, and what it knows about what it spent.

use std::sync::Arc;

use rehearsal_agent::{ScriptedAgent, ScriptedRun};
use rehearsal_core::{Budget, NewTask, Outcome, Tokens};
use rehearsal_engine::WorkEnd;

use crate::stage::{play, titled};

#[test]
fn the_cost_limit_ends_the_loop_and_each_run_gets_what_is_left() {
    play(async |stage| {
        stage.max_cost = Some(1.0);
        stage.tasks(&["parse"]).await;
        let agent = Arc::new(ScriptedAgent::new().with_handler(|_| ScriptedRun::done("more").cost(0.375)));
        let summary = stage.run(&agent).await;
        assert_eq!(summary.end, WorkEnd::BudgetReached { spent_usd: 1.125 });
        assert_eq!(summary.cost_usd, Some(1.125));
        let left: Vec<Option<f64>> = agent.calls().iter().map(|call| call.budget.usd).collect();
        assert_eq!(left, [Some(1.0), Some(0.625), Some(0.25)]);
    });
}

#[test]
fn the_tightest_budget_holds() {
    play(async |stage| {
        stage.options.iterations = 2;
        stage.max_cost = Some(1.0);
        stage.profile.budget = Budget { usd: Some(0.75), tokens: Some(1_000), turns: None };
        let own = Budget { usd: Some(0.5), tokens: Some(2_000), turns: Some(7) };
        stage.add("parse", NewTask { budget: own, ..titled("parse") }).await;
        let agent = Arc::new(ScriptedAgent::new().with_handler(|_| ScriptedRun::done("more").cost(0.25)));
        stage.run(&agent).await;
        let budgets: Vec<Budget> = agent.calls().iter().map(|call| call.budget).collect();
        let tight = |usd| Budget { usd: Some(usd), tokens: Some(1_000), turns: Some(7) };
        assert_eq!(budgets, [tight(0.5), tight(0.25)]);
    });
}

#[test]
fn a_run_that_uses_up_what_was_left_ends_the_loop() {
    play(async |stage| {
        stage.max_cost = Some(1.0);
        stage.tasks(&["parse"]).await;
        let reached = Outcome::BudgetReached { reason: "the agent's own budget limit was reached".into() };
        let agent = Arc::new(
            ScriptedAgent::new()
                .then(ScriptedRun::done("half").cost(0.5))
                .then(ScriptedRun::done("").outcome(reached).cost(0.46875)),
        );
        let summary = stage.run(&agent).await;
        assert_eq!(summary.end, WorkEnd::BudgetReached { spent_usd: 0.96875 });
        agent.assert_call_count(2);
    });
}

#[test]
fn a_task_that_has_used_up_its_own_budget_is_left_and_the_others_go_on() {
    play(async |stage| {
        stage.max_cost = Some(1.0);
        let own = Budget { usd: Some(0.25), ..Budget::default() };
        stage.add("parse", NewTask { budget: own, ..titled("parse") }).await;
        stage.tasks(&["print"]).await;
        let reached = Outcome::BudgetReached { reason: "the agent's own budget limit was reached".into() };
        let agent = Arc::new(
            ScriptedAgent::new()
                .then(ScriptedRun::done("").outcome(reached).cost(0.25))
                .then(ScriptedRun::done("").cost(0.25).task_done("print")),
        );
        let waiting = vec!["parse parse: the agent's own budget limit was reached".to_owned()];
        assert_eq!(stage.run(&agent).await.end, WorkEnd::NeedsHuman { waiting });
        agent.assert_all_played();
    });
}

#[test]
fn what_the_loop_may_spend_is_not_the_tasks_fault() {
    play(async |stage| {
        stage.max_cost = Some(1.0);
        stage.tasks(&["parse"]).await;
        let reached = Outcome::BudgetReached { reason: "the agent's own budget limit was reached".into() };
        let agent = Arc::new(ScriptedAgent::new().then(ScriptedRun::done("").outcome(reached).cost(1.0)));
        stage.run(&agent).await;
        assert_eq!(stage.task("parse").await.attempts, 0);
    });
}

#[test]
fn a_cost_that_is_not_told_is_not_zero() {
    play(async |stage| {
        stage.max_cost = Some(1.0);
        stage.tasks(&["parse"]).await;
        let tokens = Tokens { input: 10, output: 5, ..Tokens::default() };
        let agent = Arc::new(
            ScriptedAgent::new()
                .then(ScriptedRun::done("half").tokens(tokens))
                .then(ScriptedRun::done("half").cost(0.25))
                .then(ScriptedRun::done("done").tokens(tokens).task_done("parse")),
        );
        let summary = stage.run(&agent).await;
        assert_eq!(summary.end, WorkEnd::AllDone);
        assert_eq!((summary.cost_usd, summary.runs_without_cost), (Some(0.25), 2));
        assert_eq!(summary.tokens.map(|tokens| (tokens.input, tokens.output)), Some((20, 10)));
        assert_eq!(
            stage.warnings().await,
            ["cost_unknown limit_usd=1.0 run=#1", "cost_unknown limit_usd=1.0 run=#3",]
        );
        let costs: Vec<Option<f64>> =
            stage.runs().await.iter().map(|run| run.end.as_ref().unwrap().cost_usd).collect();
        assert_eq!(costs, [None, Some(0.25), None]);
    });
}

#[test]
fn a_loop_whose_runs_tell_no_cost_has_none() {
    play(async |stage| {
        stage.tasks(&["parse"]).await;
        let agent = Arc::new(ScriptedAgent::new().then(ScriptedRun::done("done").task_done("parse")));
        let summary = stage.run(&agent).await;
        assert_eq!((summary.cost_usd, summary.runs_without_cost, summary.tokens), (None, 1, None));
        assert_eq!(
            stage.warnings().await,
            Vec::<String>::new(),
            "without a limit there is nothing to warn of"
        );
    });
}

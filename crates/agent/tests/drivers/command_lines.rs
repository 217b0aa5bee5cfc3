//! The command lines that are run.

use std::collections::BTreeMap;

use insta::assert_snapshot;
use rehearsal_agent::clis::KNOWN;
use rehearsal_agent::driver::{Capabilities, Program};
use rehearsal_agent::{CommandLine, CrewOrder, Driver, Permission, RunRequest};
use rehearsal_core::{Budget, Notice, RunId, TaskId};

fn request(permission: Permission) -> RunRequest {
    RunRequest {
        run: RunId::new("r1").unwrap(),
        task: TaskId::new("t1").unwrap(),
        prompt: "Do it.".to_owned(),
        working_dir: "/repo".into(),
        run_dir: "/runs/r1".into(),
        model: None,
        system_prompt: None,
        permission,
        allow: Vec::new(),
        timeout: None,
        idle_timeout: None,
        calls: rehearsal_agent::CallLimits::default(),
        budget: Budget::default(),
        env_grants: vec![],
        env: BTreeMap::new(),
        resume: None,
        lease: None,
        rendezvous: None,
    }
}

fn full(permission: Permission) -> RunRequest {
    RunRequest {
        model: Some("big".to_owned()),
        system_prompt: Some("Be brief.".to_owned()),
        budget: Budget { usd: Some(1.5), tokens: Some(1000), turns: Some(7) },
        resume: Some("s-1".to_owned()),
        ..request(permission)
    }
}

fn quoted(arg: &String) -> String {
    if arg.contains(' ') || arg.is_empty() { format!("'{arg}'") } else { arg.clone() }
}

fn shown(line: &CommandLine) -> String {
    let mut words: Vec<String> = line.env.iter().map(|(name, value)| format!("{name}={value}")).collect();
    words.push(line.program.clone());
    words.extend(line.args.iter().map(quoted));
    let mut lines = vec![format!("{} <<< {:?}", words.join(" "), line.stdin)];
    lines.extend(line.warnings.iter().map(|warning| format!("warning: {warning}")));
    lines.join("\n")
}

fn driver(cli: &str, program: impl Into<Program>) -> Driver {
    Driver::new(KNOWN.named(cli).unwrap(), program)
}

fn claude_run_by_root(is_root: bool) -> Driver {
    driver("claude", Program::from("claude").run_by_root(is_root))
}

#[test]
fn claude() {
    let driver = claude_run_by_root(false);
    assert_snapshot!(shown(&driver.command(&request(Permission::Plan))), @r#"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1 DISABLE_AUTOUPDATER=1 DISABLE_ERROR_REPORTING=1 DISABLE_TELEMETRY=1 claude --print --output-format stream-json --verbose --permission-mode plan --setting-sources '' --disable-slash-commands <<< "Do it.""#);
    assert_snapshot!(shown(&driver.command(&full(Permission::AcceptEdits))), @r#"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1 DISABLE_AUTOUPDATER=1 DISABLE_ERROR_REPORTING=1 DISABLE_TELEMETRY=1 claude --print --output-format stream-json --verbose --permission-mode acceptEdits --add-dir /runs/r1 --setting-sources '' --disable-slash-commands --model big --append-system-prompt 'Be brief.' --max-budget-usd 1.5 --max-turns 7 --resume s-1 <<< "Do it.""#);
}

#[test]
fn claude_skips_permissions_only_when_trusted_and_for_root_says_that_it_may() {
    let trusted = |is_root| claude_run_by_root(is_root).command(&request(Permission::Trust));
    assert!(trusted(false).args.contains(&"--dangerously-skip-permissions".to_owned()));
    assert_eq!(trusted(false).env.get("IS_SANDBOX"), None);
    assert_eq!(trusted(true).env.get("IS_SANDBOX").map(String::as_str), Some("1"));
    for permission in [Permission::Plan, Permission::AcceptEdits] {
        let line = claude_run_by_root(true).command(&request(permission));
        assert!(!line.args.contains(&"--dangerously-skip-permissions".to_owned()));
        assert_eq!(line.env.get("IS_SANDBOX"), None);
    }
}

#[test]
fn a_flag_that_the_program_lacks_is_left_out_and_reported() {
    let help = "Options:\n  -p, --print  P\n  --output-format <f>  F\n  --verbose  V\n  --permission-mode <m>  M\n  --model <m>  M\n  --setting-sources <s>  S\n  --disable-slash-commands  D\n  --resume [id]  R\n  --append-system-prompt <p>  A\n  --add-dir <d>  D\n";
    let old = Capabilities::parse(help, "1.0.3 (Claude Code)");
    let line = driver("claude", Program::from("claude").with_capabilities(old))
        .command(&full(Permission::AcceptEdits));
    assert!(!line.args.contains(&"--max-budget-usd".to_owned()));
    assert!(line.args.contains(&"--max-turns".to_owned()), "it is hidden from the help, and works");
    let notice = Notice::FlagMissing {
        program: "claude".into(),
        version: Some("1.0.3".into()),
        flag: "--max-budget-usd".into(),
        feature: "the cost limit".into(),
    };
    assert_eq!(line.warnings, [notice]);
}

#[test]
fn codex() {
    let driver = driver("codex", "codex");
    assert_snapshot!(shown(&driver.command(&request(Permission::Plan))), @r#"codex exec --json --sandbox read-only --disable plugins --disable unbounded_connection_retries --config analytics.enabled=false --config check_for_update_on_startup=false - <<< "Do it.""#);
    assert_snapshot!(shown(&driver.command(&request(Permission::Trust))), @r#"codex exec --json --dangerously-bypass-approvals-and-sandbox --disable plugins --disable unbounded_connection_retries --config analytics.enabled=false --config check_for_update_on_startup=false - <<< "Do it.""#);
    assert_snapshot!(shown(&driver.command(&full(Permission::AcceptEdits))), @r#"
    codex exec resume s-1 --json --config sandbox_workspace_write.writable_roots=["/runs/r1"] --config sandbox_mode="workspace-write" --disable plugins --disable unbounded_connection_retries --config analytics.enabled=false --config check_for_update_on_startup=false --model big - <<< "Be brief.\n\nDo it."
    warning: unsupported feature=cost_limit program=codex
    warning: unsupported feature=turn_limit program=codex
    warning: unsupported feature=tokens_meanwhile program=codex
    "#);
}

#[test]
fn gemini() {
    let driver = driver("gemini", "gemini");
    assert_snapshot!(shown(&driver.command(&request(Permission::Trust))), @r#"GEMINI_CLI_NO_RELAUNCH=1 GEMINI_CLI_TRUST_WORKSPACE=true gemini --output-format stream-json --approval-mode yolo <<< "Do it.""#);
    assert_snapshot!(shown(&driver.command(&full(Permission::AcceptEdits))), @r#"
    GEMINI_CLI_NO_RELAUNCH=1 GEMINI_CLI_TRUST_WORKSPACE=true gemini --output-format stream-json --approval-mode auto_edit --include-directories /runs/r1 --model big --resume s-1 <<< "Be brief.\n\nDo it."
    warning: unsupported feature=cost_limit program=gemini
    warning: unsupported feature=turn_limit program=gemini
    warning: unsupported feature=tokens_meanwhile program=gemini
    "#);
}

#[test]
fn opencode() {
    let driver = driver("opencode", "opencode");
    assert_snapshot!(shown(&driver.command(&request(Permission::Plan))), @r#"OPENCODE_DISABLE_AUTOUPDATE=1 OPENCODE_DISABLE_LSP_DOWNLOAD=1 OPENCODE_DISABLE_SHARE=1 opencode run --format json --agent plan --title 'rehearsal r1' --print-logs --log-level ERROR <<< "Do it.""#);
    assert_snapshot!(shown(&driver.command(&full(Permission::Trust))), @r#"
    OPENCODE_DISABLE_AUTOUPDATE=1 OPENCODE_DISABLE_LSP_DOWNLOAD=1 OPENCODE_DISABLE_SHARE=1 opencode run --format json --auto --model big --session s-1 --title 'rehearsal r1' --print-logs --log-level ERROR <<< "Be brief.\n\nDo it."
    warning: unsupported feature=turn_limit program=opencode
    "#);
}

#[test]
fn crew() {
    let default = driver("crew", Program::from("rehearsal").with_args(CrewOrder::default().arguments()));
    assert_snapshot!(shown(&default.command(&request(Permission::Plan))), @r#"rehearsal crew run --json --role code --read-only <<< "Do it.""#);
    let timeout = Some(std::time::Duration::from_mins(90));
    let order = CrewOrder { role: "qa".to_owned(), agents_dir: Some("/p/agents".into()), timeout };
    let driver = driver("crew", Program::from("rehearsal").with_args(order.arguments()));
    assert_snapshot!(shown(&driver.command(&full(Permission::Trust))), @r#"
    rehearsal crew run --json --role qa --agents-dir /p/agents --timeout 1h30m --model big --max-turns 7 --max-tokens 1000 --append-system-prompt 'Be brief.' <<< "Do it."
    warning: unsupported feature=resume program=rehearsal
    warning: unsupported feature=cost_limit program=rehearsal
    "#);
}

#[test]
fn any_program_gets_the_prompt_and_says_what_it_cannot_do() {
    let driver = driver("command", Program::from("./agent.sh").with_args(vec!["--fast".to_owned()]));
    assert_snapshot!(shown(&driver.command(&request(Permission::AcceptEdits))), @r#"./agent.sh --fast <<< "Do it.""#);
    assert_snapshot!(shown(&driver.command(&full(Permission::Plan))), @r#"
    ./agent.sh --fast <<< "Be brief.\n\nDo it."
    warning: unsupported feature=model program=./agent.sh
    warning: unsupported feature=resume program=./agent.sh
    warning: unsupported feature=read_only program=./agent.sh
    warning: unsupported feature=cost_limit program=./agent.sh
    warning: unsupported feature=token_limit program=./agent.sh
    warning: unsupported feature=turn_limit program=./agent.sh
    "#);
}

#[test]
fn the_users_own_arguments_come_first_and_the_prompt_never_on_the_line() {
    let secret = RunRequest { prompt: "the secret plan".to_owned(), ..request(Permission::AcceptEdits) };
    let own = vec!["--oss".to_owned()];
    for name in KNOWN.foreign() {
        let driver = driver(name, Program::from(name).with_args(own.clone()));
        let line = driver.command(&secret);
        assert_eq!(line.args[0], "--oss", "{name}");
        assert!(!line.args.iter().any(|arg| arg.contains("secret")));
        assert_eq!(line.stdin, "the secret plan");
    }
}

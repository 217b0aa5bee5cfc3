//! What good tests need keeps working.

use crate::support::Box;

#[test]
fn a_command_runs_and_its_output_is_seen() {
    let sandbox = Box::new().prepare();
    eprintln!("{:#?}", sandbox.report());
    let run = sandbox.shell("echo hello; id; pwd; ls -la / /dev ~ /tmp; cat /proc/self/mountinfo; exit 3");
    eprintln!("{}", run.output);
    assert_eq!(run.code(), Some(3));
}

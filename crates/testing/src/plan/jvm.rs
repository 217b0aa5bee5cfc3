//! Maven and Gradle.

use camino::Utf8PathBuf;

use super::{PlannedFile, Planner, ReportFiles, RunPlan};

pub(super) fn maven(planner: &Planner<'_>) -> RunPlan {
    let mut plan = start(planner, "mvnw", "mvn");
    plan.args(["--batch-mode", "--offline", "--fail-at-end", "test"]);
    plan.args(["-DtrimStackTrace=false", "-Dstyle.color=never"]);
    if let Some(count) = planner.wish.parallel {
        plan.arg(format!("-T{count}"));
    }
    let selection = planner.selection();
    let (files, names) = selection.wanted(&planner.root);
    let of_files =
        files.iter().filter_map(|file| file.text().rsplit('/').next()?.split('.').next().map(str::to_owned));
    // A test of an earlier run is named `package.Class.method`.
    let of_tests = selection.tests.iter().filter_map(|test| {
        let (class, method) = test.name.rsplit_once('.')?;
        Some(format!("{class}#{}", method.split(['(', '[']).next().unwrap_or(method)))
    });
    let of_names = names
        .iter()
        .map(|name| if name.has_wildcard() { name.text().to_owned() } else { format!("*{}*", name.text()) });
    let unwanted = selection.exclude.iter().map(|name| format!("!{}", name.text()));
    let wanted: Vec<String> = of_files.chain(of_names).chain(of_tests).chain(unwanted).collect();
    if !wanted.is_empty() {
        plan.arg(format!("-Dtest={}", wanted.join(",")));
        plan.args(["-DfailIfNoTests=false", "-Dsurefire.failIfNoSpecifiedTests=false"]);
    }
    let below = planner.root.clone();
    plan.reports.push(ReportFiles { path: below, glob: Some("**/surefire-reports/TEST-*.xml".to_owned()) });
    plan.writable = build_directories(planner, "target");
    planner.no_coverage(&mut plan, "Maven");
    plan
}

pub(super) fn gradle(planner: &Planner<'_>) -> RunPlan {
    let mut plan = start(planner, "gradlew", "gradle");
    // A daemon would outlive the run.
    plan.args(["test", "--continue", "--console=plain", "--no-daemon", "--offline"]);
    if let Some(count) = planner.wish.parallel {
        plan.arg(format!("--max-workers={count}"));
    }
    let selection = planner.selection();
    for test in &selection.tests {
        plan.args(["--tests", test.name.split(['(', '[']).next().unwrap_or(&test.name)]);
    }
    let (files, names) = selection.wanted(&planner.root);
    for file in files {
        let class =
            file.text().rsplit('/').next().and_then(|name| name.split('.').next()).unwrap_or_default();
        plan.args(["--tests".to_owned(), format!("*{class}")]);
    }
    for name in names {
        let shape = if name.has_wildcard() { name.text().to_owned() } else { format!("*{}*", name.text()) };
        plan.args(["--tests".to_owned(), shape]);
    }
    if !selection.exclude.is_empty() {
        plan.note("Gradle cannot leave tests out from the command line: the excluded ones are run too");
    }
    let (script, results) = (planner.scratch("results.init.gradle"), planner.scratch("gradle"));
    plan.args(["--init-script", script.as_str()]);
    plan.files.push(PlannedFile { path: script, content: results_into(&results) });
    plan.reports.push(ReportFiles { path: results, glob: Some("**/*.xml".to_owned()) });
    plan.writable.extend(planner.machine.cache("GRADLE_USER_HOME", ".gradle"));
    planner.no_coverage(&mut plan, "Gradle");
    plan
}

/// Makes every test task run though nothing has changed, and write its results into a directory of ours: old ones are
/// never taken for new.
fn results_into(directory: &camino::Utf8Path) -> String {
    format!(
        "allprojects {{ tasks.withType(Test) {{ task ->\n  \
         outputs.upToDateWhen {{ false }}\n  outputs.cacheIf {{ false }}\n  \
         def into = new File('{directory}', task.path.replace(':', '_'))\n  \
         if (reports.junitXml.hasProperty('outputLocation')) {{ reports.junitXml.outputLocation.set(into) }}\n  \
         else {{ reports.junitXml.destination = into }}\n}} }}\n"
    )
}

/// The project's wrapper, else the machine's program.
pub(crate) fn start(planner: &Planner<'_>, wrapper: &str, program: &str) -> RunPlan {
    let wrapper = planner.find(&format!("./{wrapper}"));
    let found = wrapper.or_else(|| planner.find(program));
    let mut plan = planner.start(found, program);
    plan.note("runs offline: what is not in the local repository is not fetched");
    plan
}

fn build_directories(planner: &Planner<'_>, name: &str) -> Vec<Utf8PathBuf> {
    let modules = planner.targets().iter().map(|module| planner.root.join(module));
    std::iter::once(planner.root.clone()).chain(modules).map(|directory| directory.join(name)).collect()
}

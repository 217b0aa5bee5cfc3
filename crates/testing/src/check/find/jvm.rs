//! Maven and Gradle.

use super::{Finder, Stage};
use crate::plan::jvm_start;

const GRADLE: [&str; 4] = ["settings.gradle", "settings.gradle.kts", "build.gradle", "build.gradle.kts"];

pub(super) fn find(finder: &mut Finder<'_>) {
    let maven = finder.outermost(&["pom.xml"]);
    for (root, file) in &maven {
        finder.add(Stage::Build, "maven", "maven", (root, file), |planner| {
            let mut plan = jvm_start(planner, "mvnw", "mvn");
            plan.args(["--batch-mode", "--offline", "--quiet", "-Dstyle.color=never", "compile"]);
            plan
        });
    }
    for (root, file) in finder.outermost(&GRADLE) {
        if maven.iter().any(|(other, _)| *other == root) {
            continue;
        }
        finder.add(Stage::Build, "gradle", "gradle", (&root, file), |planner| {
            let mut plan = jvm_start(planner, "gradlew", "gradle");
            // A daemon would outlive the check.
            plan.args(["classes", "--console=plain", "--no-daemon", "--offline", "--continue"]);
            plan.writable.extend(planner.machine.cache("GRADLE_USER_HOME", ".gradle"));
            plan
        });
    }
}

//! The command that runs the failed tests again, as someone would type it.

use crate::analyse::failed;
use crate::{Framework, TestCase, TestReport};

/// A longer command is not typed again, nor read: then whole files are run.
const LONGEST: usize = 240;

/// The shortest command that runs what failed, if there is one for the runner.
pub(crate) fn rerun_command(report: &TestReport) -> Option<String> {
    let tests: Vec<&TestCase> = report.tests.iter().filter(|test| failed(test.status)).collect();
    if tests.is_empty() {
        return None;
    }
    let by_name = by_name(report.framework, &tests).filter(|words| shell(words).len() <= LONGEST);
    let words = by_name.or_else(|| by_file(report.framework, &tests))?;
    Some(shell(&words)).filter(|command| command.len() <= LONGEST)
}

fn by_name(framework: Framework, tests: &[&TestCase]) -> Option<Vec<String>> {
    let names = || each(tests.iter().map(|test| test.name.as_str()));
    let command = |start: &[&str], rest: Vec<String>| [words(start), rest].concat();
    Some(match framework {
        Framework::Go => {
            let tops = each(tests.iter().map(|test| test.name.split('/').next().unwrap_or_default()));
            command(&["go", "test"], vec!["-run".to_owned(), whole(&tops)])
                .into_iter()
                .chain(packages(tests))
                .collect()
        }
        Framework::Pytest => command(&["pytest"], names()),
        Framework::Unittest => command(&["python3", "-m", "unittest"], names()),
        Framework::CargoTest => command(&["cargo", "test", "--", "--exact"], names()),
        Framework::Nextest => {
            let exact: Vec<String> = names().iter().map(|name| format!("test(={name})")).collect();
            command(&["cargo", "nextest", "run", "-E"], vec![exact.join(" + ")])
        }
        Framework::Jest => command(&["npx", "jest", "-t"], [vec![any(&names())], files(tests)].concat()),
        Framework::Vitest => {
            command(&["npx", "vitest", "run", "-t"], [vec![any(&names())], files(tests)].concat())
        }
        Framework::Mocha => command(&["npx", "mocha", "-g"], vec![any(&names())]),
        Framework::NodeTest => command(
            &["node", "--test"],
            [vec![format!("--test-name-pattern={}", any(&names()))], files(tests)].concat(),
        ),
        Framework::Bun => command(&["bun", "test", "-t"], vec![any(&names())]),
        Framework::Deno => command(&["deno", "test", "--filter"], vec![format!("/{}/", any(&names()))]),
        Framework::Rspec => {
            command(&["rspec"], names().into_iter().flat_map(|name| ["-e".to_owned(), name]).collect())
        }
        Framework::Phpunit => {
            command(&["phpunit", "--filter"], vec![any(&without_parameters(&names(), " with data set"))])
        }
        Framework::Maven => {
            command(&["mvn", "test"], vec![format!("-Dtest={}", java_methods(&names()).join(","))])
        }
        Framework::Gradle => {
            let names = without_parameters(&names(), "(");
            command(
                &["./gradlew", "test"],
                names.into_iter().flat_map(|name| ["--tests".to_owned(), name]).collect(),
            )
        }
        Framework::Dotnet => {
            let names = without_parameters(&names(), "(");
            let filters: Vec<String> =
                names.iter().map(|name| format!("FullyQualifiedName={name}")).collect();
            command(&["dotnet", "test", "--filter"], vec![filters.join("|")])
        }
        Framework::Ctest => command(&["ctest", "--output-on-failure", "-R"], vec![whole(&names())]),
        Framework::Bats => command(&["bats", "-f"], [vec![whole(&names())], files(tests)].concat()),
        Framework::Exunit => words(&["mix", "test", "--failed"]),
        Framework::Ava
        | Framework::Junit
        | Framework::Minitest
        | Framework::Gtest
        | Framework::Catch2
        | Framework::Tap
        | Framework::Busted
        | Framework::Generic
        | Framework::Several => return None,
    })
}

fn by_file(framework: Framework, tests: &[&TestCase]) -> Option<Vec<String>> {
    let start: &[&str] = match framework {
        Framework::Go => return Some([words(&["go", "test"]), packages(tests)].concat()),
        Framework::Pytest => &["pytest"],
        Framework::Jest => &["npx", "jest"],
        Framework::Vitest => &["npx", "vitest", "run"],
        Framework::NodeTest => &["node", "--test"],
        Framework::Rspec => &["rspec"],
        Framework::Bats => &["bats"],
        Framework::Tap => &["prove"],
        Framework::Bun => &["bun", "test"],
        Framework::Deno => &["deno", "test"],
        Framework::Ava => &["npx", "ava"],
        _ => return None,
    };
    let files = files(tests);
    (!files.is_empty()).then(|| [words(start), files].concat())
}

/// The files of the tests: what holds a test is told by its package where that is a file.
fn files(tests: &[&TestCase]) -> Vec<String> {
    let file = |test: &&TestCase| -> Option<String> {
        let own = test.name.split("::").next().filter(|file| file.contains('.') && test.name.contains("::"));
        let is_file = |name: &&str| crate::analyse::is_test_file(name) && name.contains('.');
        let file = own.or_else(|| Some(test.package.as_str()).filter(is_file));
        file.or_else(|| test.file.as_deref().filter(is_file)).map(str::to_owned)
    };
    let mut files: Vec<String> = tests.iter().filter_map(file).collect();
    files.sort();
    files.dedup();
    files
}

fn packages(tests: &[&TestCase]) -> Vec<String> {
    const MOST: usize = 4;
    let mut packages = each(tests.iter().map(|test| test.package.as_str()));
    packages.sort();
    let known =
        !packages.is_empty() && packages.len() <= MOST && packages.iter().all(|package| !package.is_empty());
    if known { packages } else { vec!["./...".to_owned()] }
}

/// `shop.CartTest.adds(int)[2]` is `shop.CartTest#adds`.
fn java_methods(names: &[String]) -> Vec<String> {
    let method = |name: &String| {
        name.rsplit_once('.').map_or_else(|| name.clone(), |(class, test)| format!("{class}#{test}"))
    };
    let plain = without_parameters(&without_parameters(names, "("), "[");
    plain.iter().map(method).collect()
}

fn without_parameters(names: &[String], before: &str) -> Vec<String> {
    each(names.iter().map(|name| name.split(before).next().unwrap_or(name).trim()))
}

fn each<'a>(names: impl Iterator<Item = &'a str>) -> Vec<String> {
    let mut each: Vec<String> = Vec::new();
    let mut seen = std::collections::HashSet::new();
    for name in names {
        if seen.insert(name) {
            each.push(name.to_owned());
        }
    }
    each
}

fn words(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

/// A regular expression for any of these texts.
fn any(names: &[String]) -> String {
    let escape = |name: &String| -> String {
        name.chars()
            .flat_map(|c| "\\^$.|?*+()[]{}".contains(c).then_some('\\').into_iter().chain([c]))
            .collect()
    };
    names.iter().map(escape).collect::<Vec<_>>().join("|")
}

fn whole(names: &[String]) -> String {
    if let [name] = names {
        format!("^{}$", any(std::slice::from_ref(name)))
    } else {
        format!("^({})$", any(names))
    }
}

/// As a shell takes it. A name with control characters cannot be typed.
fn shell(words: &[String]) -> String {
    if words.iter().any(|word| word.contains(char::is_control)) {
        return " ".repeat(LONGEST + 1);
    }
    shlex::try_join(words.iter().map(String::as_str)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::made::{failed, passed, report};
    use insta::assert_snapshot;

    fn command(framework: Framework, tests: &[(&str, &str)]) -> String {
        let test = |(package, name): &(&str, &str)| TestCase {
            package: (*package).to_owned(),
            ..failed(name, ("src/x.js", 1), "boom")
        };
        let tests = tests.iter().map(test).chain([passed("good")]).collect();
        rerun_command(&report(framework, tests)).unwrap_or_default()
    }

    #[test]
    fn each_runner_is_asked_in_its_own_words() {
        let go = [
            ("shop/calc", "TestAdd"),
            ("shop/calc", "TestTable/bad value"),
            ("shop/calc", "TestTable/other"),
        ];
        assert_snapshot!(command(Framework::Go, &go), @"go test -run '^(TestAdd|TestTable)$' shop/calc");
        let pytest = [("tests/test_a.py", "tests/test_a.py::test_p[1 2]")];
        assert_snapshot!(command(Framework::Pytest, &pytest), @"pytest 'tests/test_a.py::test_p[1 2]'");
        assert_snapshot!(command(Framework::CargoTest, &[("", "tests::a"), ("", "tests::b")]), @"cargo test -- --exact tests::a tests::b");
        assert_snapshot!(command(Framework::Nextest, &[("", "tests::a")]), @"cargo nextest run -E 'test(=tests::a)'");
        assert_snapshot!(command(Framework::Jest, &[("test/cart.test.js", "cart adds (1)")]), @r#"npx jest -t "cart adds \\(1\\)" test/cart.test.js"#);
        assert_snapshot!(command(Framework::Maven, &[("", "shop.CartTest.adds"), ("", "shop.CartTest.p(int)[2]")]), @"mvn test '-Dtest=shop.CartTest#adds,shop.CartTest#p'");
        assert_snapshot!(command(Framework::Bats, &[("test/a.bats", "fails")]), @"bats -f '^fails$' test/a.bats");
    }

    #[test]
    fn many_tests_are_run_by_their_files() {
        let names: Vec<String> = (0..50).map(|i| format!("tests/test_a.py::test_{i}")).collect();
        let tests: Vec<(&str, &str)> = names.iter().map(|name| ("tests/test_a.py", name.as_str())).collect();
        assert_snapshot!(command(Framework::Pytest, &tests), @"pytest tests/test_a.py");
    }

    #[test]
    fn a_name_that_cannot_be_typed_is_not_suggested() {
        assert_eq!(command(Framework::CargoTest, &[("", "a\nrm -rf /")]), "");
        assert_eq!(rerun_command(&report(Framework::Go, vec![passed("a")])), None);
    }
}

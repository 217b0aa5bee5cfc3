//! Who wrote the report: the same elements hold different names in each.

use std::borrow::Cow;

use super::Suite;
use super::case::Case;
use crate::parse::frames::is_source;
use crate::parse::java;
use crate::parse::xml::Attributes;

/// The writers that do not do as Java's runners do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Dialect {
    /// Surefire, Gradle, the console launcher, .NET's logger, and all who follow them: a class and a method.
    #[default]
    Java,
    Bats,
    Bun,
    Busted,
    /// `cargo2junit` and libtest: a module and a function.
    Cargo,
    Ctest,
    Deno,
    Go,
    Gtest,
    Jest,
    /// Mocha's own `xunit`.
    Mocha,
    /// `mocha-junit-reporter`, whose names are whole.
    MochaJunit,
    Nextest,
    NodeTest,
    /// What we write ourselves: names are whole, and types tell the status.
    Own,
    Phpunit,
    Pytest,
    Rspec,
    Vitest,
}

impl Dialect {
    /// Told by the root or by a suite.
    pub(super) fn of_suite(tag: &str, attributes: Attributes<'_>) -> Option<Self> {
        let name = attributes.get("name").unwrap_or_default();
        let by_name = match (&*name, tag) {
            ("pytest tests" | "pytest", _) => Some(Self::Pytest),
            ("jest tests", _) => Some(Self::Jest),
            ("vitest tests", _) => Some(Self::Vitest),
            ("bun test", _) => Some(Self::Bun),
            ("deno test", _) => Some(Self::Deno),
            ("nextest-run", _) => Some(Self::Nextest),
            ("rehearsal", "testsuites") => Some(Self::Own),
            ("AllTests", "testsuites") => Some(Self::Gtest),
            ("Mocha Tests", "testsuite") => Some(Self::Mocha),
            ("Mocha Tests", _) => Some(Self::MochaJunit),
            _ => None,
        };
        by_name.or_else(|| {
            if name.ends_with(".bats") {
                Some(Self::Bats)
            } else if name == "rspec" || name.strip_prefix("rspec").is_some_and(is_number) {
                Some(Self::Rspec)
            } else if name.starts_with("cargo test #")
                || (name == "test" && attributes.get("package").is_some())
            {
                Some(Self::Cargo)
            } else if is_pytests(attributes) {
                Some(Self::Pytest)
            } else {
                None
            }
        })
    }

    /// Told by a test, for those who do not sign.
    pub(super) fn of_case(case: &Case, root_is_bare: bool) -> Option<Self> {
        if case.has_class {
            Some(Self::Phpunit)
        } else if root_is_bare && matches!(&*case.class, "test" | "suite") {
            Some(Self::NodeTest)
        } else if case.class == case.name && matches!(&*case.status, "run" | "fail" | "notrun" | "disabled") {
            Some(Self::Ctest)
        } else if case
            .class
            .rsplit_once(':')
            .is_some_and(|(file, line)| file.ends_with(".lua") && is_number(line))
        {
            Some(Self::Busted)
        } else {
            None
        }
    }

    /// Told by a suite's properties.
    pub(super) fn of_property(name: &str) -> Option<Self> {
        (name == "go.version").then_some(Self::Go)
    }

    /// What the test belongs to and what its runner calls it, given the suites around it.
    pub(super) fn identify(self, case: &Case, suites: &[Suite], to: &mut Identity) {
        if self == Self::Java {
            return to.set_class(&case.class, &java::method(&case.name));
        }
        let around: Vec<&str> = suites.iter().map(|suite| suite.name.as_str()).collect();
        let of_suite = suites.iter().rev().find_map(|suite| suite.file.as_deref());
        let file = Some(&*case.file).filter(|file| !file.is_empty()).or(of_suite);
        let suite = around.last().copied().unwrap_or_default();
        let (package, name) = match self {
            Self::Java | Self::Bats | Self::Nextest | Self::Deno | Self::Own => {
                (Cow::Borrowed(&*case.class), Cow::Borrowed(&*case.name))
            }
            Self::Go => (either(&case.class, suite), Cow::Borrowed(&*case.name)),
            Self::MochaJunit => (either(file.unwrap_or_default(), suite), Cow::Borrowed(&*case.name)),
            Self::Rspec => (either(file.unwrap_or_default(), &case.class), Cow::Borrowed(&*case.name)),
            Self::Ctest => (Cow::Borrowed(""), Cow::Borrowed(&*case.name)),
            Self::Bun => (either(file.unwrap_or_default(), suite), joined(around.get(1..), " ", &case.name)),
            Self::Busted => {
                let file = case.class.rsplit_once(':').map_or(&*case.class, |(file, _)| file);
                (Cow::Borrowed(file), Cow::Borrowed(&*case.name))
            }
            Self::Cargo => (Cow::Borrowed(suite), of_module(case)),
            Self::Gtest => (Cow::Borrowed(&*case.class), Cow::Owned(format!("{}.{}", case.class, case.name))),
            Self::Jest => (either(file.unwrap_or_default(), suite), of_jest(case)),
            Self::Mocha => {
                (either(file.unwrap_or_default(), &case.class), joined(Some(&[&case.class]), " ", &case.name))
            }
            Self::NodeTest => {
                let name = case.name.replace("&quot;", "\"");
                let around: Vec<String> = around.iter().map(|suite| suite.replace("&quot;", "\"")).collect();
                let around: Vec<&str> = around.iter().map(String::as_str).collect();
                (
                    Cow::Borrowed(file.unwrap_or_default()),
                    Cow::Owned(joined(Some(&around), " > ", &name).into_owned()),
                )
            }
            Self::Phpunit => {
                (Cow::Borrowed(&*case.php_class), Cow::Owned(format!("{}::{}", case.php_class, case.name)))
            }
            Self::Pytest => of_pytest(case),
            Self::Vitest => (Cow::Borrowed(&*case.class), Cow::Owned(case.name.replace(" > ", " "))),
        };
        to.set(&package, &name);
    }
}

/// A test within its run, in buffers that are used again.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(super) struct Identity {
    pub suite: String,
    pub name: String,
}

impl Identity {
    fn set(&mut self, suite: &str, name: &str) {
        self.suite.clear();
        self.suite.push_str(suite);
        self.name.clear();
        self.name.push_str(name);
    }

    /// A method's name with its class, unless that stands there already or is no class but a file.
    fn set_class(&mut self, class: &str, method: &str) {
        self.set(class, "");
        let is_file = class.contains('/') || is_source(class);
        let is_whole = method.strip_prefix(class).is_some_and(|rest| rest.starts_with('.'));
        if !class.is_empty() && !is_file && !is_whole {
            self.name.push_str(class);
            self.name.push('.');
        }
        self.name.push_str(method);
    }
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// A suite of pytest may have any name; its attributes stand in an order of its own.
fn is_pytests(attributes: Attributes<'_>) -> bool {
    let names = attributes.all().map(|(name, _)| name);
    names.eq(["name", "errors", "failures", "skipped", "tests", "time", "timestamp", "hostname"])
}

fn either<'a>(first: &'a str, second: &'a str) -> Cow<'a, str> {
    Cow::Borrowed(if first.is_empty() { second } else { first })
}

fn joined<'a>(around: Option<&[&str]>, between: &str, name: &'a str) -> Cow<'a, str> {
    let around: Vec<&str> = around.unwrap_or_default().iter().copied().filter(|it| !it.is_empty()).collect();
    if around.is_empty() {
        return Cow::Borrowed(name);
    }
    Cow::Owned(format!("{}{between}{name}", around.join(between)))
}

fn of_module(case: &Case) -> Cow<'_, str> {
    match &*case.class {
        "" | "crate" | "integration" | "doctest" => Cow::Borrowed(&*case.name),
        module => Cow::Owned(format!("{module}::{}", case.name)),
    }
}

/// Both titles are templates that a project may change.
fn of_jest(case: &Case) -> Cow<'_, str> {
    let (class, name) = (case.class.trim(), case.name.trim());
    if class.is_empty() || name.starts_with(class) || is_source(class) {
        return Cow::Borrowed(name);
    }
    Cow::Owned(format!("{class} {name}"))
}

/// `tests.test_cart.TestGroup` and `test_key` are `tests/test_cart.py::TestGroup::test_key`.
fn of_pytest(case: &Case) -> (Cow<'_, str>, Cow<'_, str>) {
    // A file that could not be collected has no class, and is named like one.
    if case.class.is_empty() {
        let file = if case.file.is_empty() { module_file(&case.name) } else { case.file.clone() };
        return (Cow::Owned(file.clone()), Cow::Owned(file));
    }
    let (file, classes) = split_module(&case.class, &case.file);
    let mut name = file.clone();
    for class in classes.split('.').filter(|class| !class.is_empty()) {
        name.push_str("::");
        name.push_str(class);
    }
    name.push_str("::");
    name.push_str(&case.name);
    (Cow::Owned(file), Cow::Owned(name))
}

fn module_file(module: &str) -> String {
    format!("{}.py", module.replace('.', "/"))
}

fn split_module<'a>(class: &'a str, file: &str) -> (String, &'a str) {
    if !file.is_empty() {
        let module = file.strip_suffix(".py").unwrap_or(file).replace(['/', '\\'], ".");
        let classes = class.strip_prefix(module.as_str()).unwrap_or_default();
        return (file.to_owned(), classes);
    }
    let (mut end, mut at) = (None, 0);
    for part in class.split('.') {
        if end.is_some() && part.starts_with(char::is_uppercase) {
            break;
        }
        at += part.len();
        let is_module =
            part.starts_with("test_") || part.ends_with("_test") || !part.starts_with(char::is_uppercase);
        if is_module || end.is_none() {
            end = Some(at);
        }
        at += 1;
    }
    let end = end.unwrap_or(class.len());
    (module_file(&class[..end]), &class[end..])
}

//! What Go's runtime prints when a program dies: a reason, and the stacks of its goroutines.

use super::modules::Modules;
use crate::is_foreign;

/// How a test binary died, taken from its dying words.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Death<'a> {
    /// Without `panic:`.
    pub message: &'a str,
    /// From the first goroutine on.
    pub stack: &'a str,
    /// Whether `-timeout` ended it.
    pub timed_out: bool,
}

impl<'a> Death<'a> {
    /// Whether a line begins dying words.
    pub(super) fn begins(line: &str) -> bool {
        [
            "panic: ",
            "fatal error: ",
            "SIGQUIT: ",
            "SIGABRT: ",
            "SIGSEGV: ",
            "runtime: goroutine stack exceeds",
        ]
        .iter()
        .any(|start| line.starts_with(start))
    }

    /// Reads them; none if no goroutine follows, since anyone can print `panic:`.
    pub(super) fn read(text: &'a str) -> Option<Self> {
        let at = text.find("\ngoroutine ")?;
        let (reason, stack) = (text[..at].trim_end(), &text[at + 1..]);
        let message = reason.strip_prefix("panic: ").unwrap_or(reason);
        let timed_out = message.starts_with("test timed out after ");
        // `[recovered]` says only that the testing package looked at it, `[signal` what the first line says.
        let end = [" [recovered", "\n[signal "].iter().filter_map(|mark| message.find(mark)).min();
        let message = &message[..end.unwrap_or(message.len())];
        Some(Self { message, stack, timed_out })
    }

    /// The tests that `-timeout` found running; empty if this version of Go does not say.
    pub(super) fn running_tests(&self) -> impl Iterator<Item = &'a str> {
        let list = self.message.split_once("running tests:").map_or("", |(_, list)| list);
        list.lines().filter_map(|line| line.trim().split_once(" (")).map(|(name, _)| name)
    }

    /// The tests that died, as far as the stacks name them.
    pub(super) fn victims(&self) -> Vec<&'a str> {
        if self.timed_out {
            let all: Vec<&str> = self.running_tests().collect();
            let has_subtest = |name: &str| {
                all.iter().any(|other| other.strip_prefix(name).is_some_and(|rest| rest.starts_with('/')))
            };
            return all.iter().copied().filter(|name| !has_subtest(name)).collect();
        }
        let functions = self.stack.lines().filter(|line| !line.starts_with('\t'));
        let named = functions.filter_map(|line| {
            let start =
                ["Test", "Fuzz", "Example"].iter().find_map(|start| line.find(&format!(".{start}")))? + 1;
            let end = line[start..].find(|c: char| !c.is_alphanumeric() && c != '_')?;
            Some(&line[start..start + end])
        });
        named.take(1).collect()
    }

    /// Whether the stacks tell of this test's function.
    pub(super) fn mentions(&self, test: &str) -> bool {
        self.goroutine_of(test).is_some()
    }

    /// The first goroutine that this test's function runs in, or started.
    fn goroutine_of(&self, test: &str) -> Option<&'a str> {
        let function = test.split('/').next().unwrap_or(test);
        self.stack.split("\n\n").find(|goroutine| {
            goroutine.match_indices(function).any(|(at, _)| {
                let after = &goroutine[at + function.len()..];
                goroutine[..at].ends_with('.') && after.starts_with(['(', '.', ' ', '\n', '['])
            })
        })
    }

    /// The deepest frame of the project; of a time-out, in the goroutine of the given test.
    pub(super) fn place(
        &self,
        test: Option<&str>,
        package: &str,
        modules: &Modules,
    ) -> Option<(String, u32)> {
        let own = test.and_then(|test| self.goroutine_of(test));
        let first = self.stack.split("\n\n").next().filter(|_| !self.timed_out);
        own.into_iter()
            .chain(first)
            .chain(std::iter::once(self.stack))
            .find_map(|goroutine| deepest(goroutine, package, modules))
    }
}

/// The first frame in a stack that is of the project.
pub(super) fn deepest(stack: &str, package: &str, modules: &Modules) -> Option<(String, u32)> {
    let mut function = "";
    for line in stack.lines() {
        let Some((file, number)) = frame(line) else {
            function = line.trim().strip_prefix("created by ").unwrap_or(line.trim());
            continue;
        };
        let import_path = import_path(function);
        if is_own(import_path, file, package) {
            return Some((relative(import_path, file, package, modules), number));
        }
    }
    None
}

/// `\t/home/me/shop/calc.go:9 +0x10`.
fn frame(line: &str) -> Option<(&str, u32)> {
    let line = line.strip_prefix(['\t', ' '])?.trim_start();
    let (file, rest) = line.rsplit_once(".go:")?;
    let digits = rest.split(|c: char| !c.is_ascii_digit()).next()?;
    Some((&line[..file.len() + 3], digits.parse().ok()?))
}

/// `example.com/shop/calc` of `example.com/shop/calc.(*Node).Second(...)`.
fn import_path(function: &str) -> &str {
    let name = function.find('(').filter(|at| *at > 0).map_or(function, |at| &function[..at]);
    let slash = name.rfind('/').map_or(0, |slash| slash + 1);
    let dot = name[slash..].find('.').map_or(name.len(), |dot| slash + dot);
    &name[..dot]
}

/// A package of the standard library has no dot in the first part of its path, and no module of its own.
fn is_own(import_path: &str, file: &str, package: &str) -> bool {
    let first = |path: &str| path.split('/').next().unwrap_or_default().to_owned();
    // In text, a package has no name before its end: then the directory tells.
    let elsewhere = package.is_empty() && file.starts_with('/') && !is_in_source_root(import_path, file);
    let standard = !first(import_path).contains('.')
        && import_path != "main"
        && first(import_path).trim_end_matches("_test") != first(package)
        && !elsewhere;
    !standard && !is_foreign(file) && !file.contains("@v") && !file.starts_with("_testmain.go")
}

/// Whether a file is where Go has the sources of this package of its library.
fn is_in_source_root(import_path: &str, file: &str) -> bool {
    let dir = file.rsplit_once('/').map_or("", |(dir, _)| dir);
    import_path.is_empty()
        || import_path == "panic"
        || dir.strip_suffix(import_path).is_some_and(|root| root.ends_with("/src/"))
}

/// The file relative to its module, where its directory ends as its package does; else as it is.
fn relative(import_path: &str, file: &str, package: &str, modules: &Modules) -> String {
    let (dir, name) = file.rsplit_once('/').unwrap_or(("", file));
    // The name of a package of tests outside of their package ends with `_test`, its directory's does not.
    for path in [import_path, import_path.trim_end_matches("_test"), package] {
        let inside = modules.dir_of(path);
        let fits = dir.strip_suffix(inside).is_some_and(|rest| rest.is_empty() || rest.ends_with('/'));
        if !inside.is_empty() && fits {
            return format!("{inside}/{name}");
        }
    }
    file.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    const PANIC: &str = "panic: runtime error: index out of range [5] with length 3 [recovered, repanicked]\n\ngoroutine 7 [running]:\ntesting.tRunner.func1.2({0x1, 0x2})\n\t/opt/go/src/testing/testing.go:1632 +0x230\npanic({0x1?, 0x2?})\n\t/opt/go/src/runtime/panic.go:785 +0x132\ngithub.com/lib/pq.(*conn).exec(...)\n\t/root/go/pkg/mod/github.com/lib/pq@v1.10.9/conn.go:88\nshop/store_test.TestSave.func1(...)\n\t/src/shop/store/store_test.go:31\n";

    #[test]
    fn the_deepest_frame_of_the_project_is_where_to_look() {
        let death = Death::read(PANIC).unwrap();
        assert_eq!(death.message, "runtime error: index out of range [5] with length 3");
        let place = death.place(None, "shop/store", &Modules::default());
        assert_eq!(place, Some(("store/store_test.go".to_owned(), 31)));
        assert!(death.mentions("TestSave/x") && !death.mentions("TestSav"));
    }

    #[test]
    fn a_printed_panic_is_no_death() {
        assert_eq!(Death::read("panic: just a word\n"), None);
    }

    #[test]
    fn a_time_out_names_the_tests_that_ran() {
        let text = "panic: test timed out after 1s\n\trunning tests:\n\t\tTestA (1s)\n\t\tTestB/x (0s)\n\ngoroutine 5 [running]:\nx\n";
        let death = Death::read(text).unwrap();
        assert!(death.timed_out);
        assert_eq!(death.running_tests().collect::<Vec<_>>(), ["TestA", "TestB/x"]);
    }
}

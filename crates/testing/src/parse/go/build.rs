//! What the compiler, the linker, `vet` and the `go` command itself complain about.

use super::modules::Modules;
use crate::parse::frames::number;
use crate::{Event, FailureKind, Problem, ProblemScope, Sink};

const MOST: usize = 200;
const LONGEST: usize = 4 << 10;

/// The complaints of one stream.
#[derive(Debug, Default)]
pub(super) struct Build {
    /// The package that the last `# example.com/shop/calc` line named.
    package: String,
    errors: Vec<Problem>,
    /// What the `go` command said on its own account.
    command: Vec<Problem>,
    /// Whether the last line was part of the last error.
    in_error: bool,
    /// Lines of a package that name no place.
    rest: String,
}

impl Build {
    /// Reads a line; says whether it was one of a build.
    pub(super) fn line(&mut self, line: &str, modules: &mut Modules) -> bool {
        let in_error = std::mem::take(&mut self.in_error);
        if let Some(name) = line.strip_prefix("# ") {
            self.end_package();
            // `# example.com/shop/calc [example.com/shop/calc.test]`; vet repeats it in brackets.
            let name = name.split(" [").next().unwrap_or(name).trim_matches(['[', ']']);
            if !name.contains(' ') {
                name.clone_into(&mut self.package);
            }
            return true;
        }
        if let Some(said) = line.strip_prefix("go: ") {
            self.command(said);
            return true;
        }
        let diagnostic = line.strip_prefix("vet: ").unwrap_or(line);
        if let Some((file, at, message)) = diagnosed(diagnostic) {
            let dir = file.rfind('/').map_or("", |slash| &file[..slash]);
            modules.learn(&self.package, dir);
            self.error(Some((file, at)), message);
            self.in_error = true;
            return true;
        }
        if line.starts_with('\t')
            && in_error
            && let Some(last) = self.errors.last_mut().filter(|last| last.message.len() < LONGEST)
        {
            last.message.push('\n');
            last.message.push_str(line.trim());
            self.in_error = true;
            return true;
        }
        let inside = !self.package.is_empty();
        if inside && !line.is_empty() && self.rest.len() < LONGEST {
            self.rest.push_str(line);
            self.rest.push('\n');
        }
        inside
    }

    /// No more of this package follows.
    pub(super) fn end_package(&mut self) {
        let rest = std::mem::take(&mut self.rest);
        if !rest.is_empty() && !self.errors.iter().any(|error| error.name == self.package) {
            self.error(None, rest.trim_end());
        }
        self.package.clear();
    }

    /// What is wrong with the code, and what is wrong with the command's own work.
    fn take(&mut self) -> (Vec<Problem>, Vec<Problem>) {
        self.end_package();
        (std::mem::take(&mut self.errors), std::mem::take(&mut self.command))
    }

    fn error(&mut self, at: Option<(&str, u32)>, message: &str) {
        let noise = ["too many errors", "note: module requires Go"].iter().any(|it| message.starts_with(it));
        if noise || self.errors.len() >= MOST {
            return;
        }
        self.errors.push(
            Problem::new(ProblemScope::Build, self.package.clone(), Some(kind_of(message)), message).placed(
                at.map(|(file, _)| file.trim_start_matches("./").to_owned()),
                at.map(|(_, line)| line),
            ),
        );
    }

    /// `go: downloading …` is progress, most else is trouble.
    fn command(&mut self, said: &str) {
        const PROGRESS: [&str; 9] = [
            "downloading ",
            "finding ",
            "extracting ",
            "found ",
            "added ",
            "upgraded ",
            "warning:",
            "creating ",
            "to add ",
        ];
        if PROGRESS.iter().any(|start| said.starts_with(start)) || self.command.len() >= MOST {
            return;
        }
        self.command.push(Problem::new(ProblemScope::Run, "", Some(kind_of(said)), said));
    }
}

/// Tells all complaints. A package that could not be built has one, even if the compiler's words went elsewhere.
pub(super) fn tell<const N: usize>(builds: [&mut Build; N], not_built: Option<&str>, sink: &mut dyn Sink) {
    let mut problems = Vec::new();
    for build in builds {
        let (errors, command) = build.take();
        problems.extend(errors.into_iter().chain(command));
    }
    if let Some(package) = not_built.filter(|_| problems.is_empty()) {
        problems.push(Problem::new(
            ProblemScope::Build,
            package,
            Some(FailureKind::Compile),
            "the package could not be built",
        ));
    }
    for problem in problems {
        sink.event(Event::Problem(problem));
    }
}

fn kind_of(message: &str) -> FailureKind {
    const OF_IMPORTS: [&str; 7] = [
        "cannot find module",
        "cannot find package",
        "no required module provides",
        "is not in std",
        "is not in GOROOT",
        "missing go.sum entry",
        "import cycle not allowed",
    ];
    if OF_IMPORTS.iter().any(|part| message.contains(part)) {
        FailureKind::Import
    } else {
        FailureKind::Compile
    }
}

/// `calc/calc.go:11:28: message`; the column may be missing.
fn diagnosed(line: &str) -> Option<(&str, u32, &str)> {
    if line.starts_with([' ', '\t']) {
        return None;
    }
    let windows_drive = if line.as_bytes().get(1) == Some(&b':') { 2 } else { 0 };
    let end = windows_drive + line.get(windows_drive..)?.find(':')?;
    let file = &line[..end];
    let (at, rest) = number(&line[end + 1..])?;
    let rest = rest.strip_prefix(':')?;
    let message = match number(rest) {
        Some((_, after)) => after.strip_prefix(':').unwrap_or(rest),
        None => rest,
    };
    let is_file = file.rsplit('/').next().is_some_and(|name| name.contains('.')) && !file.contains(' ');
    is_file.then(|| (file, at, message.trim_start()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn complaints_have_their_place_and_their_further_lines() {
        let (mut build, mut modules) = (Build::default(), Modules::default());
        for line in [
            "go: downloading example.com/x v1.0.0",
            "# example.com/team/shop/calc [example.com/team/shop/calc.test]",
            "calc/calc.go:11:28: not enough arguments in call to Add",
            "\thave (number)",
            "\twant (int, int)",
            "calc/calc.go:12:1: too many errors",
            "# example.com/team/shop/c",
            "/usr/bin/ld: cannot find -lfoo",
            "go: updates to go.mod needed",
        ] {
            assert!(build.line(line, &mut modules), "{line}");
        }
        let (errors, command) = build.take();
        let told: Vec<_> =
            errors.iter().map(|it| (it.file.as_deref(), it.line, it.message.as_str())).collect();
        assert_eq!(
            told,
            [
                (
                    Some("calc/calc.go"),
                    Some(11),
                    "not enough arguments in call to Add\nhave (number)\nwant (int, int)"
                ),
                (None, None, "/usr/bin/ld: cannot find -lfoo"),
            ]
        );
        assert_eq!(command[0].message, "updates to go.mod needed");
        assert_eq!(modules.dir_of("example.com/team/shop/cart"), "cart");
    }
}

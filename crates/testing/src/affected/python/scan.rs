//! The `import` lines of a Python file. Text that only looks like one (in a docstring) does no harm: more is run.

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Import {
    /// `import a.b`, or a name that is given to a loader as a text.
    Module(String),
    /// `from ..a import b, c`: `up` counts the dots.
    From { up: usize, module: String, names: Vec<String> },
    /// What is imported is found out while it runs.
    Computed,
}

/// More lines than this are not joined to one.
const LONGEST_STATEMENT: usize = 16 << 10;

pub(super) fn scan(text: &str) -> Vec<Import> {
    let mut imports = Vec::new();
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        let start = line.trim_start();
        if start.starts_with("import ") || start.starts_with("from ") || start.starts_with("pytest_plugins") {
            let statement = joined(line, &mut lines);
            for part in statement.split(';') {
                read(part.trim(), &mut imports);
            }
        } else {
            loaders(line, &mut imports);
        }
    }
    imports
}

/// A statement with the lines that belong to it: within brackets, and after a backslash.
fn joined<'a>(line: &str, more: &mut impl Iterator<Item = &'a str>) -> String {
    let mut statement = without_comment(line).to_owned();
    let is_open = |text: &str| {
        let open = text.matches(['(', '[']).count() > text.matches([')', ']']).count();
        open || text.trim_end().ends_with('\\')
    };
    while is_open(&statement) && statement.len() < LONGEST_STATEMENT {
        let Some(next) = more.next() else { break };
        statement.truncate(statement.trim_end().trim_end_matches('\\').len());
        statement.push(' ');
        statement.push_str(without_comment(next));
    }
    statement
}

fn without_comment(line: &str) -> &str {
    line.split('#').next().unwrap_or(line)
}

fn read(statement: &str, imports: &mut Vec<Import>) {
    if let Some(modules) = statement.strip_prefix("import ") {
        imports.extend(names_in(modules).map(Import::Module));
    } else if let Some((module, names)) =
        statement.strip_prefix("from ").and_then(|rest| rest.split_once(" import"))
    {
        let module = module.trim();
        let up = module.len() - module.trim_start_matches('.').len();
        let module = module.trim_start_matches('.').trim().to_owned();
        imports.push(Import::From { up, module, names: names_in(names).collect() });
    } else if statement.starts_with("pytest_plugins") {
        imports.extend(quoted(statement).map(|name| Import::Module(name.to_owned())));
    }
}

/// `a as b, c` are `a` and `c`.
fn names_in(list: &str) -> impl Iterator<Item = String> + '_ {
    let names =
        list.split(',').filter_map(|name| name.trim_matches(['(', ')', ' ', '\t']).split_whitespace().next());
    names.filter(|name| *name != "*").map(str::to_owned)
}

/// Calls that load a module by a text.
fn loaders(line: &str, imports: &mut Vec<Import>) {
    for loader in ["import_module(", "__import__(", "importorskip("] {
        let Some((_, argument)) = line.split_once(loader) else { continue };
        let argument = argument.trim_start();
        let literal = argument.starts_with(['\'', '"']).then(|| quoted(argument).next()).flatten();
        imports.push(literal.map_or(Import::Computed, |name| Import::Module(name.to_owned())));
    }
}

fn quoted(text: &str) -> impl Iterator<Item = &str> {
    text.split(['\'', '"']).skip(1).step_by(2).filter(|name| !name.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn module(name: &str) -> Import {
        Import::Module(name.to_owned())
    }

    fn from(up: usize, module: &str, names: &[&str]) -> Import {
        Import::From {
            up,
            module: module.to_owned(),
            names: names.iter().map(|it| (*it).to_owned()).collect(),
        }
    }

    #[test]
    fn every_way_to_import_is_read() {
        let text = "import a.b as x, c  # import no\nfrom .d import e as f\nfrom . import (\n    g,  # why\n    h,\n)\n\
                    try:\n    from ..i.j \\\n        import k\nexcept ImportError: pass\nimport l; import m\n\
                    pytest_plugins = [\n  'n.o',\n  \"p\"]\nfrom q import *\n";
        let expected = [
            module("a.b"),
            module("c"),
            from(1, "d", &["e"]),
            from(1, "", &["g", "h"]),
            from(2, "i.j", &["k"]),
            module("l"),
            module("m"),
            module("n.o"),
            module("p"),
            from(0, "q", &[]),
        ];
        assert_eq!(scan(text), expected);
    }

    #[test]
    fn a_loader_with_a_name_imports_it_and_one_without_may_import_anything() {
        assert_eq!(scan("x = importlib.import_module('a.b')"), [module("a.b")]);
        assert_eq!(scan("x = importlib.import_module(name)"), [Import::Computed]);
    }

    proptest! {
        #[test]
        fn no_text_breaks_it(text in "(import |from |\\.|\\(|\\)|,|\\\\|\n|[a-z'\"#;ü]){0,60}") {
            let _ = scan(&text);
        }
    }
}

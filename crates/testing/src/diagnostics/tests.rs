use insta::assert_snapshot;
use proptest::prelude::*;

use super::{Severity, parser_for, tool_of};
use crate::Stream;

fn said_in(tool: &str, pieces: &[&[u8]]) -> String {
    let mut text = String::new();
    let mut take = |found: super::Diagnostic| {
        let severity = match found.severity {
            Severity::Error => "error",
            Severity::Warning => "warning",
            Severity::Note => "note",
        };
        let number = |number: Option<u32>| number.map(|number| format!(":{number}")).unwrap_or_default();
        let file = found.file.unwrap_or_default();
        let code = found.code.map(|code| format!(" [{code}]")).unwrap_or_default();
        let message = found.message.replace('\n', " / ");
        text += &format!(
            "{} {severity} {file}{}{}{code} {message}\n",
            found.tool,
            number(found.line),
            number(found.column)
        );
    };
    let mut parser = parser_for(tool);
    for piece in pieces {
        parser.feed(Stream::Out, piece, &mut take);
    }
    parser.finish(&mut take);
    text
}

fn said(tool: &str, text: &str) -> String {
    said_in(tool, &[text.as_bytes()])
}

macro_rules! sample {
    ($name:literal) => {
        include_str!(concat!("samples/", $name, ".txt"))
    };
}

#[test]
fn rustc_and_clippy_are_read_as_text_and_as_json() {
    assert_snapshot!(said("clippy", sample!("clippy")), @r"
    clippy warning src/lib.rs:1:25 [unused_variables] unused variable: `unused`
    clippy warning src/lib.rs:1:37 [clippy::needless_return] unneeded `return` statement
    ");
    assert_snapshot!(said("clippy", sample!("clippy-json")), @r"
    clippy warning src/lib.rs:1:25 [unused_variables] unused variable: `unused`
    clippy warning src/lib.rs:1:37 [clippy::needless_return] unneeded `return` statement
    ");
    assert_snapshot!(said("rustc", sample!("clippy-short")), @r"
    rustc warning src/lib.rs:1:25 unused variable: `unused`: help: if this is intentional, prefix it with an underscore: `_unused`
    rustc warning src/lib.rs:1:37 unneeded `return` statement
    ");
}

#[test]
fn compilers_are_read() {
    assert_snapshot!(said("gcc", sample!("gcc")), @r"
    gcc warning a.c:1:35 [-Wint-conversion] initialization of ‘char *’ from ‘int’ makes pointer from integer without a cast
    gcc error a.c:1:45 ‘y’ undeclared (first use in this function)
    gcc note a.c:1:45 each undeclared identifier is reported only once for each function it appears in
    gcc warning a.c:1:31 [-Wunused-variable] unused variable ‘p’
    gcc warning a.c:1:22 [-Wunused-variable] unused variable ‘x’
    ");
    assert_snapshot!(said("javac", sample!("javac")), @r"
    javac error A.java:1 incompatible types: String cannot be converted to int
    javac error A.java:1 incompatible types: unexpected return value
    ");
    assert_snapshot!(said("tsc", sample!("tsc")), @r"
    tsc error a.ts:1:7 [TS2322] Type 'string' is not assignable to type 'number'.
    tsc error a.ts:3:19 [TS7006] Parameter 'a' implicitly has an 'any' type.
    ");
    assert_snapshot!(said("tsc", sample!("tsc-pretty")), @r"
    tsc error a.ts:1:7 [TS2322] Type 'string' is not assignable to type 'number'.
    tsc error a.ts:3:19 [TS7006] Parameter 'a' implicitly has an 'any' type.
    ");
}

#[test]
fn linters_of_javascript_are_read() {
    assert_snapshot!(said("eslint", sample!("eslint")), @r"
    eslint warning /p/a.js:1:7 [no-unused-vars] 'unused' is assigned a value but never used
    eslint error /p/a.js:2:5 [no-cond-assign] Expected a conditional expression and instead saw an assignment
    eslint error /p/a.js:2:14 [no-debugger] Unexpected 'debugger' statement
    ");
    assert_snapshot!(said("eslint-json", sample!("eslint-json")), @r"
    eslint warning /p/a.js:1:7 [no-unused-vars] 'unused' is assigned a value but never used.
    eslint error /p/a.js:2:5 [no-cond-assign] Expected a conditional expression and instead saw an assignment.
    eslint error /p/a.js:2:14 [no-debugger] Unexpected 'debugger' statement.
    ");
    assert_snapshot!(said("biome", sample!("biome")), @r"
    biome warning a.js:1:7 [lint/correctness/noUnusedVariables] This variable unused is unused.
    biome error a.js:2:5 [lint/suspicious/noAssignInExpressions] The assignment should not be in an expression.
    biome error a.js:2:14 [lint/suspicious/noDebugger] This is an unexpected use of the debugger statement.
    biome error a.js:2:5 [lint/correctness/noConstantCondition] This condition always evaluates to the same value.
    biome error a.js [format] File content differs from formatting output
    ");
    assert_snapshot!(said("prettier", sample!("prettier")), @r"
    prettier warning a.js is not formatted
    prettier warning a.ts is not formatted
    ");
    assert_snapshot!(said("prettier", sample!("prettier-broken")), @"prettier error bad.js:1:11 SyntaxError: Unexpected token (1:11)");
    assert_snapshot!(said("eslint", "/p/a.js:2:5: Unexpected 'debugger' statement. [Error/no-debugger]\n"), @"eslint error /p/a.js:2:5 [no-debugger] Unexpected 'debugger' statement.");
}

#[test]
fn what_pythons_compiler_says_is_read() {
    let text = "*** Error compiling 'a.py'...\n  File \"a.py\", line 2\n    def f(:\n          ^\nSyntaxError: invalid syntax\n\n\
                *** Error compiling 'b.py'...\nValueError: source code string cannot contain null bytes\n\
                c.py:3: SyntaxWarning: invalid escape sequence '\\d'\nprint('Error: x')\n";
    assert_snapshot!(said("python", text), @r"
    python error a.py:2 SyntaxError: invalid syntax
    python error b.py ValueError: source code string cannot contain null bytes
    python warning c.py:3 SyntaxWarning: invalid escape sequence '\d'
    ");
    assert_eq!(tool_of(text), "python");
}

#[test]
fn checkers_of_python_are_read() {
    assert_snapshot!(said("ruff", sample!("ruff-concise")), @r"
    ruff warning a.py:1:1 [I001] Import block is un-sorted or un-formatted
    ruff warning a.py:1:8 [F401] `os` imported but unused
    ruff warning a.py:5:7 [F821] Undefined name `undefined_name`
    ruff error b.py:1:7 Expected a parameter or the end of the parameter list
    ruff error b.py:2:1 unexpected EOF while parsing
    ");
    assert_snapshot!(said("ruff", sample!("ruff")), @r"
    ruff warning a.py:1:1 [I001] Import block is un-sorted or un-formatted
    ruff warning a.py:1:8 [F401] `os` imported but unused
    ruff warning a.py:5:7 [F821] Undefined name `undefined_name`
    ruff error b.py:1:7 Expected a parameter or the end of the parameter list
    ruff error b.py:1:9 unexpected EOF while parsing
    ");
    assert_snapshot!(said("ruff-json", sample!("ruff-json")), @r"
    ruff warning /p/a.py:1:1 [I001] Import block is un-sorted or un-formatted
    ruff warning /p/a.py:1:8 [F401] `os` imported but unused
    ruff warning /p/a.py:5:7 [F821] Undefined name `undefined_name`
    ruff error /p/b.py:1:7 [invalid-syntax] Expected a parameter or the end of the parameter list
    ruff error /p/b.py:2:1 [invalid-syntax] unexpected EOF while parsing
    ");
    assert_snapshot!(said("mypy", sample!("mypy")), @r#"
    mypy error a.py:3 [return-value] Incompatible return value type (got "int", expected "str")
    mypy error a.py:4 [arg-type] Argument 1 to "f" has incompatible type "str"; expected "int"
    mypy error a.py:4 [operator] Unsupported operand types for + ("str" and "int")
    mypy error a.py:5 [name-defined] Name "undefined_name" is not defined
    "#);
    assert_snapshot!(said("flake8", sample!("flake8")), @r"
    flake8 warning a.py:1:1 [F401] 'os' imported but unused
    flake8 warning a.py:2:1 [E302] expected 2 blank lines, found 0
    flake8 warning a.py:4:1 [E305] expected 2 blank lines after class or function definition, found 0
    flake8 warning a.py:5:7 [F821] undefined name 'undefined_name'
    flake8 error b.py:1:8 [E999] SyntaxError: invalid syntax
    ");
    assert_snapshot!(said("pylint", sample!("pylint")), @r"
    pylint warning a.py:1 [C0114] Missing module docstring
    pylint warning a.py:2 [C0116] Missing function or method docstring
    pylint error a.py:5:6 [E0602] Undefined variable 'undefined_name'
    pylint warning a.py:1 [W0611] Unused import os
    ");
    assert_snapshot!(said("pyright", sample!("pyright")), @r#"
    pyright error /p/a.py:3:12 Type "int" is not assignable to return type "str"
    pyright error /p/a.py:4:5 [reportOperatorIssue] Operator "+" not supported for types "str" and "Literal[1]"
    pyright error /p/a.py:4:7 Argument of type "Literal['a']" cannot be assigned to parameter "x" of type "int" in function "f"
    pyright error /p/a.py:5:7 [reportUndefinedVariable] "undefined_name" is not defined
    "#);
    assert_snapshot!(said("pyright-json", sample!("pyright-json")), @r#"
    pyright error /p/a.py:3:12 [reportReturnType] Type "int" is not assignable to return type "str" /   "int" is not assignable to "str"
    pyright error /p/a.py:4:5 [reportOperatorIssue] Operator "+" not supported for types "str" and "Literal[1]"
    pyright error /p/a.py:4:7 [reportArgumentType] Argument of type "Literal['a']" cannot be assigned to parameter "x" of type "int" in function "f" /   "Literal['a']" is not assignable to "int"
    pyright error /p/a.py:5:7 [reportUndefinedVariable] "undefined_name" is not defined
    "#);
}

#[test]
fn shellcheck_is_read_in_all_its_formats() {
    assert_snapshot!(said("shellcheck", sample!("shellcheck")), @r"
    shellcheck note a.sh:3:6 [SC2086] Double quote to prevent globbing and word splitting.
    shellcheck warning a.sh:4:6 [SC2154] x is referenced but not assigned.
    shellcheck note a.sh:4:6 [SC2086] Double quote to prevent globbing and word splitting.
    shellcheck warning a.sh:4:9 [SC3014] In POSIX sh, == in place of = is undefined.
    ");
    assert_snapshot!(said("shellcheck", sample!("shellcheck-gcc")), @r"
    shellcheck note a.sh:3:6 [SC2086] Double quote to prevent globbing and word splitting.
    shellcheck warning a.sh:4:6 [SC2154] x is referenced but not assigned.
    shellcheck note a.sh:4:6 [SC2086] Double quote to prevent globbing and word splitting.
    shellcheck warning a.sh:4:9 [SC3014] In POSIX sh, == in place of = is undefined.
    ");
    assert_snapshot!(said("shellcheck-json", sample!("shellcheck-json")), @r"
    shellcheck note a.sh:3:6 [SC2086] Double quote to prevent globbing and word splitting.
    shellcheck warning a.sh:4:6 [SC2154] x is referenced but not assigned.
    shellcheck note a.sh:4:6 [SC2086] Double quote to prevent globbing and word splitting.
    shellcheck warning a.sh:4:9 [SC3014] In POSIX sh, == in place of = is undefined.
    ");
    assert_snapshot!(said("shellcheck-json", sample!("shellcheck-json1")), @r"
    shellcheck note a.sh:3:6 [SC2086] Double quote to prevent globbing and word splitting.
    shellcheck warning a.sh:4:6 [SC2154] x is referenced but not assigned.
    shellcheck note a.sh:4:6 [SC2086] Double quote to prevent globbing and word splitting.
    shellcheck warning a.sh:4:9 [SC3014] In POSIX sh, == in place of = is undefined.
    ");
}

#[test]
fn tools_of_go_java_ruby_php_and_dotnet_are_read() {
    assert_snapshot!(said("go", "# shop\n./main.go:3:5: undefined: x\nvet: ./a.go:1:1: expected 'package'\n"), @r"
    go error ./main.go:3:5 undefined: x
    go error ./a.go:1:1 expected 'package'
    ");
    assert_snapshot!(said("golangci-lint", "a.go:3:5: Error return value is not checked (errcheck)\n"), @"golangci-lint warning a.go:3:5 [errcheck] Error return value is not checked");
    assert_snapshot!(said("staticcheck", "a.go:3:5: this value of x is never used (SA4006)\n"), @"staticcheck warning a.go:3:5 [SA4006] this value of x is never used");
    assert_snapshot!(said("maven", "[ERROR] /p/src/A.java:[3,5] cannot find symbol\n[ERROR] BUILD FAILURE\n"), @"maven error /p/src/A.java:3:5 cannot find symbol");
    assert_snapshot!(said("gradle", "/p/A.java:3: error: ';' expected\ne: file:///p/A.kt:3:5 Unresolved reference: x\n"), @r"
    gradle error /p/A.java:3 ';' expected
    gradle error /p/A.kt:3:5 Unresolved reference: x
    ");
    assert_snapshot!(said("rubocop", "a.rb:1:1: C: [Correctable] Style/Rule: Missing comment.\na.rb:2:3: E: Lint/Syntax: bad\n"), @r"
    rubocop warning a.rb:1:1 [Style/Rule] Missing comment.
    rubocop error a.rb:2:3 [Lint/Syntax] bad
    ");
    let json = r#"{"metadata":{"rubocop_version":"1.0"},"files":[{"path":"a.rb","offenses":[{"severity":"convention","message":"Missing.","cop_name":"Style/Rule","location":{"line":1,"column":2}}]}]}"#;
    assert_snapshot!(said("rubocop-json", json), @"rubocop warning a.rb:1:2 [Style/Rule] Missing.");
    assert_snapshot!(said("php", "PHP Parse error:  syntax error, unexpected '}' in a.php on line 3\n"), @"php error a.php:3 syntax error, unexpected '}'");
    assert_snapshot!(said("phpstan", "/p/a.php:3:Undefined variable: $x\n"), @"phpstan error /p/a.php:3 Undefined variable: $x");
    let json = r#"{"totals":{"errors":0,"file_errors":1},"files":{"/p/a.php":{"errors":1,"messages":[{"message":"Undefined variable: $x","line":3,"ignorable":true,"identifier":"variable.undefined"}]}},"errors":[]}"#;
    assert_snapshot!(said("phpstan-json", json), @"phpstan error /p/a.php:3 [variable.undefined] Undefined variable: $x");
    assert_snapshot!(said("dotnet", "/p/A.cs(3,5): error CS1002: ; expected [/p/x.csproj]\n"), @"dotnet error /p/A.cs:3:5 [CS1002] ; expected");
}

#[test]
fn a_tool_is_known_by_what_it_prints() {
    for (tool, text) in [
        ("rustc", sample!("clippy")),
        ("rustc", sample!("clippy-json")),
        ("tsc", sample!("tsc")),
        ("eslint", sample!("eslint")),
        ("eslint-json", sample!("eslint-json")),
        ("prettier", sample!("prettier")),
        ("ruff", sample!("ruff")),
        ("ruff-json", sample!("ruff-json")),
        ("mypy", sample!("mypy")),
        ("pyright", sample!("pyright")),
        ("pyright-json", sample!("pyright-json")),
        ("shellcheck", sample!("shellcheck")),
        ("shellcheck", sample!("shellcheck-gcc")),
        ("shellcheck-json", sample!("shellcheck-json")),
        ("generic", sample!("gcc")),
    ] {
        assert_eq!(tool_of(text), tool, "{text}");
    }
}

#[test]
fn prose_times_and_addresses_are_no_diagnostics() {
    let prose = "Compiling: 3 files\n12:30:01: started\nhttp://localhost:80: up\nnote: see a.c\nerror: x\n  at f (a.js:1:2)\n";
    assert_eq!(said("generic", prose), "");
}

proptest! {
    #[test]
    fn any_text_is_survived_in_any_pieces(text in "([ a.:(\\[{}\"-]|[0-9]|error|a\\.c:|-->|\\^--|×|━|é|\n|\u{1b}){0,80}", at in 0usize..200) {
        for tool in ["rustc", "eslint", "ruff", "biome", "prettier", "shellcheck", "gcc", "flake8", "eslint-json", "phpstan-json"] {
            let (left, right) = text.as_bytes().split_at(at.min(text.len()));
            prop_assert_eq!(said_in(tool, &[left, right]), said(tool, &text));
        }
    }
}

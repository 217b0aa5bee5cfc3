//! The tools of the crew, on real files, a real repository and the real sandbox.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails here")]
#![expect(clippy::disallowed_methods, reason = "tests start the programs that they test")]

mod bash;
mod diffs;
mod editing;
mod hooks;
mod hostile;
mod mcp;
mod offered;
mod permissions;
mod place;
mod reading;
mod reporting;
mod searching;
mod testing;
mod web;

#[test]
fn no_file_of_this_directory_is_forgotten() {
    let here = include_str!("main.rs");
    for entry in fs_err::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it")).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        let Some(name) = name.strip_suffix(".rs").filter(|name| *name != "main") else { continue };
        let line = format!("mod {name};");
        assert!(here.lines().any(|known| known == line), "main.rs has no `{line}`");
    }
}

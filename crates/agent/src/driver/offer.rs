//! Builds a command line out of what a program has to offer.

use rehearsal_core::{Feature, Notice};

use super::check::Requirement;
use super::{Capabilities, CommandLine};
use crate::RunRequest;

/// A command line in the making.
#[derive(Debug)]
pub struct Offer<'a> {
    flags: &'static [Requirement],
    capabilities: Option<&'a Capabilities>,
    /// Whether root runs it.
    pub is_root: bool,
    line: CommandLine,
}

impl<'a> Offer<'a> {
    /// Nothing is known about a program that was not asked: it is taken to have everything.
    pub(super) fn new(
        program: &str,
        flags: &'static [Requirement],
        capabilities: Option<&'a Capabilities>,
        is_root: bool,
    ) -> Self {
        let line = CommandLine { program: program.to_owned(), ..CommandLine::default() };
        Self { flags, capabilities, is_root, line }
    }

    /// Arguments that need no check.
    pub fn args(&mut self, args: &[impl AsRef<str>]) {
        self.line.args.extend(args.iter().map(|arg| arg.as_ref().to_owned()));
    }

    /// A flag with its values, if the program has it.
    pub fn flag(&mut self, flag: &str, values: &[&str]) {
        if self.has(flag) {
            self.args(&[flag]);
            self.args(values);
        }
    }

    /// A flag with a value that was asked for.
    pub fn option(&mut self, flag: &str, value: Option<&str>) {
        if let Some(value) = value {
            self.flag(flag, &[value]);
        }
    }

    /// Whether the program has a flag or command; if not, what that costs goes into the warnings.
    pub fn has(&mut self, name: &str) -> bool {
        let requirement = self.flags.iter().find(|requirement| requirement.flag == name);
        let missing = self.capabilities.is_some_and(|capabilities| {
            !capabilities.has(name) && !requirement.is_some_and(|requirement| requirement.hidden)
        });
        if missing {
            self.line.warnings.push(Notice::FlagMissing {
                program: self.line.program.clone(),
                version: self.capabilities.and_then(|capabilities| capabilities.version.clone()),
                flag: name.to_owned(),
                feature: requirement.map_or("what it gives", |requirement| requirement.feature).to_owned(),
            });
        }
        !missing
    }

    /// A variable that it needs.
    pub fn env(&mut self, name: &str, value: &str) {
        self.line.env.insert(name.to_owned(), value.to_owned());
    }

    /// Something was asked for that this kind of agent cannot give at all.
    pub fn lost(&mut self, asked: bool, feature: Feature) {
        if asked {
            self.line.warnings.push(Notice::Unsupported { program: self.line.program.clone(), feature });
        }
    }

    /// The command line, with the prompt on standard input.
    pub fn finish(mut self, request: &RunRequest) -> CommandLine {
        self.line.stdin.clone_from(&request.prompt);
        self.line
    }

    /// The same for a program without a flag for system prompts: its text goes before the prompt.
    pub fn finish_with_system_prompt_in_prompt(self, request: &RunRequest) -> CommandLine {
        let mut line = self.finish(request);
        if let Some(system) = &request.system_prompt {
            line.stdin = format!("{}\n\n{}", system.trim_end(), line.stdin);
        }
        line
    }
}

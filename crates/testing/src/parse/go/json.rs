//! The stream of `go test -json`, of every version that has it (1.10 and later).
//!
//! There is no event for the end of the run: it is at its end when each package that began has ended.

use super::build::{Build, tell};
use super::event::GoEvent;
use super::log::Mark;
use super::packages::{PackageEnd, Packages};
use super::text::Outcome;
use crate::parse::{Parser, Stream};
use crate::{Line, Lines, Sink, TestId, TestStatus};

#[derive(Debug, Default)]
pub(in crate::parse) struct GoJson {
    out: Lines,
    err: Lines,
    state: State,
}

#[derive(Debug, Default)]
struct State {
    packages: Packages,
    /// Compilers' messages inside the stream.
    build: Build,
    /// Plain lines beside it: before Go 1.24 all that the compiler says.
    plain: Build,
    /// Kept apart so that the way in which the streams are mixed does not matter.
    on_err: Build,
    /// A package that could not be built.
    not_built: Option<String>,
    first_line_seen: bool,
}

impl Parser for GoJson {
    fn feed(&mut self, stream: Stream, bytes: &[u8], sink: &mut dyn Sink) {
        let state = &mut self.state;
        match stream {
            Stream::Out => self.out.feed(bytes, |line| state.line(line, sink)),
            Stream::Err => self.err.feed(bytes, |line| state.err_line(line)),
        }
    }

    fn finish(&mut self, sink: &mut dyn Sink) {
        let state = &mut self.state;
        self.out.finish(|line| state.line(line, sink));
        self.err.finish(|line| state.err_line(line));
        state.finish(sink);
    }
}

impl State {
    fn line(&mut self, line: Line<'_>, sink: &mut dyn Sink) {
        let text;
        let line = match std::str::from_utf8(line.bytes) {
            Ok(line) => line,
            Err(_) => {
                text = line.text();
                &*text
            }
        };
        let line = if self.first_line_seen { line } else { line.trim_start_matches('\u{feff}') };
        self.first_line_seen = true;
        match GoEvent::read(line) {
            Some(event) => self.event(&event, sink),
            None => self.plain_line(line, sink),
        }
    }

    fn event(&mut self, event: &GoEvent<'_>, sink: &mut dyn Sink) {
        let packages = &mut self.packages;
        let test = TestId { suite: &event.package, name: &event.test };
        if test.name.is_empty() {
            self.package_event(event, sink);
            return;
        }
        match &*event.action {
            "output" => packages.output(test, &event.output, mark(&event.output_type), sink),
            "run" => packages.run(test, sink),
            "pause" => packages.pause(test, true),
            "cont" => packages.pause(test, false),
            "pass" | "bench" => packages.finish(test, TestStatus::Pass, event.ms(), sink),
            "fail" => packages.finish(test, TestStatus::Fail, event.ms(), sink),
            "skip" => packages.finish(test, TestStatus::Skip, event.ms(), sink),
            _ => {}
        }
    }

    fn package_event(&mut self, event: &GoEvent<'_>, sink: &mut dyn Sink) {
        let package = &*event.package;
        match &*event.action {
            "start" => self.packages.start(package, sink),
            "output" => self.packages.package_output(package, &event.output, mark(&event.output_type)),
            "pass" | "skip" => self.packages.end(package, PackageEnd::Good, sink),
            "fail" => {
                let mut end = PackageEnd::Bad;
                if !event.failed_build.is_empty() {
                    end = PackageEnd::NotBuilt;
                    self.not_built = Some(package.to_owned());
                }
                self.packages.end(package, end, sink);
            }
            "build-output" => {
                for line in event.output.lines() {
                    self.build.line(line, &mut self.packages.modules);
                }
            }
            "build-fail" => {
                self.build.end_package();
                self.not_built = Some(event.import_path.clone().into_owned());
            }
            _ => {}
        }
    }

    /// Old versions print the end of a package that does not build as text.
    fn plain_line(&mut self, line: &str, sink: &mut dyn Sink) {
        if let Some(outcome) = Outcome::of(line) {
            self.plain.end_package();
            if outcome.end == PackageEnd::NotBuilt {
                self.not_built = Some(outcome.package.to_owned());
            }
            self.packages.end(outcome.package, outcome.end, sink);
        } else {
            self.plain.line(line, &mut self.packages.modules);
        }
    }

    fn err_line(&mut self, line: Line<'_>) {
        self.on_err.line(&line.text(), &mut self.packages.modules);
    }

    fn finish(&mut self, sink: &mut dyn Sink) {
        let builds = [&mut self.build, &mut self.plain, &mut self.on_err];
        if self.not_built.is_some() || !self.packages.any_ended {
            tell(builds, self.not_built.as_deref(), sink);
        }
        self.packages.finish_all(sink);
    }
}

fn mark(output_type: &str) -> Mark {
    match output_type {
        "frame" => Mark::Frame,
        "error" | "error-continue" => Mark::Error,
        _ => Mark::None,
    }
}

//! The command line of `gh`, as far as it is played.

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verb {
    PrCreate,
    PrView,
    PrList,
    PrChecks,
    PrReview,
    PrComment,
    PrMerge,
    PrClose,
    PrEdit,
    Api,
    AuthStatus,
    Version,
}

const VERBS: &[Verb] = &[
    Verb::PrCreate,
    Verb::PrView,
    Verb::PrList,
    Verb::PrChecks,
    Verb::PrReview,
    Verb::PrComment,
    Verb::PrMerge,
    Verb::PrClose,
    Verb::PrEdit,
    Verb::Api,
    Verb::AuthStatus,
    Verb::Version,
];

/// An option: its name, its letter, and whether a value follows.
struct Flag(&'static str, char, bool);

const BODY: [Flag; 2] = [Flag("body", 'b', true), Flag("body-file", 'F', true)];
const JSON: [Flag; 2] = [Flag("json", '\0', true), Flag("jq", 'q', true)];

impl Verb {
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::PrCreate => "pr create",
            Self::PrView => "pr view",
            Self::PrList => "pr list",
            Self::PrChecks => "pr checks",
            Self::PrReview => "pr review",
            Self::PrComment => "pr comment",
            Self::PrMerge => "pr merge",
            Self::PrClose => "pr close",
            Self::PrEdit => "pr edit",
            Self::Api => "api",
            Self::AuthStatus => "auth status",
            Self::Version => "--version",
        }
    }

    fn flags(self) -> Vec<Flag> {
        let mut flags = vec![Flag("repo", 'R', true)];
        match self {
            Self::PrCreate => flags.extend(BODY.into_iter().chain([
                Flag("title", 't', true),
                Flag("head", 'H', true),
                Flag("base", 'B', true),
                Flag("label", 'l', true),
                Flag("draft", 'd', false),
                Flag("fill", 'f', false),
            ])),
            Self::PrView => flags.extend(JSON),
            Self::PrList => flags.extend(JSON.into_iter().chain([
                Flag("head", 'H', true),
                Flag("base", 'B', true),
                Flag("state", 's', true),
                Flag("limit", 'L', true),
            ])),
            Self::PrChecks => flags.extend([Flag("json", '\0', true), Flag("required", '\0', false)]),
            Self::PrReview => flags.extend(BODY.into_iter().chain([
                Flag("approve", 'a', false),
                Flag("request-changes", 'r', false),
                Flag("comment", 'c', false),
            ])),
            Self::PrComment => flags.extend(BODY),
            Self::PrMerge => flags.extend([
                Flag("merge", 'm', false),
                Flag("squash", 's', false),
                Flag("match-head-commit", '\0', true),
                Flag("delete-branch", 'd', false),
                Flag("admin", '\0', false),
            ]),
            Self::PrClose => flags.extend([Flag("comment", 'c', true), Flag("delete-branch", 'd', false)]),
            Self::PrEdit => {
                flags.extend(BODY.into_iter().chain([Flag("title", 't', true), Flag("base", 'B', true)]));
            }
            Self::Api => flags.extend([Flag("method", 'X', true)]),
            Self::AuthStatus | Self::Version => {}
        }
        flags
    }
}

/// A command line that makes sense.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Arguments {
    pub(super) verb: Verb,
    /// What is named: a number, an address, a branch, a path.
    pub(super) target: Option<String>,
    options: Vec<(&'static str, String)>,
}

impl Arguments {
    /// Reads it, or says what would have been understood.
    pub(super) fn parse(args: &[String]) -> Result<Self, String> {
        let verb = VERBS.iter().find(|verb| {
            let words: Vec<&str> = verb.name().split(' ').collect();
            args.len() >= words.len() && words.iter().zip(args).all(|(word, arg)| word == arg)
        });
        let Some(&verb) = verb else {
            let known: Vec<&str> = VERBS.iter().map(|verb| verb.name()).collect();
            return Err(format!("`{}` is not played: expected {}", args.join(" "), known.join(", ")));
        };
        let mut parsed = Self { verb, target: None, options: Vec::new() };
        let mut rest = args.iter().skip(verb.name().split(' ').count());
        while let Some(arg) = rest.next() {
            if let Some(option) = arg.strip_prefix('-').filter(|option| !option.is_empty()) {
                parsed.read_option(option, &mut rest)?;
            } else if parsed.target.replace(arg.clone()).is_some() {
                return Err(format!("`{}` takes one argument, and `{arg}` is one more", verb.name()));
            }
        }
        Ok(parsed)
    }

    fn read_option<'a>(
        &mut self,
        option: &str,
        rest: &mut impl Iterator<Item = &'a String>,
    ) -> Result<(), String> {
        let (name, attached) = match option.split_once('=') {
            Some((name, value)) => (name, Some(value.to_owned())),
            None => (option, None),
        };
        let flags = self.verb.flags();
        let is_meant = |flag: &&Flag| match name.strip_prefix('-') {
            Some(long) => flag.0 == long,
            None => name.chars().eq([flag.1]),
        };
        let Some(&Flag(name, _, takes_value)) = flags.iter().find(is_meant) else {
            let known: Vec<String> = flags.iter().map(|flag| format!("--{}", flag.0)).collect();
            return Err(format!(
                "`{}` does not play `-{name}`: expected {}",
                self.verb.name(),
                known.join(", ")
            ));
        };
        let value = match (takes_value, attached) {
            (true, Some(value)) => value,
            (true, None) => rest.next().cloned().ok_or_else(|| format!("`--{name}` needs a value"))?,
            (false, None) => String::new(),
            (false, Some(_)) => return Err(format!("`--{name}` takes no value")),
        };
        self.options.push((name, value));
        Ok(())
    }

    /// The last value that an option was given.
    pub(super) fn value(&self, name: &str) -> Option<&str> {
        self.options.iter().rev().find(|(option, _)| *option == name).map(|(_, value)| value.as_str())
    }

    pub(super) fn has(&self, name: &str) -> bool {
        self.value(name).is_some()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn parse(line: &str) -> Result<Arguments, String> {
        let args: Vec<String> = line.split(' ').map(str::to_owned).collect();
        Arguments::parse(&args)
    }

    #[test]
    fn options_are_read_in_every_form() {
        let args = parse("pr create --title=A -b text -H x --base main --draft").unwrap();
        assert_eq!(args.verb, Verb::PrCreate);
        let values: Vec<_> =
            ["title", "body", "head", "base"].iter().map(|name| args.value(name).unwrap()).collect();
        assert_eq!(
            (values, args.has("draft"), args.has("fill")),
            (vec!["A", "text", "x", "main"], true, false)
        );
        assert_eq!(parse("pr merge 7 --merge").unwrap().target.as_deref(), Some("7"));
    }

    #[test]
    fn what_is_not_played_is_told() {
        assert_eq!(
            parse("issue list").unwrap_err(),
            "`issue list` is not played: expected pr create, pr view, pr list, pr checks, pr review, pr comment, \
             pr merge, pr close, pr edit, api, auth status, --version"
        );
        assert_eq!(
            parse("pr view 7 --web").unwrap_err(),
            "`pr view` does not play `--web`: expected --repo, --json, --jq"
        );
        assert_eq!(parse("pr view 7 8").unwrap_err(), "`pr view` takes one argument, and `8` is one more");
        assert_eq!(parse("pr view --json").unwrap_err(), "`--json` needs a value");
    }

    proptest! {
        #[test]
        fn no_command_line_is_too_odd(args in proptest::collection::vec("(pr|view|api|-{0,3}[a-z=é]{0,5})", 0..6)) {
            let _ = Arguments::parse(&args);
        }
    }
}

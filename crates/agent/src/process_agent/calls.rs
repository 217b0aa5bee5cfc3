//! Counts the tool calls of a run, to stop one that runs away.

use std::hash::{DefaultHasher, Hash, Hasher};

use crate::CallLimits;

/// The calls so far.
#[derive(Debug, Default)]
pub(super) struct Calls {
    limits: CallLimits,
    all: u32,
    /// The last call, and how often in a row it came.
    last: Option<(u64, u32)>,
}

impl Calls {
    pub(super) fn within(limits: CallLimits) -> Self {
        Self { limits, ..Self::default() }
    }

    /// Counts a call; why the run has to end, if it has.
    pub(super) fn count(&mut self, tool: &str, detail: &str, arguments: Option<&str>) -> Option<String> {
        let mut hasher = DefaultHasher::new();
        (tool, detail, arguments).hash(&mut hasher);
        let call = hasher.finish();
        let in_a_row = match self.last {
            Some((last, times)) if last == call => times.saturating_add(1),
            _ => 1,
        };
        self.last = Some((call, in_a_row));
        self.all = self.all.saturating_add(1);
        let CallLimits { repeated, all } = self.limits;
        if repeated > 0 && in_a_row >= repeated {
            return Some(format!(
                "it called `{tool}` {in_a_row} times in a row with the same input ({detail})"
            ));
        }
        (all > 0 && self.all > all).then(|| format!("it called tools more than {all} times"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_same_call_in_a_row_is_a_repetition() {
        let mut calls = Calls::within(CallLimits { repeated: 3, all: 0 });
        assert_eq!(calls.count("bash", "ls", Some("{1}")), None);
        assert_eq!(calls.count("bash", "ls", Some("{1}")), None);
        assert_eq!(calls.count("bash", "ls", Some("{2}")), None);
        assert_eq!(calls.count("bash", "ls", Some("{2}")), None);
        let reason = calls.count("bash", "ls", Some("{2}")).unwrap();
        assert_eq!(reason, "it called `bash` 3 times in a row with the same input (ls)");
    }

    #[test]
    fn all_calls_have_a_limit_and_zero_is_none() {
        let mut calls = Calls::within(CallLimits { repeated: 0, all: 2 });
        assert_eq!((1..=2).find_map(|n: u8| calls.count("read", &n.to_string(), None)), None);
        assert_eq!(calls.count("read", "3", None).unwrap(), "it called tools more than 2 times");
        let mut calls = Calls::within(CallLimits::default());
        assert_eq!((0..1000).find_map(|_| calls.count("read", "a", None)), None);
    }
}

//! Lines in which pytest counts.

/// `= 8 failed, 7 passed, 2 skipped, 1 warning, 2 errors in 0.10s =`, with or without its frame.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(super) struct Counts {
    pub failed: u64,
    pub passed: u64,
    pub skipped: u64,
    pub xfailed: u64,
    pub xpassed: u64,
    pub errors: u64,
}

impl Counts {
    pub(super) fn read(line: &str) -> Option<Self> {
        let line = line.trim_matches('=').trim();
        let (counts, time) = line.rsplit_once(" in ")?;
        // `0.10s`, `75.21s (0:01:15)`, and before pytest 5 `0.10 seconds`.
        let seconds = time.split(' ').next()?;
        seconds.strip_suffix('s').unwrap_or(seconds).parse::<f64>().ok()?;
        let known = seconds.ends_with('s') || time.contains("seconds");
        if counts == "no tests ran" {
            return known.then(Self::default);
        }
        let mut read = Self::default();
        for part in counts.split(", ") {
            let (count, what) = part.split_once(' ')?;
            read.add(u64::from(count.parse::<u32>().ok()?), what)?;
        }
        known.then_some(read)
    }

    fn add(&mut self, count: u64, what: &str) -> Option<()> {
        match what {
            "failed" => self.failed = count,
            "passed" => self.passed = count,
            "skipped" => self.skipped = count,
            "xfailed" => self.xfailed = count,
            "xpassed" => self.xpassed = count,
            "error" | "errors" => self.errors = count,
            "deselected" | "selected" | "warning" | "warnings" | "rerun" | "reruns" => {}
            // `--collect-only` counts what does not run.
            _ if what.starts_with("subtest") || what.starts_with("test") => {}
            _ => return None,
        }
        Some(())
    }
}

/// What was collected, before any test ran.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(super) struct Collected {
    /// The tests that are going to run.
    pub items: u64,
    /// Files that could not be collected.
    pub errors: u64,
    /// Files that are left out as a whole; pytest counts them as skipped.
    pub skipped: u64,
}

impl Collected {
    /// `collected 20 items / 1 error / 3 deselected / 17 selected`, or how many xdist's workers found.
    pub(super) fn read(line: &str) -> Option<Self> {
        let line = line.strip_prefix("collecting ... ").unwrap_or(line);
        let Some(rest) = line.strip_prefix("collected ") else {
            return workers(line).map(|items| Self { items, ..Self::default() });
        };
        let mut parts = rest.trim_end().split(" / ");
        let items = u64::from(parts.next()?.split_once(" item")?.0.parse::<u32>().ok()?);
        let mut collected = Self { items, ..Self::default() };
        for (count, what) in parts.filter_map(|part| part.split_once(' ')) {
            let count = u64::from(count.parse::<u32>().ok()?);
            match what {
                "deselected" => collected.items = collected.items.saturating_sub(count),
                "error" | "errors" => collected.errors = count,
                "skipped" => collected.skipped = count,
                _ => {}
            }
        }
        Some(collected)
    }
}

/// `2 workers [20 items]`, and before xdist 3 `gw0 [20] / gw1 [20]`.
fn workers(line: &str) -> Option<u64> {
    let (before, inside) = line.trim_end().strip_suffix(']')?.rsplit_once('[')?;
    let count = inside.strip_suffix(" items").or_else(|| inside.strip_suffix(" item")).unwrap_or(inside);
    let workers = before.trim_end().ends_with("worker") || before.trim_end().ends_with("workers");
    let named = line.starts_with("gw0 [");
    (workers || named).then(|| count.parse::<u32>().ok()).flatten().map(u64::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_line_is_read_in_all_its_forms() {
        let all = "= 8 failed, 7 passed, 2 skipped, 3 deselected, 1 xfailed, 1 xpassed, 1 warning, 2 errors, 1 rerun in 0.10s =";
        let counts = Counts::read(all).unwrap();
        assert_eq!((counts.failed, counts.passed, counts.errors, counts.xpassed), (8, 7, 2, 1));
        assert_eq!(Counts::read("1 passed in 75.21s (0:01:15)").unwrap().passed, 1);
        assert_eq!(Counts::read("=== 1 passed in 0.03 seconds ===").unwrap().passed, 1);
        assert_eq!(Counts::read("== no tests ran in 0.00s =="), Some(Counts::default()));
        assert_eq!(Counts::read("2 passed, 3 subtests passed in 0.01s").unwrap().passed, 2);
        for other in ["3 apples in 2s", "1 passed in time", "found 3 files in 0.1s", "in 1s", ""] {
            assert_eq!(Counts::read(other), None, "{other}");
        }
    }

    #[test]
    fn what_was_collected_is_read_in_all_its_forms() {
        let read = |line| Collected::read(line).map(|it| (it.items, it.errors));
        assert_eq!(read("collected 1 item"), Some((1, 0)));
        let all = "collecting ... collected 20 items / 1 error / 3 deselected / 17 selected";
        assert_eq!(read(all), Some((17, 1)));
        assert_eq!(read("2 workers [20 items]"), Some((20, 0)));
        assert_eq!(read("gw0 [12] / gw1 [12]"), Some((12, 0)));
        assert_eq!(read("created: 2/2 workers"), None);
    }
}

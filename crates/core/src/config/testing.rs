//! How the repository's tests run.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde::de::{Deserializer, Error};

use super::definition::settings;
use super::{HumanDuration, Origins, SandboxSettings};

settings! {
    /// How the repository's tests run.
    TestingSettings {
        /// The runner; without it, the project's files tell.
        framework: Option<String> = None;
        /// The command; without it, the runner's own. Agents are told to use it.
        command: Option<String> = None;
        /// The longest a run of the tests may take, at most 15 minutes.
        #[serde(deserialize_with = "possible_timeout")]
        timeout: HumanDuration = HumanDuration::from_secs(5 * 60);
        /// Only tests that match one of these.
        patterns: Vec<String> = Vec::new();
        /// Not the tests that match one of these.
        exclude: Vec<String> = Vec::new();
        /// Variables set for the tests. Not for secrets: this file is committed.
        environment: BTreeMap<String, String> = BTreeMap::new();
        /// How often failed tests are run again; one that then passes is flaky.
        retries: u32 = 0;
        /// How many tests at once, where the runner can.
        parallel: Option<u32> = None;
        /// How the tests are confined.
        sandbox: SandboxSettings = SandboxSettings::default();
        /// Which layer set what.
        #[serde(skip)]
        origins: Origins = Origins::default();
    }
}

settings! {
    /// `.rehearsal/testing.yaml`: the section `testing` in a file of its own.
    TestingFile {
        /// Where editors find the schema of this file.
        #[serde(rename = "$schema", skip_serializing)]
        schema: Option<String> = None;
        /// How the repository's tests run.
        testing: TestingSettings = TestingSettings::default();
    }
}

/// A suite that needs longer is split, or run where nobody waits for it.
const LONGEST_TIMEOUT: HumanDuration = HumanDuration::from_secs(15 * 60);

/// Refused where it is written, so that the place is known.
fn possible_timeout<'de, D: Deserializer<'de>>(input: D) -> Result<HumanDuration, D::Error> {
    let timeout = HumanDuration::deserialize(input)?;
    check_timeout(timeout).map_err(D::Error::custom)?;
    Ok(timeout)
}

/// Whether the tests can be given this much time.
pub fn check_timeout(timeout: HumanDuration) -> Result<(), String> {
    if timeout.0.is_zero() {
        return Err("the tests need some time: write `90s` or `5m`".to_owned());
    }
    if timeout > LONGEST_TIMEOUT {
        return Err(format!(
            "{timeout} is too long, at most {LONGEST_TIMEOUT}: run a part of the tests at a time, by a pattern"
        ));
    }
    Ok(())
}

//! How long things took, when somebody sets the clock meanwhile.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use rehearsal_agent::{ScriptedAgent, ScriptedRun};
use rehearsal_core::{Clock, Timestamp};
use rehearsal_engine::WorkEvent;

use crate::stage::{HOUR, Stopped, play};

/// A clock that somebody sets.
struct SetClock {
    clock: Arc<dyn Clock>,
    forward_ms: Arc<AtomicI64>,
}

#[async_trait::async_trait]
impl Clock for SetClock {
    fn now(&self) -> Timestamp {
        Timestamp(self.clock.now().0 + self.forward_ms.load(Ordering::SeqCst))
    }

    fn monotonic(&self) -> Duration {
        self.clock.monotonic()
    }

    async fn sleep_until(&self, until: Timestamp) {
        self.clock.sleep_until(until).await;
    }
}

#[test]
fn a_clock_that_is_set_does_not_make_a_run_longer() {
    play(async |stage| {
        stage.tasks(&["parse"]).await;
        let forward_ms = Arc::new(AtomicI64::new(0));
        let three_hours = i64::try_from(3 * HOUR.as_millis()).unwrap();
        let (hand, clock) = (Arc::clone(&forward_ms), Arc::clone(&stage.clock));
        let run = ScriptedRun::done("").task_done("parse").effect(move |_| {
            hand.store(three_hours, Ordering::SeqCst);
            clock.advance(Duration::from_secs(5));
        });
        let mut worker = stage.worker(&Arc::new(ScriptedAgent::new().then(run)));
        let clock: Arc<dyn Clock> = stage.clock.clone();
        worker.clock = Arc::new(Stopped(Arc::new(SetClock { clock, forward_ms })));
        let summary = worker.run().await.unwrap();
        assert_eq!(summary.duration_ms, 5000);
        let took = stage.told().into_iter().find_map(|event| match event {
            WorkEvent::RunEnded { duration_ms, .. } => Some(duration_ms),
            _ => None,
        });
        assert_eq!(took, Some(5000));
        let run = stage.runs().await.remove(0);
        let end = run.end.unwrap();
        assert_eq!(end.took(run.start.started_at), Duration::from_secs(5));
        assert!(end.ended_at.since(run.start.started_at) > HOUR, "the times of day are what the clock said");
    });
}

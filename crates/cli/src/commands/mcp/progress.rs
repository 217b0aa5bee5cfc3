//! How far a run is, told to a client that wants to know.

use std::time::Duration;

use rehearsal_testing::{RunEvent, RunWatcher};
use rmcp::model::{ProgressNotificationParam, ProgressToken};
use rmcp::service::{Peer, RequestContext, RoleServer};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::commands::test::Counts;

/// A suite of thousands of tests is told about as often as someone can look.
const EVERY: Duration = Duration::from_millis(100);

/// Where a run is.
#[derive(Debug, Clone, Default)]
struct Stand {
    ended: u64,
    expected: u64,
    message: String,
}

/// Tells the client; nobody, if it did not ask.
struct Teller {
    client: Option<(Peer<RoleServer>, ProgressToken)>,
    stand: watch::Receiver<Stand>,
    /// How far the client knows it to be; nothing yet below 0.
    told: f64,
}

/// Does a piece of work, and tells the client meanwhile how far it is.
pub(super) async fn watched<T, W: Future<Output = T>>(
    context: &RequestContext<RoleServer>,
    work: impl FnOnce(RunWatcher) -> W,
) -> T {
    let (watcher, teller) = telling(context);
    let over = CancellationToken::new();
    let work = async {
        let done = work(watcher).await;
        over.cancel();
        done
    };
    tokio::join!(work, teller.tell_until(&over)).0
}

/// A watcher of a run, and who tells the client what it sees.
fn telling(context: &RequestContext<RoleServer>) -> (RunWatcher, Teller) {
    let client = context.meta.get_progress_token().map(|token| (context.peer.clone(), token));
    let (tell, stand) = watch::channel(Stand::default());
    let mut counts = Counts::default();
    let watcher = RunWatcher::new(move |event| {
        let message = match &event {
            RunEvent::Started(plan) => Some(plan.command.to_string()),
            _ => counts.hear(&event),
        };
        if let Some(message) = message {
            tell.send_replace(Stand { ended: counts.ended, expected: counts.expected, message });
        }
    });
    (watcher, Teller { client, stand, told: -1.0 })
}

impl Teller {
    /// Tells until the run is over. No notification is under way when it returns: a client must not get one after the answer.
    async fn tell_until(mut self, over: &CancellationToken) {
        let Some((peer, token)) = self.client.take() else { return };
        loop {
            tokio::select! {
                biased;
                () = over.cancelled() => return,
                changed = self.stand.changed() => if changed.is_err() { return },
            }
            if let Some(notification) = self.next(&token) {
                // A client that does not listen loses nothing but this.
                let _ = peer.notify_progress(notification).await;
                let _ = tokio::time::timeout(EVERY, over.cancelled()).await;
            }
        }
    }

    /// None if it is not further than before, which the protocol does not allow to be said twice.
    fn next(&mut self, token: &ProgressToken) -> Option<ProgressNotificationParam> {
        let stand = self.stand.borrow_and_update().clone();
        #[expect(
            clippy::cast_precision_loss,
            reason = "the protocol counts in floats; no suite has 2^52 tests"
        )]
        let (ended, expected) = (stand.ended as f64, stand.expected as f64);
        if ended <= self.told {
            return None;
        }
        self.told = ended;
        let notification = ProgressNotificationParam::new(token.clone(), ended).with_message(stand.message);
        Some(if expected >= ended && expected > 0.0 {
            notification.with_total(expected)
        } else {
            notification
        })
    }
}

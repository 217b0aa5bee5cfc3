//! Clients of the vendors.
//!
//! A [`Client`] asks an [`Endpoint`] over HTTP in its vendor's [`Dialect`](crate::wire::Dialect). What fails for a moment is asked again, as long as
//! nothing of the answer was given away; a vendor that fails again and again is left alone for a while.
//!
//! **Invariant:** an answer that was cut is an error, and never a whole one.
//!
//! **Invariant:** the key is sent to the endpoint and to nobody else: redirects are not followed, and no error tells it.
//!
//! **Invariant:** nothing is spawned. Who drops a call or a stream has hung up.

mod attempt;
mod breaker;
mod endpoint;
mod live;
mod policy;
mod retry;

use std::sync::Arc;

use async_trait::async_trait;
use rehearsal_core::Clock;

use self::attempt::{Attempt, Failure};
use self::breaker::{Breaker, Pass};
pub use self::endpoint::{Endpoint, EndpointError};
use self::live::Live;
pub use self::policy::{BreakerPolicy, Limits, RetryPolicy, Settings};
use self::retry::Jitter;
use crate::chat::{ChatRequest, ChatResponse};
use crate::http;
use crate::model::{ChatModel, ChatStream, ModelError};

/// Asks a vendor.
pub struct Client {
    endpoint: Endpoint,
    http: reqwest::Client,
    settings: Settings,
    clock: Arc<dyn Clock>,
    breaker: Arc<Breaker>,
    jitter: Jitter,
}

/// Why there is no client.
#[derive(Debug, thiserror::Error)]
#[error("cannot make an HTTP client")]
pub struct ClientError(#[source] reqwest::Error);

impl Client {
    /// Asks this endpoint. Waits go by the clock, and their jitter by the settings' seed.
    pub fn new(endpoint: Endpoint, settings: Settings, clock: Arc<dyn Clock>) -> Result<Self, ClientError> {
        let builder = http::client_builder().connect_timeout(settings.limits.connect);
        // What is on this machine's loopback is not reached through a proxy.
        let builder = if endpoint.is_loopback() { builder.no_proxy() } else { builder };
        // Reading the system's certificates takes longer than asking a server on this machine.
        let builder = if endpoint.is_plain() { builder.tls_certs_only([]) } else { builder };
        Ok(Self {
            http: builder.build().map_err(ClientError)?,
            breaker: Arc::new(Breaker::new(settings.breaker, Arc::clone(&clock))),
            jitter: Jitter::new(settings.seed),
            endpoint,
            settings,
            clock,
        })
    }

    fn attempt<'a>(&'a self, request: &'a ChatRequest) -> Attempt<'a> {
        Attempt {
            endpoint: &self.endpoint,
            http: &self.http,
            limits: self.settings.limits,
            now: self.clock.now(),
            request,
        }
    }

    async fn whole(&self, request: &ChatRequest, pass: Pass) -> Result<ChatResponse, Failure> {
        let answered = self.attempt(request).whole().await;
        pass.settle(answered.as_ref().err().map(|failure| &failure.error));
        answered
    }

    /// A stream whose first piece has come: what fails before it can be asked again.
    async fn begun(&self, request: &ChatRequest, pass: Pass) -> Result<ChatStream, Failure> {
        match self.attempt(request).stream().await {
            Ok(response) => {
                let mut live = Live::new(response.bytes_stream(), &self.endpoint, self.settings.limits, pass);
                live.begin().await.map_err(Failure::from)?;
                Ok(Box::pin(live))
            }
            Err(failure) => {
                pass.settle(Some(&failure.error));
                Err(failure)
            }
        }
    }

    /// Asks until there is an answer, or an error that another try does not cure.
    async fn persistently<T, F>(&self, ask: impl Fn(Pass) -> F) -> Result<T, ModelError>
    where
        F: Future<Output = Result<T, Failure>>,
    {
        let mut tries = 1;
        loop {
            let failure = match ask(self.breaker.enter()?).await {
                Ok(answer) => return Ok(answer),
                Err(failure) => failure,
            };
            let at = self.settings.retry.next_try(&failure, tries, self.clock.now(), &self.jitter);
            let Some(at) = at else { return Err(failure.error) };
            self.clock.sleep_until(at).await;
            tries += 1;
        }
    }
}

impl std::fmt::Debug for Client {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Client")
            .field("endpoint", &self.endpoint)
            .field("settings", &self.settings)
            .finish_non_exhaustive()
    }
}

#[async_trait]
impl ChatModel for Client {
    async fn chat(&self, request: &ChatRequest) -> Result<ChatResponse, ModelError> {
        self.persistently(|pass| self.whole(request, pass)).await
    }

    async fn chat_stream(&self, request: &ChatRequest) -> Result<ChatStream, ModelError> {
        self.persistently(|pass| self.begun(request, pass)).await
    }
}

//! The one way HTTP clients are built.

/// A client that follows no redirects (the server must not decide where the next request goes) and whose TLS uses `ring`.
pub fn client_builder() -> reqwest::ClientBuilder {
    // An error means that the provider is already set.
    let _ = rustls::crypto::ring::default_provider().install_default();
    reqwest::Client::builder().redirect(reqwest::redirect::Policy::none())
}

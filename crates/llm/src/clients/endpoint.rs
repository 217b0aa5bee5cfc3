//! Where a vendor is, and who asks.

use std::net::IpAddr;

use reqwest::Url;

use crate::key::{ApiKey, KeyError};
use crate::wire::Dialect;

/// A vendor's address, its format, and our key.
#[derive(Debug, Clone)]
pub struct Endpoint {
    dialect: Dialect,
    /// Without a slash at its end.
    base: String,
    is_loopback: bool,
    key: Option<ApiKey>,
}

/// Why there is no endpoint. No variant shows the address: it may hold what is secret.
#[derive(Debug, thiserror::Error)]
pub enum EndpointError {
    /// No key for a vendor that wants one.
    #[error("`{variable}` is not set")]
    NoKey {
        /// Where it would have been.
        variable: &'static str,
    },
    /// No key at all.
    #[error("`{variable}` cannot be used")]
    BadKey {
        /// Where it came from.
        variable: &'static str,
        /// Why.
        source: KeyError,
    },
    /// No address.
    #[error("the base address is not a URL: {0}")]
    NoUrl(String),
    /// Another scheme than HTTP.
    #[error("the base address must begin with `https://` or `http://`")]
    NotHttp,
    /// A user, a password or a query in it.
    #[error("the base address must not hold a user, a password, a query or a fragment")]
    NotPlain,
}

impl Endpoint {
    /// An address as the vendor's own tools take it: OpenAI's and those like it end in `/v1`, the others' do not.
    pub fn new(dialect: Dialect, base: &str, key: Option<ApiKey>) -> Result<Self, EndpointError> {
        let base = Url::parse(base).map_err(|error| EndpointError::NoUrl(error.to_string()))?;
        if !matches!(base.scheme(), "http" | "https") || base.host().is_none() {
            return Err(EndpointError::NotHttp);
        }
        let is_plain = base.username().is_empty()
            && base.password().is_none()
            && base.query().is_none()
            && base.fragment().is_none();
        if !is_plain {
            return Err(EndpointError::NotPlain);
        }
        let is_loopback = is_loopback(base.host_str().unwrap_or_default());
        Ok(Self { dialect, base: base.as_str().trim_end_matches('/').to_owned(), is_loopback, key })
    }

    /// From the variables that the vendor's own tools read, such as `ANTHROPIC_API_KEY` and `ANTHROPIC_BASE_URL`. At an address of one's own
    /// there may be no key.
    pub fn from_environment(
        dialect: Dialect,
        variable: impl Fn(&str) -> Option<String>,
    ) -> Result<Self, EndpointError> {
        let Vendor { key: name, base, address } = vendor(dialect);
        let set = |name: &str| variable(name).filter(|value| !value.is_empty());
        let key = set(name).map(|value| ApiKey::new(&value)).transpose();
        let key = key.map_err(|source| EndpointError::BadKey { variable: name, source })?;
        match (set(base), key) {
            (None, None) => Err(EndpointError::NoKey { variable: name }),
            (own, key) => Self::new(dialect, own.as_deref().unwrap_or(address), key),
        }
    }

    /// The format that is spoken there.
    pub fn dialect(&self) -> Dialect {
        self.dialect
    }

    pub(super) fn key(&self) -> Option<&ApiKey> {
        self.key.as_ref()
    }

    /// Where a request goes.
    pub(super) fn url(&self, model: &str, stream: bool) -> String {
        let path = self.dialect.path(model, stream);
        let path = match self.dialect {
            Dialect::OpenAiChat | Dialect::OpenAiResponses => path.strip_prefix("/v1").unwrap_or(&path),
            Dialect::Anthropic | Dialect::Gemini => &path,
        };
        format!("{}{path}", self.base)
    }

    /// The header that holds the key.
    pub(super) fn authorization(&self) -> Option<(&'static str, String)> {
        let key = self.key.as_ref()?.reveal();
        Some(match self.dialect {
            Dialect::Anthropic => ("x-api-key", key.to_owned()),
            Dialect::OpenAiChat | Dialect::OpenAiResponses => ("authorization", format!("Bearer {key}")),
            Dialect::Gemini => ("x-goog-api-key", key.to_owned()),
        })
    }

    /// Whether it is reached without TLS.
    pub(super) fn is_plain(&self) -> bool {
        self.base.starts_with("http://")
    }

    /// Whether it is on this machine.
    pub fn is_loopback(&self) -> bool {
        self.is_loopback
    }
}

fn is_loopback(host: &str) -> bool {
    let address = host.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>();
    host == "localhost" || address.is_ok_and(|address| address.is_loopback())
}

/// How a vendor's own tools are told where it is.
struct Vendor {
    key: &'static str,
    base: &'static str,
    address: &'static str,
}

fn vendor(dialect: Dialect) -> Vendor {
    match dialect {
        Dialect::Anthropic => Vendor {
            key: "ANTHROPIC_API_KEY",
            base: "ANTHROPIC_BASE_URL",
            address: "https://api.anthropic.com",
        },
        Dialect::OpenAiChat | Dialect::OpenAiResponses => {
            Vendor { key: "OPENAI_API_KEY", base: "OPENAI_BASE_URL", address: "https://api.openai.com/v1" }
        }
        Dialect::Gemini => Vendor {
            key: "GEMINI_API_KEY",
            base: "GOOGLE_GEMINI_BASE_URL",
            address: "https://generativelanguage.googleapis.com",
        },
    }
}

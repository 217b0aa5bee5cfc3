//! Which model is asked, and where it is.

use rehearsal_llm::clients::{Endpoint, EndpointError};
use rehearsal_llm::wire::Dialect;

use crate::Role;

/// A model, and where it is asked.
#[derive(Debug)]
pub struct ModelChoice {
    /// Where it is.
    pub endpoint: Endpoint,
    /// Its name there.
    pub model: String,
}

/// Why no model can be asked.
#[derive(Debug, thiserror::Error)]
pub enum ChoiceError {
    /// Nothing is before the colon that we know, and nothing after it.
    #[error("`{model}` names no model")]
    NoName {
        /// What was written.
        model: String,
    },
    /// No vendor's variables are set.
    #[error("no model can be asked: no vendor's key or address is set")]
    NoVendor,
    /// Several are.
    #[error("it is not clear which vendor is to be asked: {} are set", vendors.join(" and "))]
    SeveralVendors {
        /// Their variables.
        vendors: Vec<&'static str>,
    },
    /// The vendor's variables are not right.
    #[error("{vendor} cannot be asked")]
    Endpoint {
        /// The vendor, as a model's prefix names it.
        vendor: &'static str,
        /// Why.
        source: EndpointError,
    },
}

/// A vendor as people name it.
struct Vendor {
    dialect: Dialect,
    key: &'static str,
    base: &'static str,
    /// What is asked when nobody names a model. A vendor's own alias for a model in its prime, which it keeps up to date.
    usual: &'static str,
}

/// `responses` is OpenAI by another interface: it is asked only by name.
const VENDORS: [Vendor; 4] = [
    Vendor {
        dialect: Dialect::Anthropic,
        key: "ANTHROPIC_API_KEY",
        base: "ANTHROPIC_BASE_URL",
        usual: "claude-sonnet-4-5",
    },
    Vendor { dialect: Dialect::OpenAiChat, key: "OPENAI_API_KEY", base: "OPENAI_BASE_URL", usual: "gpt-5" },
    Vendor {
        dialect: Dialect::OpenAiResponses,
        key: "OPENAI_API_KEY",
        base: "OPENAI_BASE_URL",
        usual: "gpt-5",
    },
    Vendor {
        dialect: Dialect::Gemini,
        key: "GEMINI_API_KEY",
        base: "GOOGLE_GEMINI_BASE_URL",
        usual: "gemini-2.5-pro",
    },
];

impl ModelChoice {
    /// The model that was asked for, or that of the role, or the usual one of the vendor whose variables are set.
    pub fn new(
        asked: Option<&str>,
        role: &Role,
        variable: impl Fn(&str) -> Option<String>,
    ) -> Result<Self, ChoiceError> {
        let is_set = |name: &str| variable(name).is_some_and(|value| !value.is_empty());
        let wanted = asked.or(role.model.as_deref());
        let (vendor, named) = match wanted.map(split) {
            Some((Some(vendor), name)) => (vendor, Some(name)),
            Some((None, name)) => (the_only(is_set)?, Some(name)),
            None => (the_only(is_set)?, None),
        };
        if let (Some(""), Some(written)) = (named, wanted) {
            return Err(ChoiceError::NoName { model: written.to_owned() });
        }
        let endpoint = Endpoint::from_environment(vendor.dialect, &variable)
            .map_err(|source| ChoiceError::Endpoint { vendor: vendor.dialect.prefix(), source })?;
        // A suffix is a word of gateways, which speak Chat Completions at an address of their own; vendors know no such model.
        let is_gateway = vendor.dialect == Dialect::OpenAiChat && is_set(vendor.base);
        let suffix = role.model_suffix.as_deref().filter(|_| is_gateway && named.is_some());
        let model = format!("{}{}", named.unwrap_or(vendor.usual), suffix.unwrap_or_default());
        Ok(Self { endpoint, model })
    }
}

/// Whether any vendor could be asked: some key or address is set.
pub fn any_vendor(variable: impl Fn(&str) -> Option<String>) -> bool {
    let is_set = |name: &str| variable(name).is_some_and(|value| !value.is_empty());
    VENDORS.iter().any(|vendor| is_set(vendor.key) || is_set(vendor.base))
}

/// `anthropic:claude-x`, or a name without a vendor.
fn split(model: &str) -> (Option<&'static Vendor>, &str) {
    let vendor = |dialect| VENDORS.iter().find(|vendor| vendor.dialect == dialect);
    match Dialect::of_model(model) {
        Some((dialect, name)) => (vendor(dialect), name),
        None => (None, model),
    }
}

fn the_only(is_set: impl Fn(&str) -> bool) -> Result<&'static Vendor, ChoiceError> {
    let mut set: Vec<&Vendor> =
        VENDORS.iter().filter(|vendor| is_set(vendor.key) || is_set(vendor.base)).collect();
    set.dedup_by_key(|vendor| vendor.key);
    match set[..] {
        [] => Err(ChoiceError::NoVendor),
        [only] => Ok(only),
        _ => {
            let name = |vendor: &&Vendor| if is_set(vendor.key) { vendor.key } else { vendor.base };
            Err(ChoiceError::SeveralVendors { vendors: set.iter().map(name).collect() })
        }
    }
}

#[cfg(test)]
mod tests;

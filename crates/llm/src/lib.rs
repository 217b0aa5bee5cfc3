//! Talks to a model: chat types, vendors' wire formats, clients, cassettes, stand-ins.

pub mod cassette;

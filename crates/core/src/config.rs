//! The configuration: placeholder until the layers are written.

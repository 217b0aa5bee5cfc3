//! Plays a model vendor over HTTP: scripted, recording or replaying.

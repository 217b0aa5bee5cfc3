//! `write_file`: a whole file.

use std::sync::Arc;

use async_trait::async_trait;
use serde::Deserialize;
use tokio_util::sync::CancellationToken;

use super::blocking::to_its_end;
use super::tool::{BuiltIn, ToolError};
use crate::Permission;
use crate::worktree::{Worktree, Written};

pub(super) struct WriteFile {
    pub(super) worktree: Arc<Worktree>,
}

#[derive(Debug, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub(super) struct Arguments {
    /// The file, relative to the worktree. Directories on the way are made.
    path: String,
    /// All that is to be in it.
    content: String,
}

#[async_trait]
impl BuiltIn for WriteFile {
    type Arguments = Arguments;

    const NAME: &'static str = "write_file";
    const SCHEMA: &'static str = include_str!("../../../../schemas/tools/write_file.json");
    const ABOUT: &'static str = "Write a file of the worktree: a new one, or another content for one that is there. To change a part of \
    a file, use `edit_file`.";
    const NEEDS: Option<Permission> = Some(Permission::Write);
    const ONLY_READS: bool = false;

    async fn run(&self, asked: Arguments, _cancel: &CancellationToken) -> Result<String, ToolError> {
        let worktree = Arc::clone(&self.worktree);
        to_its_end(move || {
            let wanted = worktree.wanted(&asked.path)?;
            let did = match worktree.write(&wanted, asked.content.as_bytes())? {
                Written::Created => "created",
                Written::Replaced => "replaced",
            };
            Ok(format!("{did} `{wanted}`: {} lines", asked.content.lines().count()))
        })
        .await
    }
}

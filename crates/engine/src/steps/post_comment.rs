//! A comment under the pull request.

use rehearsal_core::{Delivery, StepFailure};
use rehearsal_forge::Comment;
use rehearsal_git::Oid;

use super::{StepContext, of_class};

impl StepContext<'_> {
    pub(super) async fn post_comment(&self, text: &str) -> Result<Delivery, StepFailure> {
        let number = self.number()?;
        let pushed = self.task.delivery.pushed.as_ref().map_or("", Oid::as_str);
        let key = format!("{}/{}/{pushed:.10}", self.task.id, self.task.state);
        let comment = Comment { key, body: text.to_owned() };
        match self.outlet.forge.comment(number, &comment).await {
            Ok(()) => Ok(self.delivery()),
            Err(error) => Err(of_class(error.class(), error.to_string())),
        }
    }
}

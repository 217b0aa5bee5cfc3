//! Standard input that says when it has ended.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, ReadBuf};
use tokio_util::sync::CancellationToken;

/// The client's end of the line. The library would let a call go on for seconds after the client has hung up; nobody
/// waits for its answer any more, so that it is stopped at once.
pub(super) struct Input<R> {
    from: R,
    ended: CancellationToken,
}

impl<R> Input<R> {
    pub(super) fn new(from: R, ended: CancellationToken) -> Self {
        Self { from, ended }
    }
}

impl<R: AsyncRead + Unpin> AsyncRead for Input<R> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = into.filled().len();
        let polled = Pin::new(&mut self.from).poll_read(cx, into);
        let ended = match &polled {
            Poll::Ready(Ok(())) => into.filled().len() == before,
            Poll::Ready(Err(_)) => true,
            Poll::Pending => false,
        };
        if ended {
            self.ended.cancel();
        }
        polled
    }
}

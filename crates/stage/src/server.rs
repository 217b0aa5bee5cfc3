//! The HTTP server. It knows nothing of models.

use std::io;
use std::net::SocketAddr;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use hyper::body::{Body as _, Bytes, Incoming};
use hyper::ext::ReasonPhrase;
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{JoinHandle, JoinSet};
use tokio_util::sync::CancellationToken;

use crate::body::Body;
use crate::play::{Answer, Asked, Play};

/// No agent sends more: contexts of a million tokens are about 4 MB, pictures come on top.
const MOST_BODY: usize = 64 * 1024 * 1024;

/// So much room is made for what a client only announces; more when it comes.
const MOST_PROMISED: usize = 1024 * 1024;

/// An agent's connection is idle while its tools run; one that says nothing for longer is not coming back.
const HEADERS_WITHIN: Duration = Duration::from_secs(600);

/// After this, whatever is still being answered when the stage closes is cut.
const DRAIN_WITHIN: Duration = Duration::from_secs(2);

/// When the system has no more connections to give, it has some again soon.
const ACCEPT_AGAIN: Duration = Duration::from_millis(50);

/// Connections that are not taken yet: a thousand agents may come at once.
const BACKLOG: u32 = 4096;

/// A server that is open until it is closed or dropped.
#[derive(Debug)]
pub struct Stage {
    address: SocketAddr,
    closing: CancellationToken,
    serving: JoinHandle<()>,
}

impl Stage {
    /// Listens, inside of a Tokio runtime. Port 0 takes any that is free; [`Stage::address`] tells which.
    pub fn open(address: SocketAddr, play: Arc<dyn Play>) -> io::Result<Self> {
        let socket = if address.is_ipv4() {
            tokio::net::TcpSocket::new_v4()
        } else {
            tokio::net::TcpSocket::new_v6()
        }?;
        socket.set_reuseaddr(true)?;
        socket.bind(address)?;
        let listener = socket.listen(BACKLOG)?;
        let address = listener.local_addr()?;
        let closing = CancellationToken::new();
        let serving = tokio::spawn(serve(listener, play, closing.clone()));
        Ok(Self { address, closing, serving })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Takes no more requests, gives those that are being answered a moment, and ends.
    pub async fn close(mut self) {
        self.closing.cancel();
        // It was aborted: then it is over as well.
        let _ = (&mut self.serving).await;
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

async fn serve(listener: TcpListener, play: Arc<dyn Play>, closing: CancellationToken) {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            () = closing.cancelled() => break,
            Some(_) = connections.join_next(), if !connections.is_empty() => {}
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => {
                    connections.spawn(converse(stream, Arc::clone(&play), closing.clone()));
                }
                Err(_) => tokio::time::sleep(ACCEPT_AGAIN).await,
            },
        }
    }
    drop(listener);
    let drained = async { while connections.join_next().await.is_some() {} };
    if tokio::time::timeout(DRAIN_WITHIN, drained).await.is_err() {
        connections.shutdown().await;
    }
}

async fn converse(stream: TcpStream, play: Arc<dyn Play>, closing: CancellationToken) {
    // Frames are small, and each is to arrive when it is sent. A socket that is gone cannot be told.
    let _ = stream.set_nodelay(true);
    let service = service_fn(move |request| {
        let play = Arc::clone(&play);
        async move { Ok::<_, std::convert::Infallible>(answer(request, &*play).await) }
    });
    let connection = hyper::server::conn::http1::Builder::new()
        // The one header that would differ from run to run.
        .auto_date_header(false)
        .timer(TokioTimer::new())
        .header_read_timeout(HEADERS_WITHIN)
        .serve_connection(TokioIo::new(stream), service);
    let mut connection = pin!(connection);
    tokio::select! {
        // A client that goes away, or an answer that is cut on purpose, is no error of the stage.
        _ = connection.as_mut() => return,
        () = closing.cancelled() => connection.as_mut().graceful_shutdown(),
    }
    let _ = connection.await;
}

async fn answer(request: Request<Incoming>, play: &dyn Play) -> Response<Body> {
    let (head, body) = request.into_parts();
    let body = match read_whole(body).await {
        Ok(body) => body,
        Err(status) => return response(Answer::empty(status).with("connection", "close")),
    };
    let path = head.uri.path_and_query().map_or_else(|| head.uri.path().to_owned(), ToString::to_string);
    response(play.answer(Asked { method: head.method, path, headers: head.headers, body }).await)
}

fn response(answer: Answer) -> Response<Body> {
    let mut response = Response::new(answer.body);
    if answer.status.as_u16() == 529 {
        // Anthropic's own; `http` has no words for it, and hyper would write `<none>`.
        response.extensions_mut().insert(ReasonPhrase::from_static(b"Overloaded"));
    }
    *response.status_mut() = answer.status;
    *response.headers_mut() = answer.headers;
    response
}

/// The whole body, or the status to refuse it with.
async fn read_whole(mut body: Incoming) -> Result<Bytes, StatusCode> {
    if body.size_hint().lower() > MOST_BODY as u64 {
        return Err(StatusCode::PAYLOAD_TOO_LARGE);
    }
    let mut whole: Vec<u8> = Vec::new();
    let mut first = Bytes::new();
    while let Some(frame) = next_frame(&mut body).await {
        let data = frame.map_err(|_| StatusCode::BAD_REQUEST)?.into_data().unwrap_or_default();
        if whole.len() + first.len() + data.len() > MOST_BODY {
            return Err(StatusCode::PAYLOAD_TOO_LARGE);
        }
        // Most bodies come in one piece, which then need not be copied.
        if whole.is_empty() && first.is_empty() {
            first = data;
            continue;
        }
        if whole.is_empty() {
            let left = usize::try_from(body.size_hint().lower()).unwrap_or(usize::MAX).min(MOST_PROMISED);
            whole.reserve(first.len() + data.len() + left);
            whole.extend_from_slice(&std::mem::take(&mut first));
        }
        whole.extend_from_slice(&data);
    }
    Ok(if whole.is_empty() { first } else { whole.into() })
}

async fn next_frame(body: &mut Incoming) -> Option<Result<hyper::body::Frame<Bytes>, hyper::Error>> {
    std::future::poll_fn(|context: &mut Context<'_>| -> Poll<_> { Pin::new(&mut *body).poll_frame(context) })
        .await
}

//! A listener whose connections can be cut from within a handler, before or after bytes were written.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use std::{io, time::Duration};

use axum::extract::connect_info::Connected;
use axum::serve::{IncomingStream, Listener};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};

/// After an accept error (no file descriptors left, as a rule) the listener waits before it tries again.
const ACCEPT_ERROR_PAUSE: Duration = Duration::from_millis(100);

/// The handle with which a handler cuts the connection that its request came from.
#[derive(Debug, Clone, Default)]
pub(crate) struct Peer {
    cut: Arc<AtomicBool>,
}

impl Peer {
    /// From now on every write fails, so the client sees the connection end.
    pub(crate) fn cut(&self) {
        self.cut.store(true, Ordering::Release);
    }
}

#[derive(Debug)]
pub(crate) struct CuttableListener(pub(crate) TcpListener);

#[derive(Debug)]
pub(crate) struct CuttableStream {
    stream: TcpStream,
    peer: Peer,
}

impl Listener for CuttableListener {
    type Io = CuttableStream;
    type Addr = Peer;

    async fn accept(&mut self) -> (CuttableStream, Peer) {
        loop {
            match self.0.accept().await {
                Ok((stream, _)) => {
                    let peer = Peer::default();
                    return (
                        CuttableStream {
                            stream,
                            peer: peer.clone(),
                        },
                        peer,
                    );
                }
                Err(error) => {
                    tracing::warn!(%error, "accept a connection");
                    tokio::time::sleep(ACCEPT_ERROR_PAUSE).await;
                }
            }
        }
    }

    fn local_addr(&self) -> io::Result<Peer> {
        Ok(Peer::default())
    }
}

impl Connected<IncomingStream<'_, CuttableListener>> for Peer {
    fn connect_info(stream: IncomingStream<'_, CuttableListener>) -> Self {
        stream.remote_addr().clone()
    }
}

impl CuttableStream {
    fn check(&self) -> io::Result<()> {
        if self.peer.cut.load(Ordering::Acquire) {
            Err(io::ErrorKind::ConnectionReset.into())
        } else {
            Ok(())
        }
    }
}

impl AsyncRead for CuttableStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        ctx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(ctx, buffer)
    }
}

impl AsyncWrite for CuttableStream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        ctx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.check()?;
        Pin::new(&mut self.stream).poll_write(ctx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, ctx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.check()?;
        Pin::new(&mut self.stream).poll_flush(ctx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, ctx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(ctx)
    }
}

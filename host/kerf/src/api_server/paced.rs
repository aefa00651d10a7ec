//! Requests go at a pace. One that must wait for its turn is not taken yet, so they go in the order in which they came.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use kerf_controllers::pace::Pace;
use tokio::time::{Instant, Sleep, sleep_until};
use tower::{Layer, Service};

/// Puts the pace before a service.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PacedLayer(pub(crate) Pace);

impl<S> Layer<S> for PacedLayer {
    type Service = Paced<S>;

    fn layer(&self, inner: S) -> Paced<S> {
        Paced {
            inner,
            pace: self.0,
            turn: None,
        }
    }
}

/// A service that is ready when the pace allows it.
#[derive(Debug)]
pub(crate) struct Paced<S> {
    inner: S,
    pace: Pace,
    turn: Option<Pin<Box<Sleep>>>,
}

impl<S: Service<R>, R> Service<R> for Paced<S> {
    type Response = S::Response;
    type Error = S::Error;
    type Future = S::Future;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        loop {
            if let Some(turn) = &mut self.turn {
                ready!(turn.as_mut().poll(context));
                self.turn = None;
            }
            let now = Instant::now();
            let due = self.pace.due(now);
            if due <= now {
                return self.inner.poll_ready(context);
            }
            self.turn = Some(Box::pin(sleep_until(due)));
        }
    }

    fn call(&mut self, request: R) -> S::Future {
        self.pace.take(Instant::now());
        self.inner.call(request)
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;
    use std::future::{Ready, poll_fn, ready};
    use std::time::Duration;

    use super::*;

    struct Echo;

    impl Service<u8> for Echo {
        type Response = u8;
        type Error = Infallible;
        type Future = Ready<Result<u8, Infallible>>;

        fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
            Poll::Ready(Ok(()))
        }

        fn call(&mut self, request: u8) -> Self::Future {
            ready(Ok(request))
        }
    }

    #[tokio::test]
    async fn a_request_beyond_the_burst_waits_for_its_own_turn_only() {
        let pause = Duration::from_millis(20);
        let mut service = PacedLayer(Pace::new(pause, 2)).layer(Echo);
        let start = Instant::now();
        for request in 0..4 {
            poll_fn(|context| service.poll_ready(context))
                .await
                .unwrap();
            assert_eq!(service.call(request).await, Ok(request));
        }

        assert!(start.elapsed() >= 2 * pause, "{:?}", start.elapsed());
    }
}

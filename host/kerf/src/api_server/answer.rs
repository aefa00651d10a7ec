//! How long the API server may take for one request. The time that a request waits for its turn is not counted.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use http::Request;
use kube::core::Status;
use tower::{BoxError, Layer, Service};

/// Puts the limit on every request whose answer has an end.
#[derive(Debug, Clone, Copy)]
pub(crate) struct AnswerLayer {
    max: Duration,
}

impl AnswerLayer {
    pub(crate) fn new(max: Duration) -> Self {
        Self { max }
    }
}

impl<S> Layer<S> for AnswerLayer {
    type Service = Answer<S>;

    fn layer(&self, inner: S) -> Answer<S> {
        Answer {
            inner,
            max: self.max,
        }
    }
}

/// A service that answers in time, or with the 504 that a gateway would give.
#[derive(Debug, Clone)]
pub(crate) struct Answer<S> {
    inner: S,
    max: Duration,
}

impl<S, B> Service<Request<B>> for Answer<S>
where
    S: Service<Request<B>, Error = BoxError>,
    S::Future: Send + 'static,
{
    type Response = S::Response;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<S::Response, BoxError>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let is_long = is_long(request.uri().query().unwrap_or_default());
        let answer = self.inner.call(request);
        if is_long {
            return Box::pin(answer);
        }
        let max = self.max;
        Box::pin(async move {
            let answered = tokio::time::timeout(max, answer).await;
            answered.unwrap_or_else(|_| Err(Box::new(timed_out(max))))
        })
    }
}

/// A watch has no end, and a page of a first list takes what it takes. Pure.
fn is_long(query: &str) -> bool {
    query
        .split('&')
        .any(|it| it.starts_with("watch=") || it.starts_with("limit="))
}

fn timed_out(max: Duration) -> kube::Error {
    let message = format!(
        "the API server did not answer within {} s",
        max.as_secs_f64()
    );
    kube::Error::Api(Status::failure(&message, "Timeout").with_code(504).boxed())
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use tower::limit::RateLimitLayer;

    use super::*;

    const MAX: Duration = Duration::from_millis(150);

    /// A server that takes `for_answer` and tells nothing.
    fn server(
        for_answer: Duration,
    ) -> impl Service<Request<()>, Response = (), Error = BoxError, Future: Send> + Clone {
        tower::service_fn(move |_: Request<()>| async move {
            let nothing = std::future::pending::<()>();
            let _ = tokio::time::timeout(for_answer, nothing).await;
            Ok::<(), Infallible>(()).map_err(BoxError::from)
        })
    }

    async fn send<S>(service: &mut S, uri: &str) -> Result<(), String>
    where
        S: Service<Request<()>, Response = (), Error = BoxError>,
    {
        let request = Request::builder().uri(uri).body(()).unwrap();
        let is_ready = std::future::poll_fn(|context| service.poll_ready(context)).await;
        is_ready.map_err(|error| error.to_string())?;
        let answer = service.call(request).await;
        answer.map_err(|error| error.to_string())
    }

    fn block_on<T>(future: impl Future<Output = T>) -> T {
        let mut builder = tokio::runtime::Builder::new_current_thread();
        builder.enable_time().build().unwrap().block_on(future)
    }

    #[test]
    fn a_request_that_waits_for_its_turn_longer_than_its_answer_may_take_is_not_given_up() {
        block_on(async {
            let turn = RateLimitLayer::new(1, MAX * 2);
            let mut service = turn.layer(AnswerLayer::new(MAX).layer(server(Duration::ZERO)));

            assert_eq!(send(&mut service, "/api/v1/pods/a").await, Ok(()));
            assert_eq!(send(&mut service, "/api/v1/pods/b").await, Ok(()));
        });
    }

    #[test]
    fn a_server_that_hangs_does_not_hold_a_request_for_ever_but_may_hold_a_watch() {
        let mut service = AnswerLayer::new(MAX).layer(server(MAX * 2));

        block_on(async {
            let late = send(&mut service, "/api/v1/pods/a?fieldManager=kerf").await;
            assert!(late.unwrap_err().contains("did not answer within"));
            let watch = send(&mut service, "/api/v1/pods?&watch=true&timeoutSeconds=290").await;
            assert_eq!(watch, Ok(()));
        });
    }
}

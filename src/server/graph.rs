//! `/graph`, a page about what this process sees, `/graph.json`, its data, and `/graph.json?drawing`, the graph that it
//! draws.
//!
//! Without a viewer no work is done: a visible page requests the data every two seconds, and all pages
//! share an answer within [`FRESH`].

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::Router;
use axum::extract::{RawQuery, State};
use axum::response::{IntoResponse as _, Response};
use axum::routing::get;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http::HeaderMap;
use http::{HeaderValue, StatusCode, header};
use sha2::{Digest as _, Sha256};
use tokio::time::Instant;

/// How long an answer is reused before the graph is read again.
const FRESH: Duration = Duration::from_millis(500);

const FRAME: &str = include_str!("graph/page.html");
const STYLE: &str = include_str!("graph/page.css");
const SCRIPT: &str = concat!(
    include_str!("graph/picture.js"),
    include_str!("graph/sections.js"),
    include_str!("graph/drawing.js"),
    include_str!("graph/page.js")
);

/// Returns what is known now as JSON.
pub type GraphSource = Arc<dyn Fn() -> Vec<u8> + Send + Sync>;

/// The page and its data.
#[derive(Clone)]
pub struct GraphPage {
    graph: Document,
    drawing: Document,
    page: Page,
}

/// A document, and its last answer.
#[derive(Clone)]
struct Document {
    source: GraphSource,
    answered: Arc<Mutex<Option<CachedAnswer>>>,
}

#[derive(Clone)]
struct CachedAnswer {
    at: Instant,
    body: Bytes,
    etag: HeaderValue,
}

#[derive(Clone)]
struct Page {
    body: Bytes,
    policy: HeaderValue,
}

impl GraphPage {
    pub fn new(graph: GraphSource, drawing: GraphSource) -> Self {
        Self { graph: Document::new(graph), drawing: Document::new(drawing), page: Page::new() }
    }
}

impl Document {
    fn new(source: GraphSource) -> Self {
        Self { source, answered: Arc::default() }
    }

    /// The current answer. Computed once at a time: concurrent requests share it.
    fn answer(&self) -> CachedAnswer {
        let mut answered = self.answered.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(answered) = answered.as_ref().filter(|answered| answered.at.elapsed() < FRESH) {
            return answered.clone();
        }
        let body = Bytes::from((self.source)());
        let etag = header_of(format!("\"{}\"", hash(&body)));
        let now = CachedAnswer { at: Instant::now(), body, etag };
        *answered = Some(now.clone());
        now
    }
}

impl Page {
    /// The page in one piece; its policy permits exactly its own style and script, and requests only to
    /// this process.
    fn new() -> Self {
        let body = FRAME.replace("/*STYLE*/", STYLE).replace("/*SCRIPT*/", SCRIPT);
        let policy = format!(
            "default-src 'none'; style-src 'sha256-{}'; script-src 'sha256-{}'; connect-src 'self'; \
             base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
            hash(STYLE.as_bytes()),
            hash(SCRIPT.as_bytes())
        );
        Self { body: Bytes::from(body), policy: header_of(policy) }
    }
}

fn hash(bytes: &[u8]) -> String {
    STANDARD.encode(Sha256::digest(bytes))
}

/// Of text in base64 and fixed words.
fn header_of(text: String) -> HeaderValue {
    HeaderValue::try_from(text).unwrap_or(HeaderValue::from_static(""))
}

/// Routes of the graph.
pub fn router(graph: GraphPage) -> Router {
    Router::new().route("/graph", get(page)).route("/graph.json", get(json)).with_state(graph)
}

async fn page(State(graph): State<GraphPage>) -> Response {
    let Page { body, policy } = graph.page;
    let headers = [
        (header::CONTENT_TYPE, HeaderValue::from_static("text/html; charset=utf-8")),
        (header::CONTENT_SECURITY_POLICY, policy),
        (header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff")),
        (header::REFERRER_POLICY, HeaderValue::from_static("no-referrer")),
        (header::CACHE_CONTROL, HeaderValue::from_static("no-cache")),
    ];
    (headers, body).into_response()
}

async fn json(State(page): State<GraphPage>, RawQuery(query): RawQuery, headers: HeaderMap) -> Response {
    let document = if query.as_deref() == Some("drawing") { page.drawing } else { page.graph };
    let Ok(answered) = tokio::task::spawn_blocking(move || document.answer()).await else {
        return (StatusCode::INTERNAL_SERVER_ERROR, "the graph could not be drawn\n").into_response();
    };
    let known = headers.get(header::IF_NONE_MATCH).is_some_and(|etag| *etag == answered.etag);
    let headers = [
        (header::ETAG, answered.etag),
        (header::CONTENT_TYPE, HeaderValue::from_static("application/json")),
        (header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff")),
        (header::CACHE_CONTROL, HeaderValue::from_static("no-cache")),
    ];
    if known {
        return (StatusCode::NOT_MODIFIED, headers).into_response();
    }
    (headers, answered.body).into_response()
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use axum::body::Body;
    use axum::extract::Request;
    use http_body_util::BodyExt as _;
    use tower::ServiceExt as _;

    use super::*;

    /// Counts the reads of the graph; each returns another one.
    fn graph() -> (GraphPage, Arc<AtomicUsize>) {
        let looks = Arc::new(AtomicUsize::new(0));
        let count = looks.clone();
        let graph =
            Arc::new(move || format!("{{\"look\": {}}}", count.fetch_add(1, Ordering::SeqCst)).into());
        (GraphPage::new(graph, Arc::new(|| b"drawn".to_vec())), looks)
    }

    async fn ask(graph: &GraphPage, path: &str, headers: &[(&str, &str)]) -> Response {
        let mut request = Request::get(path);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        router(graph.clone()).oneshot(request.body(Body::empty()).unwrap()).await.unwrap()
    }

    async fn text(response: Response) -> String {
        String::from_utf8(response.into_body().collect().await.unwrap().to_bytes().to_vec()).unwrap()
    }

    #[tokio::test(start_paused = true)]
    async fn an_answer_is_computed_once_within_a_moment_and_sent_once() {
        let (graph, looks) = graph();
        let here = ("host", "localhost:8080");
        let first = ask(&graph, "/graph.json", &[here]).await;
        let etag = first.headers()["etag"].to_str().unwrap().to_owned();
        assert_eq!(text(first).await, "{\"look\": 0}");
        let again = ask(&graph, "/graph.json", &[here, ("if-none-match", &etag)]).await;
        assert_eq!((again.status(), looks.load(Ordering::SeqCst)), (StatusCode::NOT_MODIFIED, 1));
        assert_eq!(text(again).await, "");
        tokio::time::advance(FRESH * 2).await;
        let changed = ask(&graph, "/graph.json", &[here, ("if-none-match", &etag)]).await;
        assert_eq!(text(changed).await, "{\"look\": 1}");
        let drawing = ask(&graph, "/graph.json?drawing", &[here, ("if-none-match", &etag)]).await;
        assert_eq!((text(drawing).await.as_str(), looks.load(Ordering::SeqCst)), ("drawn", 2));
    }

    #[tokio::test]
    async fn the_page_is_one_piece_and_runs_nothing_but_its_own() {
        let (graph, _) = graph();
        let page = ask(&graph, "/graph", &[("host", "127.0.0.1:8080")]).await;
        let policy = page.headers()["content-security-policy"].to_str().unwrap().to_owned();
        assert!(policy.starts_with("default-src 'none'; style-src 'sha256-"), "{policy}");
        assert!(!policy.contains("unsafe"), "{policy}");
        let html = text(page).await;
        assert!(html.contains(SCRIPT) && html.contains(STYLE));
        for elsewhere in ["http://", "https://", "src=", "@import", "url("] {
            let found = html.replace("http://www.w3.org/2000/svg", "");
            assert!(!found.contains(elsewhere), "{elsewhere}");
        }
        for markup in ["innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval("] {
            assert!(!SCRIPT.contains(markup), "{markup}");
        }
    }
}

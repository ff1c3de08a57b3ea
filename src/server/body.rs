//! Reads the body of a review: type, size, time and memory are bounded while it streams.

use std::time::Duration;

use axum::body::Body;
use bytes::Bytes;
use http::{HeaderMap, StatusCode, header};
use http_body_util::BodyExt as _;
use hyper::body::Frame;
use tokio::time::Instant;

use super::in_flight::{InFlight, Share};
use super::limits::Limits;
use crate::telemetry::metrics::Cap;

/// A complete body, and its share of the memory.
pub struct HeldBody {
    pub bytes: Bytes,
    /// What it takes of the memory.
    pub share: Share,
}

/// Why a body was not read.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum BodyRefused {
    /// Not JSON, by its header; the header's value.
    #[error("Content-Type is {0:?}; a review is application/json")]
    ContentType(String),
    /// Compressed, which the API server never sends; the header's value.
    #[error("Content-Encoding is {0:?}; send the review as it is")]
    ContentEncoding(String),
    /// Larger than the limit of one body; the limit.
    #[error("the body is larger than {0} bytes")]
    TooLarge(usize),
    /// Slower than the timeout; the timeout.
    #[error("the body did not arrive within {0:?}")]
    TooSlow(Duration),
    /// All bodies in flight have used up the memory limit.
    #[error("too many bytes of reviews are in memory; try again")]
    NoRoom,
    /// The connection ended first; hyper's error.
    #[error("the body broke off: {0}")]
    Broken(String),
}

impl BodyRefused {
    /// Status code of the answer.
    pub fn status(&self) -> StatusCode {
        match self {
            Self::ContentType(_) | Self::ContentEncoding(_) => StatusCode::UNSUPPORTED_MEDIA_TYPE,
            Self::TooLarge(_) => StatusCode::PAYLOAD_TOO_LARGE,
            Self::TooSlow(_) => StatusCode::REQUEST_TIMEOUT,
            Self::NoRoom => StatusCode::TOO_MANY_REQUESTS,
            Self::Broken(_) => StatusCode::BAD_REQUEST,
        }
    }

    /// The limit that metrics count.
    pub fn cap(&self) -> Cap {
        match self {
            Self::ContentType(_) | Self::ContentEncoding(_) | Self::Broken(_) => Cap::Malformed,
            Self::TooLarge(_) => Cap::BodyBytes,
            Self::TooSlow(_) => Cap::BodyDeadline,
            Self::NoRoom => Cap::InFlightBytes,
        }
    }
}

/// Initial buffer of a body that comes in pieces; most reviews are smaller.
const INITIAL_CAPACITY: usize = 64 * 1024;
/// In which more than [`PACE`] of a body has to come where memory is short.
const STALLED: Duration = Duration::from_secs(1);
/// Bytes of a body in that time.
const PACE: usize = 64 * 1024;
/// How long is waited for room: what stalls gives it back within that.
const FOR_ROOM: Duration = Duration::from_millis(1_500);
/// Bytes of a refused body that are still read and discarded.
const REST_TO_DISCARD: usize = 16 * 1024 * 1024;

/// Reads a whole body.
pub async fn read(
    headers: &HeaderMap,
    mut body: Body,
    limits: &Limits,
    share: Share,
    in_flight: &InFlight,
) -> Result<HeldBody, BodyRefused> {
    let refused = match check_headers(headers) {
        Err(refused) => refused,
        Ok(()) => {
            let declared = declared_length(headers);
            let read = read_frames(&mut body, declared, limits, share, in_flight);
            match tokio::time::timeout(limits.body, read).await {
                Ok(Err(refused @ (BodyRefused::TooLarge(_) | BodyRefused::NoRoom))) => refused,
                Ok(result) => return result,
                Err(_) => return Err(BodyRefused::TooSlow(limits.body)),
            }
        }
    };
    discard(body, limits).await;
    Err(refused)
}

/// Reads the rest of a body, within bounds: if the connection resets while the peer still sends, the peer
/// may never read the answer, and the API server does not retry such a call.
pub async fn discard(mut body: Body, limits: &Limits) {
    let _ = tokio::time::timeout(limits.discard.min(limits.body), discard_frames(&mut body)).await;
}

fn check_headers(headers: &HeaderMap) -> Result<(), BodyRefused> {
    let text = |name| headers.get(name).map(|v| String::from_utf8_lossy(v.as_bytes()).into_owned());
    let kind = text(header::CONTENT_TYPE).unwrap_or_default();
    let essence = kind.split(';').next().unwrap_or_default().trim();
    if !essence.eq_ignore_ascii_case("application/json") {
        return Err(BodyRefused::ContentType(kind));
    }
    match text(header::CONTENT_ENCODING) {
        Some(encoding) if !encoding.eq_ignore_ascii_case("identity") => {
            Err(BodyRefused::ContentEncoding(encoding))
        }
        _ => Ok(()),
    }
}

fn declared_length(headers: &HeaderMap) -> Option<usize> {
    headers.get(header::CONTENT_LENGTH)?.to_str().ok()?.parse().ok()
}

async fn read_frames(
    body: &mut Body,
    declared: Option<usize>,
    limits: &Limits,
    mut share: Share,
    in_flight: &InFlight,
) -> Result<HeldBody, BodyRefused> {
    let limit = limits.body_bytes;
    if declared.is_some_and(|length| length > limit) {
        return Err(BodyRefused::TooLarge(limit));
    }
    let mut pieces = Pieces::None;
    let mut length = 0;
    let mut pace = Pace::default();
    while let Some(frame) = next_frame(body, &mut pace, &share, in_flight).await? {
        let frame = frame.map_err(|error| BodyRefused::Broken(error.to_string()))?;
        let Ok(data) = frame.into_data() else { continue };
        length += data.len();
        pace.came += data.len();
        if length > limit {
            return Err(BodyRefused::TooLarge(limit));
        }
        // Memory is counted as data arrives, so that announcing a size reserves nothing.
        let room = tokio::time::timeout(FOR_ROOM, share.grow_soon(data.len()));
        room.await.map_err(|_| BodyRefused::NoRoom)?;
        pieces = pieces.append(data, declared.unwrap_or(0).min(INITIAL_CAPACITY));
    }
    Ok(HeldBody { bytes: pieces.joined(), share })
}

/// How much of a body has come since when.
struct Pace {
    since: Instant,
    came: usize,
}

impl Default for Pace {
    fn default() -> Self {
        Self { since: Instant::now(), came: 0 }
    }
}

/// The next piece. Where memory is short, a body that comes slowly gives way to others, unless it is an API server's.
async fn next_frame(
    body: &mut Body,
    pace: &mut Pace,
    share: &Share,
    in_flight: &InFlight,
) -> Result<Option<Result<Frame<Bytes>, axum::Error>>, BodyRefused> {
    loop {
        let frame = tokio::time::timeout_at(pace.since + STALLED, body.frame()).await.ok();
        if pace.since.elapsed() >= STALLED {
            if frame.is_none() && pace.came < PACE && in_flight.is_crowded() && !share.is_of_api_server() {
                return Err(BodyRefused::TooSlow(STALLED));
            }
            *pace = Pace::default();
        }
        if let Some(frame) = frame {
            return Ok(frame);
        }
    }
}

/// The body so far: most come in one piece, which is used as it is.
enum Pieces {
    None,
    One(Bytes),
    More(Vec<u8>),
}

impl Pieces {
    /// Adds a piece; `expected` is the likely size of the whole body.
    fn append(self, piece: Bytes, expected: usize) -> Self {
        let mut joined = match self {
            Self::None => return Self::One(piece),
            Self::One(first) => {
                let mut joined = Vec::with_capacity(expected);
                joined.extend_from_slice(&first);
                joined
            }
            Self::More(joined) => joined,
        };
        joined.extend_from_slice(&piece);
        Self::More(joined)
    }

    fn joined(self) -> Bytes {
        match self {
            Self::None => Bytes::new(),
            Self::One(piece) => piece,
            Self::More(joined) => joined.into(),
        }
    }
}

async fn discard_frames(body: &mut Body) {
    let mut rest = REST_TO_DISCARD;
    while let Some(Ok(frame)) = body.frame().await {
        let Some(left) = rest.checked_sub(frame.data_ref().map_or(0, Bytes::len)) else { return };
        rest = left;
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;
    use std::sync::Arc;

    use futures::stream;
    use http::HeaderValue;
    use rstest::rstest;

    use super::*;
    use crate::telemetry::metrics::Metrics;

    #[rstest]
    #[case::none(&[], Ok(""))]
    #[case::whole(&["review"], Ok("review"))]
    #[case::in_pieces(&["re", "", "vi", "ew"], Ok("review"))]
    #[case::whole_and_too_large(&["reviews"], Err(BodyRefused::TooLarge(6)))]
    #[case::too_large_in_pieces(&["review", "s"], Err(BodyRefused::TooLarge(6)))]
    #[tokio::test]
    async fn a_body_is_the_same_however_it_comes(
        #[case] pieces: &'static [&'static str],
        #[case] expected: Result<&str, BodyRefused>,
    ) {
        let frames = stream::iter(pieces.iter().map(|piece| Ok::<_, Infallible>(*piece)));
        let headers =
            HeaderMap::from_iter([(header::CONTENT_TYPE, HeaderValue::from_static("application/json"))]);
        let limits = Limits { body_bytes: 6, ..Limits::default() };
        let in_flight = InFlight::new(&limits, Arc::new(Metrics::new()));
        let share = in_flight.share(None);
        let read = read(&headers, Body::from_stream(frames), &limits, share, &in_flight).await;
        assert_eq!(read.map(|held| held.bytes), expected.map(|text| Bytes::copy_from_slice(text.as_bytes())));
    }
}

//! `limitador ADDRESS FILE`: answers Envoy's questions with Limitador's library, by the limits of a file that is read
//! again where it has changed, and prints each question. Where the file is wrong, the limits that were stay.

mod grpc;

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::Context as _;
use limitador::RateLimiter;
use limitador::limit::{Context, Limit};
use prost::Message;
use serde_json::json;

/// `envoy.service.ratelimit.v3.RateLimitRequest`
#[derive(Clone, PartialEq, Message)]
struct Question {
    #[prost(string, tag = "1")]
    domain: String,
    #[prost(message, repeated, tag = "2")]
    descriptors: Vec<Descriptor>,
    #[prost(uint32, tag = "3")]
    hits_addend: u32,
}

/// `envoy.extensions.common.ratelimit.v3.RateLimitDescriptor`
#[derive(Clone, PartialEq, Message)]
struct Descriptor {
    #[prost(message, repeated, tag = "1")]
    entries: Vec<Entry>,
}

#[derive(Clone, PartialEq, Message)]
struct Entry {
    #[prost(string, tag = "1")]
    key: String,
    #[prost(string, tag = "2")]
    value: String,
}

/// `envoy.service.ratelimit.v3.RateLimitResponse`
#[derive(Clone, PartialEq, Message)]
struct Answer {
    #[prost(int32, tag = "1")]
    overall_code: i32,
}

const OK: i32 = 1;
const OVER_LIMIT: i32 = 2;

struct Server {
    limiter: RateLimiter,
    file: PathBuf,
    read: Mutex<Vec<u8>>,
}

impl Server {
    /// The limits of the file, where it is another one than it was.
    fn refresh(&self) -> anyhow::Result<()> {
        let mut read = self.read.lock().unwrap_or_else(PoisonError::into_inner);
        let found = std::fs::read(&self.file)?;
        if *read != found {
            let limits: Vec<Limit> = serde_saphyr::from_slice(&found).context("the file of limits")?;
            self.limiter.configure_with(limits).map_err(|error| anyhow::anyhow!("{error}"))?;
            *read = found;
        }
        Ok(())
    }

    fn decide(&self, question: &Question) -> anyhow::Result<bool> {
        if let Err(error) = self.refresh() {
            eprintln!("{error:#}");
        }
        let values = |descriptor: &Descriptor| -> HashMap<String, String> {
            descriptor.entries.iter().map(|entry| (entry.key.clone(), entry.value.clone())).collect()
        };
        let descriptors: Vec<_> = question.descriptors.iter().map(values).collect();
        let asked = json!({"domain": question.domain, "descriptors": descriptors});
        let mut context = Context::default();
        context.list_binding("descriptors".to_owned(), descriptors);
        let domain = question.domain.as_str().into();
        let hits = u64::from(question.hits_addend.max(1));
        let checked = self.limiter.check_rate_limited_and_update(&domain, &context, hits);
        let limited = checked.map_err(|error| anyhow::anyhow!("{error}"))?.limited;
        println!("{}", json!({"asked": asked, "limited": limited}));
        Ok(limited)
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> anyhow::Result<()> {
    let mut arguments = std::env::args().skip(1);
    let (Some(address), Some(file)) = (arguments.next(), arguments.next()) else {
        anyhow::bail!("usage: limitador ADDRESS FILE");
    };
    let server = Server { limiter: RateLimiter::new(10_000), file: file.into(), read: Mutex::default() };
    let decide = move |message: &[u8]| {
        let limited = server.decide(&Question::decode(message)?)?;
        Ok(Answer { overall_code: if limited { OVER_LIMIT } else { OK } }.encode_to_vec())
    };
    grpc::serve(&address, Arc::new(decide)).await
}

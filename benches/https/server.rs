//! Our server as `interlock run` wires it, without a cluster: the real doors and the accept
//! loop, with either the real rules or a reviewer that only parses the uid.

use std::borrow::Cow;
use std::io;
use std::path::Path;
use std::sync::{Arc, OnceLock};

use interlock::server::accept::{DRAIN, Port};
use interlock::server::admission::Admission;
use interlock::server::callers::Callers;
use interlock::server::in_flight::InFlight;
use interlock::server::limits::Limits;
use interlock::server::shutdown::Shutdown;
use interlock::server::tls::{CertificateResolver, MinVersion, Pair};
use interlock::server::webhook_routes;
use interlock::server::webhook_routes::{Reviewer, WebhookRoutes};
use interlock::telemetry::log;
use interlock::telemetry::metrics::Metrics;
use interlock::telemetry::readiness::Readiness;
use interlock_core::admission::{
    AdmissionAnswer, BadReview, CacheWait, Config, DecisionKind, DecisionRecord, Freeze, Reply,
    WebhookEndpoint,
};
use interlock_core::api::meta;
use interlock_core::api::text::Text;
use serde::Deserialize;
use tokio::net::TcpListener;
use tokio::sync::watch;

use super::{OURS, reviews};

/// Serves reviews of about so many bytes, on one thread, until its input ends; says first where.
pub fn serve(what: &str, bytes: &str, folder: &Path) {
    let bytes = bytes.parse().expect("a number of bytes");
    std::thread::spawn(|| {
        let ended = io::copy(&mut io::stdin(), &mut io::sink());
        std::process::exit(i32::from(ended.is_err()));
    });
    // As `interlock run` logs by default, in a cluster.
    log::start("info", log::Format::Json).expect("a filter");
    let reviewer: Arc<dyn Reviewer> =
        if what == OURS { Arc::new(rules(bytes)) } else { Arc::new(OnlyTheUid) };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        println!("{}", listener.local_addr().expect("an address"));
        port(reviewer, folder).serve(listener, DRAIN).await;
    });
}

fn rules(bytes: usize) -> Admission {
    let config =
        Config { controller_user: meta::CONTROLLER_USER.to_owned(), freeze: Freeze::Strict, docs: None };
    let view = Arc::new(reviews::update(bytes).view);
    // No supervisor: the view is whole.
    let capabilities = watch::channel(Arc::default()).1;
    Admission {
        kinds: interlock_core::kinds::guarded(interlock_core::kinds::ALL),
        lister: view,
        config: Arc::new(OnceLock::from(config)),
        capabilities,
    }
}

fn port(reviewer: Arc<dyn Reviewer>, folder: &Path) -> Port {
    let (limits, metrics, resolver) =
        (Limits::default(), Arc::new(Metrics::new()), CertificateResolver::new());
    let file = |name: &str| std::fs::read(folder.join(name)).expect("a certificate");
    resolver.show(Pair::from_pem(&file("tls.crt"), &file("tls.key")).expect("a pair"));
    let in_flight = InFlight::new(limits.in_flight_bytes, metrics.clone());
    let readiness = Readiness::new();
    let callers = Arc::new(Callers::default());
    let app = webhook_routes::router(WebhookRoutes {
        kinds: interlock_core::kinds::ALL,
        reviewer,
        callers: callers.clone(),
        arrivals: Arc::default(),
        readiness,
        limits,
        in_flight,
        metrics: metrics.clone(),
    });
    let tls = Some(resolver.server_config(MinVersion::default()).into());
    Port { app, tls, callers, limits, shutdown: Shutdown::new(), metrics }
}

/// The least that a webhook can do: the answer repeats the uid of the review.
struct OnlyTheUid;

#[derive(Deserialize)]
struct Review<'a> {
    #[serde(borrow)]
    request: Request<'a>,
}

#[derive(Deserialize)]
struct Request<'a> {
    #[serde(borrow)]
    uid: Cow<'a, str>,
}

impl Reviewer for OnlyTheUid {
    fn decide<'a>(
        &self,
        _: WebhookEndpoint,
        body: &'a [u8],
        _: CacheWait,
    ) -> Result<AdmissionAnswer<'a>, BadReview> {
        let review: Review<'_> = serde_json::from_slice(body).map_err(|e| BadReview(e.to_string()))?;
        let uid = review.request.uid;
        let body = format!(
            r#"{{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","response":{{"uid":"{uid}","allowed":true}}}}"#
        );
        let record = DecisionRecord {
            uid: Text(uid),
            operation: Text::default(),
            group: Text::default(),
            kind: Text::default(),
            namespace: Text::default(),
            name: Text::default(),
            user: Text::default(),
            rules: Vec::new(),
            admitted: Vec::new(),
            verdict: DecisionKind::Allowed,
            plan: None,
            dry_run: false,
        };
        Ok(AdmissionAnswer::Done(Reply { body: body.into_bytes(), record }))
    }
}

//! Our server as `interlock run` wires it, without a cluster: the real doors and the accept
//! loop, with any reviewer.

use std::borrow::Cow;
use std::io;
use std::path::Path;
use std::sync::Arc;

use interlock::server::accept::{DRAIN, Port};
use interlock::server::callers::Callers;
use interlock::server::in_flight::InFlight;
use interlock::server::limits::Limits;
use interlock::server::shutdown::Shutdown;
use interlock::server::tls::{CertificateResolver, MinVersion, Pair};
use interlock::server::webhook_routes;
use interlock::server::webhook_routes::{Reviewer, WebhookRoutes};
use interlock::telemetry::log;
use interlock::telemetry::metrics::Metrics;
use interlock::telemetry::readyz::Readyz;
use interlock_core::admission::{AdmissionAnswer, DecisionKind, DecisionRecord, Reply};
use interlock_core::api::text::Text;
use tokio::net::TcpListener;

/// Serves reviews on one thread, until its input ends; says first where.
pub fn serve(reviewer: Arc<dyn Reviewer>, folder: &Path) {
    std::thread::spawn(|| {
        let ended = io::copy(&mut io::stdin(), &mut io::sink());
        std::process::exit(i32::from(ended.is_err()));
    });
    // As `interlock run` logs by default, in a cluster.
    log::start("info", log::Format::Json).expect("a filter");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        println!("{}", listener.local_addr().expect("an address"));
        port(reviewer, folder).serve(listener, DRAIN).await;
    });
}

/// The answer that allows a review; `patch` is in base64, as an answer has it.
pub fn allowed<'a>(uid: Cow<'a, str>, patch: Option<&str>) -> AdmissionAnswer<'a> {
    let patch =
        patch.map(|patch| format!(r#","patchType":"JSONPatch","patch":"{patch}""#)).unwrap_or_default();
    let body = format!(
        r#"{{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","response":{{"uid":"{uid}","allowed":true{patch}}}}}"#
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
    AdmissionAnswer::Done(Reply { body: body.into_bytes(), record })
}

fn port(reviewer: Arc<dyn Reviewer>, folder: &Path) -> Port {
    let (limits, metrics, resolver) =
        (Limits::default(), Arc::new(Metrics::new()), CertificateResolver::new());
    let file = |name: &str| std::fs::read(folder.join(name)).expect("a certificate");
    resolver.show(Pair::from_pem(&file("tls.crt"), &file("tls.key")).expect("a pair"));
    let in_flight = InFlight::new(&limits, metrics.clone());
    let readiness = Readyz::new();
    let callers = Arc::new(Callers::default());
    let app = webhook_routes::router(WebhookRoutes {
        kinds: interlock::kinds::all(),
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

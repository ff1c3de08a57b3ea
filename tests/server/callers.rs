//! Who is answered: by certificate, by address, by version of TLS.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use interlock::server::callers::Callers;
use interlock::server::client_auth::ClientAuthority;
use interlock::server::tls::MinVersion;
use interlock::telemetry::metrics::Cap;
use interlock::telemetry::readyz::Readyz;
use rcgen::{BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair};
use rstest::rstest;
use rustls::ClientConfig;
use rustls::pki_types::PrivateKeyDer;
use rustls::version::{TLS12, TLS13};
use tokio::task::JoinHandle;

use crate::peer::{Answer, Peer, connect, connect_from, connect_with, roots};
use crate::world::{World, patient, until, world, world_with};

/// A CA of client certificates.
struct ClientCa {
    pem: String,
    issuer: Issuer<'static, KeyPair>,
}

impl ClientCa {
    fn new() -> Self {
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, "callers");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().unwrap();
        Self { pem: params.self_signed(&key).unwrap().pem(), issuer: Issuer::new(params, key) }
    }

    /// The TLS side of a caller with a certificate of this CA.
    fn caller(&self, world: &World, name: &str) -> Arc<ClientConfig> {
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, name);
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        let key = KeyPair::generate().unwrap();
        let chain = vec![params.signed_by(&key, &self.issuer).unwrap().der().clone()];
        let key = PrivateKeyDer::try_from(key.serialize_der()).unwrap();
        let builder = ClientConfig::builder().with_root_certificates(roots(world));
        Arc::new(builder.with_client_auth_cert(chain, key).unwrap())
    }
}

/// A port that asks for certificates of a CA in a file.
struct Guarded {
    world: World,
    ca: ClientCa,
    file: PathBuf,
    _dir: tempfile::TempDir,
}

async fn guarded(names: &[&str]) -> Guarded {
    let (ca, dir) = (ClientCa::new(), tempfile::tempdir().unwrap());
    let file = dir.path().join("ca.crt");
    std::fs::write(&file, &ca.pem).unwrap();
    let names = names.iter().map(|name| (*name).to_owned()).collect();
    let mut made = None;
    let world = world_with(patient(), MinVersion::Tls13, |resolver| {
        let authority = ClientAuthority::new(resolver.clone(), MinVersion::Tls13, names);
        made = Some(authority.clone());
        Callers { authority: Some(authority), ..Callers::default() }
    })
    .await;
    let gate = Readyz::new().gate("client-ca");
    let (authority, followed) = (made.unwrap(), file.clone());
    tokio::spawn(async move { authority.follow(followed, Duration::from_millis(10), gate).await });
    let guarded = Guarded { world, ca, file, _dir: dir };
    until("the CA is read", async || guarded.ask("kube-apiserver").await.is_some()).await;
    guarded
}

impl Guarded {
    async fn ask(&self, name: &str) -> Option<Answer> {
        let config = self.ca.caller(&self.world, name);
        let mut peer = Peer::over(connect_with(&self.world, config).await.ok()?);
        peer.post("/mutate", "{}").await.ok().filter(|answer| answer.status != 401)
    }
}

#[tokio::test]
async fn a_review_without_a_certificate_is_answered_401_and_health_is_open() {
    let guarded = guarded(&[]).await;
    let mut kubelet = connect(&guarded.world).await;
    assert_eq!(kubelet.get("/livez").await.unwrap().status, 200);
    assert_eq!(kubelet.get("/readyz").await.unwrap().status, 200);
    let answer = kubelet.post("/mutate", "{}").await.unwrap();
    assert_eq!((answer.status, answer.closes()), (401, true), "{answer:?}");
    assert!(answer.body.contains("--admission-control-config-file"), "{answer:?}");
    for path in ["/validate", "/admit-kudo-dev-v1beta1-instance"] {
        assert_eq!(connect(&guarded.world).await.post(path, "{}").await.unwrap().status, 401);
    }
    assert_eq!(guarded.ask("anybody").await.unwrap().status, 200);
    assert!(guarded.world.metrics.refusals(Cap::Unauthenticated) >= 3);
}

#[tokio::test]
async fn a_certificate_of_another_ca_is_worth_nothing() {
    let guarded = guarded(&[]).await;
    let stranger = ClientCa::new().caller(&guarded.world, "kube-apiserver");
    let answered = match connect_with(&guarded.world, stranger).await {
        Ok(stream) => Peer::over(stream).post("/mutate", "{}").await.is_ok_and(|answer| answer.status == 200),
        Err(_) => false,
    };
    assert!(!answered);
}

#[tokio::test]
async fn only_the_named_subjects_are_answered() {
    let guarded = guarded(&["kube-apiserver", "api-2"]).await;
    assert_eq!(guarded.ask("api-2").await.unwrap().status, 200);
    let answer = guarded.ask("kube-controller-manager").await.unwrap();
    assert_eq!(answer.status, 403);
    assert!(answer.body.contains("--client-name"), "{answer:?}");
}

/// The old CA, both, the new one: no call fails. Then an open connection of the old one is refused.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_ca_is_exchanged_under_load() {
    let guarded = Arc::new(guarded(&[]).await);
    let next = ClientCa::new();
    let (stop, calls) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
    let call = |ca: &ClientCa| {
        let config = ca.caller(&guarded.world, "kube-apiserver");
        let (guarded, stop, calls) = (guarded.clone(), stop.clone(), calls.clone());
        tokio::spawn(async move {
            let connect = async || Peer::over(connect_with(&guarded.world, config.clone()).await.unwrap());
            let mut kept = connect().await;
            while !stop.load(Ordering::SeqCst) {
                for peer in [&mut kept, &mut connect().await] {
                    assert_eq!(peer.post("/mutate", "{}").await.expect("an answer").status, 200);
                    calls.fetch_add(1, Ordering::Relaxed);
                }
            }
            kept
        })
    };
    let more = async |what: &str, caller: &JoinHandle<_>| {
        let before = calls.load(Ordering::Relaxed);
        until(what, async || {
            assert!(!caller.is_finished(), "a call failed while {what}");
            calls.load(Ordering::Relaxed) >= before + 100
        })
        .await;
    };
    let old = call(&guarded.ca);
    more("the old one calls", &old).await;
    std::fs::write(&guarded.file, format!("{}{}", guarded.ca.pem, next.pem)).unwrap();
    let config = next.caller(&guarded.world, "kube-apiserver");
    until("the new one is trusted too", async || {
        let Ok(stream) = connect_with(&guarded.world, config.clone()).await else { return false };
        Peer::over(stream).post("/mutate", "{}").await.is_ok_and(|answer| answer.status == 200)
    })
    .await;
    more("both are trusted", &old).await;
    stop.store(true, Ordering::SeqCst);
    let mut kept = old.await.expect("no call failed");
    stop.store(false, Ordering::SeqCst);
    let new = call(&next);
    std::fs::write(&guarded.file, &next.pem).unwrap();
    until("the old one is refused on its open connection", async || {
        !kept.post("/mutate", "{}").await.is_ok_and(|answer| answer.status == 200)
    })
    .await;
    more("the new one calls", &new).await;
    stop.store(true, Ordering::SeqCst);
    new.await.expect("no call failed");
}

#[tokio::test]
async fn only_the_addresses_of_api_servers_are_answered_where_they_are_known() {
    let api_servers = vec!["127.0.0.1".parse().unwrap()];
    let callers = Callers { api_servers, authority: None };
    let world = world_with(patient(), MinVersion::Tls13, |_| callers).await;
    let mut other = connect_from(&world, "127.0.0.2").await.unwrap();
    assert_eq!(other.get("/livez").await.unwrap().status, 200);
    let answer = other.post("/mutate", "{}").await.unwrap();
    assert_eq!((answer.status, answer.closes()), (403, true));
    assert!(answer.body.contains("127.0.0.2"), "{answer:?}");
    assert_eq!(connect(&world).await.post("/mutate", "{}").await.unwrap().status, 200);
}

#[rstest]
#[case::by_default(MinVersion::default(), false)]
#[case::on_request(MinVersion::Tls12, true)]
#[tokio::test]
async fn the_oldest_version_of_tls(#[case] oldest: MinVersion, #[case] old_is_spoken: bool) {
    let world = world_with(patient(), oldest, |_| Callers::default()).await;
    for (version, spoken) in [(&TLS12, old_is_spoken), (&TLS13, true)] {
        let config = ClientConfig::builder_with_protocol_versions(&[version])
            .with_root_certificates(roots(&world))
            .with_no_client_auth();
        assert_eq!(connect_with(&world, Arc::new(config)).await.is_ok(), spoken, "{version:?}");
    }
}

/// Without a word on who calls, everybody is answered: that is what the documentation says.
#[tokio::test]
async fn by_default_everybody_is_answered() {
    let world = world(patient()).await;
    let mut other = connect_from(&world, "127.0.0.2").await.unwrap();
    assert_eq!(other.post("/mutate", "{}").await.unwrap().status, 200);
}

//! The certificate is exchanged under load, from memory and from files.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use interlock::cluster::certificates::authority::leaf;
use interlock::cluster::certificates::stored::certificates;
use interlock::server::certificate_reloader::CertificateFiles;
use jiff::Timestamp;
use rustls::{ClientConfig, RootCertStore};

use crate::peer::{connect, connect_with, trusting};
use crate::world::{World, patient, until, world};

/// Rotations: the short form, and that of `make soak`.
fn rotations() -> usize {
    if std::env::var_os("INTERLOCK_SOAK").is_some() { 100 } else { 20 }
}

/// Half of the callers keep their connection, half make a new one for each call.
async fn under_load(world: Arc<World>, rotate: impl AsyncFn(&World)) -> usize {
    let (stop, calls) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
    let callers: Vec<_> = (0..6)
        .map(|i| {
            let (world, stop, calls) = (world.clone(), stop.clone(), calls.clone());
            tokio::spawn(async move {
                let mut peer = connect(&world).await;
                while !stop.load(Ordering::SeqCst) {
                    if i % 2 == 0 {
                        peer = connect(&world).await;
                    }
                    let answer = peer.post("/mutate", "{}").await.expect("an answer");
                    assert_eq!(answer.status, 200);
                    calls.fetch_add(1, Ordering::Relaxed);
                }
            })
        })
        .collect();
    for _ in 0..rotations() {
        let before = calls.load(Ordering::Relaxed);
        rotate(&world).await;
        until("callers call", async || calls.load(Ordering::Relaxed) >= before + 20).await;
    }
    stop.store(true, Ordering::SeqCst);
    for caller in callers {
        caller.await.expect("no call fails");
    }
    calls.load(Ordering::Relaxed)
}

async fn shown_certificate(world: &World) -> Vec<u8> {
    let stream = connect_with(world, trusting(world, &["http/1.1"])).await.unwrap();
    stream.get_ref().1.peer_certificates().unwrap()[0].to_vec()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rotation_under_load_fails_no_call() {
    let world = Arc::new(world(patient()).await);
    let before = shown_certificate(&world).await;
    let calls = under_load(world.clone(), async |world: &World| world.rotate()).await;
    eprintln!("{} rotations, {calls} calls, 0 failed", rotations());
    assert_ne!(before, shown_certificate(&world).await);
}

/// A kubelet's way of writing a Secret volume: a new folder, then the link `..data` is swapped.
fn deliver(world: &World, dir: &Path, n: usize) {
    let pem =
        leaf(&world.authority, &["hook.here.svc".to_owned()], Timestamp::now(), Duration::from_secs(600));
    let pem = pem.unwrap();
    let version = dir.join(format!("..version-{n}"));
    std::fs::create_dir(&version).unwrap();
    std::fs::write(version.join("tls.crt"), pem.certificate).unwrap();
    std::fs::write(version.join("tls.key"), pem.key).unwrap();
    let fresh = dir.join("..data_tmp");
    std::os::unix::fs::symlink(&version, &fresh).unwrap();
    std::fs::rename(fresh, dir.join("..data")).unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_swapped_secret_volume_is_followed_and_a_broken_one_is_not() {
    let world = Arc::new(world(patient()).await);
    let dir = tempfile::tempdir().unwrap();
    deliver(&world, dir.path(), 0);
    for file in ["tls.crt", "tls.key"] {
        std::os::unix::fs::symlink(Path::new("..data").join(file), dir.path().join(file)).unwrap();
    }
    let interval = Duration::from_millis(10);
    tokio::spawn(CertificateFiles::new(dir.path()).follow(interval, world.resolver.clone()));
    let n = AtomicUsize::new(0);
    let swap = async |world: &World| {
        let before = shown_certificate(world).await;
        deliver(world, dir.path(), n.fetch_add(1, Ordering::Relaxed) + 1);
        until("the new certificate is shown", async || shown_certificate(world).await != before).await;
    };
    let calls = under_load(world.clone(), swap).await;
    eprintln!("{} swaps, {calls} calls, 0 failed", rotations());

    let before = shown_certificate(&world).await;
    std::fs::write(dir.path().join("..data/tls.crt"), "half a certif").unwrap();
    // Nothing tells of a look that changed nothing, so there is time for ten.
    tokio::time::sleep(interval * 10).await;
    assert_eq!(before, shown_certificate(&world).await, "the last good pair stays");
}

/// What `certs/make` writes is what file mode reads, also when it is made anew.
#[tokio::test]
async fn certificates_made_by_hand_are_served() {
    let world = world(patient()).await;
    let dir = tempfile::tempdir().unwrap();
    let make = || {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("certs/make");
        let made =
            std::process::Command::new(script).arg(dir.path()).args(["hook.here.svc", "127.0.0.1"]).output();
        let made = made.expect("certs/make runs");
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    };
    make();
    tokio::spawn(CertificateFiles::new(dir.path()).follow(Duration::from_millis(10), world.resolver.clone()));
    let ca = std::fs::read(dir.path().join("ca.crt")).unwrap();
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(certificates(&ca));
    let config = ClientConfig::builder().with_root_certificates(roots).with_no_client_auth();
    let config = Arc::new(config);
    let mut seen = Vec::new();
    for _ in 0..2 {
        until("it is served, by a CA that stays", async || {
            let Ok(stream) = connect_with(&world, config.clone()).await else { return false };
            let certificate = stream.get_ref().1.peer_certificates().unwrap()[0].to_vec();
            let new = !seen.contains(&certificate);
            if new {
                seen.push(certificate);
            }
            new
        })
        .await;
        make();
    }
}

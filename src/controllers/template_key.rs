//! The key of which what templates generate follows, in a Secret of the process: another process that goes on with a
//! run renders the same bytes, and who may read Instances cannot compute their passwords.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use aws_lc_rs::rand;
use interlock_core::api::meta::install::TEMPLATE_KEY_SECRET;
use interlock_kudo::engine::seed::SeedKey;
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use kube::api::{ObjectMeta, PostParams};
use kube::{Api, Client};
use tokio::time::sleep;
use tracing::warn;

/// Name of the key in the Secret.
const KEY: &str = "key";

/// Pauses between two attempts.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(60);

/// Why there is no key yet.
#[derive(Debug, thiserror::Error)]
enum KeyError {
    #[error("Secret {TEMPLATE_KEY_SECRET} cannot be read or created: {0}")]
    Api(#[from] kube::Error),
    #[error("Secret {TEMPLATE_KEY_SECRET} has no 32 bytes under {KEY:?}: delete it, and another one is made")]
    Content,
    #[error("the system has no random bytes")]
    Random,
}

/// Reads the key, or makes it where there is none; of two processes that make one, both read the first's. Tries
/// until it succeeds: only templates that generate something need it.
pub(super) async fn follow(client: Client, namespace: String, key: Arc<OnceLock<SeedKey>>) {
    let secrets: Api<Secret> = Api::namespaced(client, &namespace);
    let mut pause = FIRST_PAUSE;
    while key.get().is_none() {
        match read(&secrets).await {
            Ok(found) => drop(key.set(found)),
            Err(error) => {
                warn!(%error, "templates cannot generate passwords and keys; retrying");
                sleep(pause).await;
                pause = LONGEST_PAUSE.min(pause * 2);
            }
        }
    }
}

async fn read(secrets: &Api<Secret>) -> Result<SeedKey, KeyError> {
    if let Some(secret) = secrets.get_opt(TEMPLATE_KEY_SECRET).await? {
        return content(&secret);
    }
    let mut bytes = [0; 32];
    rand::fill(&mut bytes).map_err(|_| KeyError::Random)?;
    let secret = Secret {
        metadata: ObjectMeta { name: Some(TEMPLATE_KEY_SECRET.to_owned()), ..ObjectMeta::default() },
        immutable: Some(true),
        data: Some([(KEY.to_owned(), ByteString(bytes.to_vec()))].into()),
        ..Secret::default()
    };
    match secrets.create(&PostParams::default(), &secret).await {
        Ok(created) => content(&created),
        Err(kube::Error::Api(status)) if status.is_already_exists() => {
            content(&secrets.get(TEMPLATE_KEY_SECRET).await?)
        }
        Err(error) => Err(error.into()),
    }
}

fn content(secret: &Secret) -> Result<SeedKey, KeyError> {
    let bytes = secret.data.as_ref().and_then(|data| data.get(KEY)).ok_or(KeyError::Content)?;
    bytes.0.as_slice().try_into().map(SeedKey).map_err(|_| KeyError::Content)
}

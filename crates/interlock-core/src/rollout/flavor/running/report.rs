//! What Kong's Admin API answers to `GET /`.

use serde::Deserialize;

/// Longest name of a flavor that is passed on.
const LONGEST: usize = 64;

/// An answer, as far as flavors go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StatusReport {
    /// `configuration.router_flavor`.
    pub flavor: String,
    /// `version`.
    pub version: Option<String>,
}

#[derive(Deserialize)]
struct Root {
    version: Option<String>,
    configuration: Option<Configuration>,
}

#[derive(Deserialize)]
struct Configuration {
    router_flavor: Option<String>,
}

impl StatusReport {
    /// Of an answer; else what is wrong with it. Nothing of it is passed on but words.
    pub fn read(body: &[u8]) -> Result<Self, String> {
        let root: Root = serde_json::from_slice(body)
            .map_err(|_| "its answer is not that of Kong's Admin API".to_owned())?;
        let Some(configuration) = root.configuration else {
            return Err("its answer is not that of Kong's Admin API".to_owned());
        };
        // As before Kong 3.0.
        let Some(flavor) = configuration.router_flavor else {
            return Err("it reports no router flavor".to_owned());
        };
        let word = |text: &String| {
            text.len() <= LONGEST && text.bytes().all(|b| b.is_ascii_alphanumeric() || b"._-".contains(&b))
        };
        if flavor.is_empty() || !word(&flavor) {
            return Err("it reports a router flavor that is none".to_owned());
        }
        Ok(Self { flavor, version: root.version.filter(word) })
    }
}

//! Response of Kong's Admin API to `GET /`.

use serde::Deserialize;

/// Longest name of a flavor that is accepted.
const LONGEST: usize = 64;

/// A response, reduced to the flavor.
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
    /// Reads a response, or returns its error. Accepts only single words from it.
    pub fn read(body: &[u8]) -> Result<Self, String> {
        let root: Root = serde_json::from_slice(body)
            .map_err(|_| "its answer is not that of Kong's Admin API".to_owned())?;
        let Some(configuration) = root.configuration else {
            return Err("its answer is not that of Kong's Admin API".to_owned());
        };
        // Kong before 3.0 reports none.
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

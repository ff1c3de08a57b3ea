//! What is wrong with a kubeconfig, without showing any of it: it may hold secrets.

use std::error::Error as _;
use std::fmt;
use std::io;

use kube::config::{InferConfigError, KubeconfigError, LoadDataError};

/// Why a kubeconfig cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KubeconfigProblem(String);

impl fmt::Display for KubeconfigProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl From<KubeconfigError> for KubeconfigProblem {
    fn from(error: KubeconfigError) -> Self {
        Self(text(&error))
    }
}

impl From<InferConfigError> for KubeconfigProblem {
    fn from(error: InferConfigError) -> Self {
        let found = error.source().and_then(|source| source.downcast_ref::<KubeconfigError>());
        Self(match found {
            None => "there is no kubeconfig".to_owned(),
            Some(found) => text(found),
        })
    }
}

fn text(error: &KubeconfigError) -> String {
    match error {
        KubeconfigError::CurrentContextNotSet => "it names no current context".to_owned(),
        KubeconfigError::KindMismatch => "the files of KUBECONFIG are of different kinds".to_owned(),
        KubeconfigError::ApiVersionMismatch => "the files of KUBECONFIG are of different versions".to_owned(),
        KubeconfigError::LoadContext(context) => format!("there is no context {context:?}"),
        KubeconfigError::LoadClusterOfContext(cluster) => {
            format!("there is no cluster {cluster:?}, which the context names")
        }
        KubeconfigError::FindPath => "there is no home directory to look for .kube/config in".to_owned(),
        KubeconfigError::ReadConfig(error, path) => format!("{} {}", path.display(), unreadable(error)),
        KubeconfigError::Parse(error) => match error.location() {
            Some(at) => format!("it is no kubeconfig from line {}, column {} on", at.line(), at.column()),
            None => "it is no kubeconfig".to_owned(),
        },
        KubeconfigError::MissingClusterUrl => "its cluster has no server".to_owned(),
        KubeconfigError::ParseClusterUrl(_) => "server of its cluster is no URL".to_owned(),
        KubeconfigError::ParseProxyUrl(_) => "proxy-url of its cluster is no URL".to_owned(),
        KubeconfigError::LoadCertificateAuthority(error) => data("certificate-authority", error),
        KubeconfigError::LoadClientCertificate(error) => data("client-certificate", error),
        KubeconfigError::LoadClientKey(error) => data("client-key", error),
        KubeconfigError::ParseCertificates(_) => "a certificate in it is no PEM".to_owned(),
        #[allow(unreachable_patterns, reason = "a feature of kube adds variants")]
        _ => "a part of it cannot be read".to_owned(),
    }
}

fn unreadable(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::NotFound => "does not exist",
        io::ErrorKind::PermissionDenied => "may not be read by you",
        io::ErrorKind::IsADirectory => "is a folder",
        io::ErrorKind::InvalidData => "is not UTF-8 text",
        _ => "cannot be read",
    }
}

fn data(field: &str, error: &LoadDataError) -> String {
    match error {
        LoadDataError::DecodeBase64(_) => format!("{field}-data is not base64"),
        LoadDataError::ReadFile(error, path) => {
            format!("{field} {} {}", path.display(), unreadable(error))
        }
        LoadDataError::NoBase64DataOrFile => format!("{field} is empty"),
    }
}

#[cfg(test)]
mod tests {
    use kube::config::Kubeconfig;
    use rstest::rstest;

    use super::*;

    fn of_text(text: &str) -> String {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("config");
        std::fs::write(&path, text).unwrap();
        KubeconfigProblem::from(Kubeconfig::read_from(&path).unwrap_err()).to_string()
    }

    #[rstest]
    #[case::token("users:\n- name: a\n  user: {token: s3cret\n")]
    #[case::other_type("users: s3cret\n")]
    #[case::a_key("-----BEGIN PRIVATE KEY-----\ns3cret: [\n")]
    #[case::binary("\u{0}s3cret")]
    fn nothing_of_a_broken_kubeconfig_is_shown(#[case] content: &str) {
        let text = of_text(content);
        assert!(text.starts_with("it is no kubeconfig"), "{text}");
        assert!(!text.contains("s3cret") && text.lines().count() == 1, "{text}");
    }

    #[test]
    fn the_file_is_named() {
        let error = Kubeconfig::read_from("/no/such/file").unwrap_err();
        assert_eq!(KubeconfigProblem::from(error).to_string(), "/no/such/file does not exist");
        let folder = Kubeconfig::read_from("/").unwrap_err();
        assert_eq!(KubeconfigProblem::from(folder).to_string(), "/ is a folder");
    }

    #[tokio::test]
    async fn an_unknown_context_is_named() {
        let options =
            kube::config::KubeConfigOptions { context: Some("prod".to_owned()), ..Default::default() };
        let found = kube::Config::from_custom_kubeconfig(Kubeconfig::default(), &options).await;
        assert_eq!(KubeconfigProblem::from(found.err().unwrap()).to_string(), "there is no context \"prod\"");
    }
}

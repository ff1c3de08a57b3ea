//! Where the pages that texts refer to can be read.

use std::str::FromStr;

use thiserror::Error;

/// Longest address: a denial has room for little more.
const LIMIT: usize = 128;

/// The address of the documentation; its pages are below it, as `docs/denials/plan-running.md`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DocsUrl(String);

/// Why a text is no address of a documentation.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum DocsUrlError {
    /// Another scheme, or none.
    #[error("write it as https://HOST/PATH or http://HOST/PATH")]
    Scheme,
    /// A character that an address does not have, a query or a fragment.
    #[error("{0:?} stands in no address of a folder: write it as https://HOST/PATH")]
    Character(char),
    /// Too long.
    #[error("write an address of at most {LIMIT} characters")]
    Long,
}

impl FromStr for DocsUrl {
    type Err = DocsUrlError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let base = text.trim_end_matches('/');
        let rest = base.strip_prefix("https://").or_else(|| base.strip_prefix("http://"));
        // Texts in CEL and in quotes hold the address as it is.
        let plain = |c: &char| c.is_ascii_alphanumeric() || "-._~:/@%+,=[]".contains(*c);
        match rest {
            None => Err(DocsUrlError::Scheme),
            Some(rest) if rest.is_empty() || rest.starts_with(['/', ':', '@']) => Err(DocsUrlError::Scheme),
            Some(_) if text.len() > LIMIT => Err(DocsUrlError::Long),
            Some(rest) => match rest.chars().find(|c| !plain(c)) {
                Some(other) => Err(DocsUrlError::Character(other)),
                None => Ok(Self(base.to_owned())),
            },
        }
    }
}

impl DocsUrl {
    /// The address as given, without a slash at its end.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The address of the pages of a repository at the tag of a version; `None` where no repository is
    /// declared.
    pub fn of_repository(repository: &str, version: &str) -> Option<Self> {
        if repository.is_empty() {
            return None;
        }
        format!("{}/blob/v{version}", repository.trim_end_matches('/')).parse().ok()
    }

    /// The address of a page.
    pub fn page(&self, page: &str) -> String {
        [&self.0, "/", page].concat()
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("https://docs.example.org", "https://docs.example.org/docs/a.md")]
    #[case("https://docs.example.org/", "https://docs.example.org/docs/a.md")]
    #[case("http://10.0.0.1:8080/guard//", "http://10.0.0.1:8080/guard/docs/a.md")]
    fn pages_are_below_the_address(#[case] base: &str, #[case] page: &str) {
        assert_eq!(base.parse::<DocsUrl>().unwrap().page("docs/a.md"), page);
    }

    #[rstest]
    #[case::empty("", DocsUrlError::Scheme)]
    #[case::file("file:///docs", DocsUrlError::Scheme)]
    #[case::no_scheme("docs.example.org", DocsUrlError::Scheme)]
    #[case::no_host("https://", DocsUrlError::Scheme)]
    #[case::no_name("https:///docs", DocsUrlError::Scheme)]
    #[case::quote("https://a/'b", DocsUrlError::Character('\''))]
    #[case::space("https://a/ b", DocsUrlError::Character(' '))]
    #[case::line("https://a/\nb", DocsUrlError::Character('\n'))]
    #[case::query("https://a/?b", DocsUrlError::Character('?'))]
    #[case::fragment("https://a/#b", DocsUrlError::Character('#'))]
    #[case::long(&format!("https://{}", "a".repeat(LIMIT)), DocsUrlError::Long)]
    fn other_texts_are_refused(#[case] text: &str, #[case] error: DocsUrlError) {
        assert_eq!(text.parse::<DocsUrl>(), Err(error));
    }

    #[test]
    fn a_repository_has_pages_at_each_tag() {
        let pages = DocsUrl::of_repository("https://example.org/interlock/", "0.1.0").unwrap();
        assert_eq!(pages.as_str(), "https://example.org/interlock/blob/v0.1.0");
        assert_eq!(DocsUrl::of_repository("", "0.1.0"), None);
    }
}

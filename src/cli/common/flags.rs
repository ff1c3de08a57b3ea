//! Parts of flags that several commands share.

use std::time::Duration;

use clap::{Args, ValueEnum};
use interlock_core::admission::Freeze;
use interlock_core::api::cidr::Cidr;
use interlock_core::api::docs::DocsUrl;
use interlock_core::api::object::NamespacedName;

use crate::telemetry::build;

/// How strictly a locked Instance is frozen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum FreezeFlag {
    /// No change of the spec while a plan is scheduled or runs.
    Strict,
    /// As KUDO: a change that triggers the running plan restarts it.
    SamePlan,
}

impl From<FreezeFlag> for Freeze {
    fn from(flag: FreezeFlag) -> Self {
        match flag {
            FreezeFlag::Strict => Self::Strict,
            FreezeFlag::SamePlan => Self::SamePlan,
        }
    }
}

/// Where the pages of the rules can be read.
#[derive(Args, Clone, Debug)]
pub(in crate::cli) struct DocsFlag {
    /// Address of the documentation that refusals refer to: https://HOST/PATH, with the file
    /// docs/denials/plan-running.md and so on below it. Without it they name `interlock explain`.
    #[arg(long, value_name = "URL", env = "INTERLOCK_DOCS_URL", value_parser = docs_url)]
    docs_url: Option<DocsUrl>,
}

impl DocsFlag {
    /// The given address, else that of the repository, if it is declared.
    pub(in crate::cli) fn get(self) -> Option<DocsUrl> {
        self.docs_url.or_else(build::docs)
    }
}

fn docs_url(text: &str) -> Result<DocsUrl, String> {
    text.parse::<DocsUrl>().map_err(|error| error.to_string())
}

/// How long something is waited for at the most.
#[derive(Args, Clone, Copy, Debug)]
pub(in crate::cli) struct Limit {
    /// Longest wait.
    #[arg(long, default_value = "5m", value_parser = duration)]
    pub(in crate::cli) timeout: Duration,
}

/// `1h30m`, `15s`, `500ms`, `90d`.
pub(in crate::cli) fn duration(text: &str) -> Result<Duration, String> {
    let span: jiff::SignedDuration = match text.strip_suffix('d').map(str::parse::<u32>) {
        Some(Ok(days)) => jiff::SignedDuration::from_hours(i64::from(days) * 24),
        _ => text.parse().map_err(|_| "write it as 15s, 500ms or 90d".to_owned())?,
    };
    Duration::try_from(span).map_err(|_| "a duration cannot be negative".to_owned())
}

/// `NAMESPACE/NAME`.
pub(in crate::cli) fn namespaced_name(text: &str) -> Result<NamespacedName, String> {
    match text.split_once('/') {
        Some((namespace, name)) if !namespace.is_empty() && !name.is_empty() && !name.contains('/') => {
            Ok(NamespacedName::new(namespace, name))
        }
        _ => Err("write it as NAMESPACE/NAME".to_owned()),
    }
}

/// The name of a namespace or a Service.
pub(in crate::cli) fn dns_label(text: &str) -> Result<String, String> {
    let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let ends = [text.bytes().next(), text.bytes().next_back()];
    if text.len() <= 63
        && ends.iter().all(|end| end.is_some_and(plain))
        && text.bytes().all(|byte| plain(byte) || byte == b'-')
    {
        return Ok(text.to_owned());
    }
    Err("write a name of at most 63 lower-case letters, digits and -, with a letter or a digit at both ends"
        .to_owned())
}

/// Namespaces to watch, as one value of a flag lists them; none means all.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::cli) struct Namespaces(Vec<String>);

impl Namespaces {
    /// The union of several values: all, where one of them is all.
    pub(in crate::cli) fn union(values: Vec<Self>) -> Vec<String> {
        if values.iter().any(|value| value.0.is_empty()) {
            return Vec::new();
        }
        values.into_iter().flat_map(|value| value.0).collect()
    }
}

/// Namespaces separated by commas. An empty value, as of an unset variable, means none.
pub(in crate::cli) fn namespaces(text: &str) -> Result<Namespaces, String> {
    if text.is_empty() {
        return Ok(Namespaces(Vec::new()));
    }
    let name = |item: &str| {
        dns_label(item).map_err(|remedy| {
            format!(
                "{item:?} is no name of a namespace: {remedy}, a comma between two names, and nothing for all"
            )
        })
    };
    text.split(',').map(name).collect::<Result<_, _>>().map(Namespaces)
}

/// Ranges of addresses, as one value of a flag lists them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in crate::cli) struct Cidrs(Vec<Cidr>);

impl Cidrs {
    /// The union of several values.
    pub(in crate::cli) fn union(values: Vec<Self>) -> Vec<Cidr> {
        values.into_iter().flat_map(|value| value.0).collect()
    }
}

/// Ranges separated by commas. An empty value, as of an unset variable, means none.
pub(in crate::cli) fn cidrs(text: &str) -> Result<Cidrs, String> {
    if text.is_empty() {
        return Ok(Cidrs::default());
    }
    let range =
        |item: &str| item.parse().map_err(|error: interlock_core::api::cidr::BadCidr| error.to_string());
    text.split(',').map(range).collect::<Result<_, _>>().map(Cidrs)
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case::empty(&[""], &[])]
    #[case::none(&[], &[])]
    #[case::several(&["a,b-1"], &["a", "b-1"])]
    #[case::repeated(&["a", "b,c"], &["a", "b", "c"])]
    #[case::all_and_one(&["", "a"], &[])]
    fn an_empty_value_means_all_namespaces(#[case] values: &[&str], #[case] expected: &[&str]) {
        let read: Result<Vec<_>, _> = values.iter().map(|value| namespaces(value)).collect();
        assert_eq!(Namespaces::union(read.unwrap()), expected);
    }

    #[rstest]
    #[case::empty_item(",a")]
    #[case::empty_end("a,")]
    #[case::commas(",")]
    #[case::space("a, b")]
    #[case::blank(" ")]
    #[case::upper_case("Team")]
    #[case::pattern("team-*")]
    fn what_names_no_namespace_is_refused(#[case] text: &str) {
        let error = namespaces(text).unwrap_err();
        assert!(error.contains("is no name of a namespace: write a name"), "{error}");
    }

    #[rstest]
    #[case("kube-system", true)]
    #[case("0", true)]
    #[case("", false)]
    #[case("a.b", false)]
    #[case("a_b", false)]
    #[case("a-", false)]
    #[case("\u{e9}", false)]
    #[case(&"a".repeat(63), true)]
    #[case(&"a".repeat(64), false)]
    fn a_name_is_a_label_of_dns(#[case] text: &str, #[case] good: bool) {
        assert_eq!(dns_label(text).is_ok(), good);
    }
}

//! Ranges of addresses, as flags and NetworkPolicies write them.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use ipnet::IpNet;

/// Addresses that share a prefix: `10.0.0.0/8`, `fd00::/8`; an address alone is a range of one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cidr(IpNet);

/// The text is no range of addresses.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} is no range of addresses; write it as 10.0.0.0/24, fd00::/64 or 10.0.0.7")]
pub struct BadCidr {
    text: String,
}

impl Cidr {
    /// Whether an address is in the range. An IPv4 address that came in by an IPv6 socket
    /// (`::ffff:10.0.0.7`) counts as the IPv4 address.
    pub fn contains(&self, address: IpAddr) -> bool {
        self.0.contains(&address.to_canonical())
    }
}

impl FromStr for Cidr {
    type Err = BadCidr;

    fn from_str(text: &str) -> Result<Self, BadCidr> {
        // An address by the parser of the standard library, as ipnet's takes `010.0.0.7`, which is 8.0.0.7 elsewhere.
        let (address, prefix) = text.split_once('/').map_or((text, None), |(a, prefix)| (a, Some(prefix)));
        let range = address.parse::<IpAddr>().ok().and_then(|address| match prefix {
            None => Some(IpNet::from(address)),
            Some(prefix) if prefix.starts_with('+') => None,
            Some(prefix) => IpNet::new(address, prefix.parse().ok()?).ok(),
        });
        range.map(|range| Self(range.trunc())).ok_or_else(|| BadCidr { text: text.to_owned() })
    }
}

impl fmt::Display for Cidr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case::first("10.1.0.0/16", "10.1.0.0", true)]
    #[case::last("10.1.0.0/16", "10.1.255.255", true)]
    #[case::next("10.1.0.0/16", "10.2.0.0", false)]
    #[case::one("10.1.0.7", "10.1.0.7", true)]
    #[case::not_the_one("10.1.0.7", "10.1.0.8", false)]
    #[case::all("0.0.0.0/0", "192.0.2.1", true)]
    #[case::all_of_v4_only("0.0.0.0/0", "2001:db8::1", false)]
    #[case::mapped("10.1.0.0/16", "::ffff:10.1.2.3", true)]
    #[case::v6("2001:db8::/32", "2001:db8:ffff::1", true)]
    #[case::v6_other("2001:db8::/32", "2001:db9::1", false)]
    #[case::odd("10.1.2.64/26", "10.1.2.128", false)]
    fn contains(#[case] range: &str, #[case] address: &str, #[case] expected: bool) {
        let range: Cidr = range.parse().unwrap();
        assert_eq!(range.contains(address.parse().unwrap()), expected);
    }

    #[rstest]
    #[case("10.1.0.0/16", "10.1.0.0/16")]
    #[case::host_bits("10.1.2.3/16", "10.1.0.0/16")]
    #[case("10.1.2.3", "10.1.2.3/32")]
    #[case("::1", "::1/128")]
    #[case("2001:DB8::1/32", "2001:db8::/32")]
    #[case("10.1.2.3/0", "0.0.0.0/0")]
    fn is_written_as_a_network_policy_takes_it(#[case] text: &str, #[case] expected: &str) {
        assert_eq!(text.parse::<Cidr>().unwrap().to_string(), expected);
    }

    #[rstest]
    #[case("")]
    #[case("10.1.0.0/33")]
    #[case::octal_elsewhere("010.0.0.7/8")]
    #[case::nine_groups("1:2:3:4:5:6:7::8/64")]
    #[case("10.1.0.0/")]
    #[case("10.1.0.0/+8")]
    #[case("10.1/16")]
    #[case("::/129")]
    #[case("api-server")]
    fn what_is_no_range_is_refused(#[case] text: &str) {
        assert!(text.parse::<Cidr>().unwrap_err().to_string().contains("write it as 10.0.0.0/24"));
    }
}

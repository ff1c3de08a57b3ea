//! `urlParse` and `urlJoin`: the part of `net/url` that sprig uses.

use std::net::Ipv6Addr;

use crate::dynamic::{Tree, Val};
use crate::error::Failure;
use crate::function::Type::{Dict, Str};
use crate::function::{Function, arg, fixed};
use crate::go::quote::quoted;
use crate::limits::Meter;

pub(super) const FUNCTIONS: &[Function] =
    &[fixed("urlParse", &[Str], url_parse), fixed("urlJoin", &[Dict], url_join)];

/// A part of a URL, which decides on the percent-encoded characters.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    User,
    Host,
    Zone,
    Path,
    Fragment,
}

/// Go's table of unescaped characters.
fn is_plain(byte: u8, part: Part) -> bool {
    match byte {
        b'0'..=b'9' | b'A'..=b'Z' | b'a'..=b'z' | b'-' | b'_' | b'.' | b'~' => true,
        b'$' | b'&' | b'+' | b',' | b';' | b'=' => true,
        b':' => part != Part::User,
        b'/' | b'@' => matches!(part, Part::Path | Part::Fragment),
        b'?' => part == Part::Fragment,
        b'!' | b'(' | b')' | b'*' => matches!(part, Part::Host | Part::Zone | Part::Fragment),
        b'\'' | b'[' | b']' | b'<' | b'>' | b'"' => matches!(part, Part::Host | Part::Zone),
        _ => false,
    }
}

fn escape(text: &[u8], part: Part) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    for &byte in text {
        if is_plain(byte, part) {
            out.push(byte);
        } else {
            out.extend_from_slice(format!("%{byte:02X}").as_bytes());
        }
    }
    out
}

fn unescape(text: &[u8], part: Part) -> Result<Vec<u8>, String> {
    let bad = |escape: &[u8]| Err(format!("invalid URL escape {}", quoted(&String::from_utf8_lossy(escape))));
    let in_host = matches!(part, Part::Host | Part::Zone);
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((&byte, after)) = rest.split_first() {
        if byte != b'%' {
            if in_host && byte < 0x80 && !is_plain(byte, part) {
                let shown = quoted(&char::from(byte).to_string());
                return Err(format!("invalid character {shown} in host name"));
            }
            out.push(byte);
            rest = after;
            continue;
        }
        let digit = |at: usize| char::from(*after.get(at)?).to_digit(16);
        let value = digit(0).zip(digit(1)).and_then(|(high, low)| u8::try_from(high << 4 | low).ok());
        let Some(value) = value else {
            return bad(&rest[..rest.len().min(3)]);
        };
        let escaped = &rest[..3];
        if part == Part::Host && value < 0x80 && escaped != b"%25" {
            return bad(escaped);
        }
        if part == Part::Zone && escaped != b"%25" && value != b' ' && !is_plain(value, Part::Host) {
            return bad(escaped);
        }
        out.push(value);
        rest = &rest[3..];
    }
    Ok(out)
}

#[derive(Default)]
struct Url {
    scheme: String,
    opaque: Vec<u8>,
    /// Name and, if present, password.
    user: Option<(Vec<u8>, Option<Vec<u8>>)>,
    host: Vec<u8>,
    path: Vec<u8>,
    query: Vec<u8>,
    fragment: Vec<u8>,
}

fn cut(text: &[u8], mark: u8) -> (&[u8], Option<&[u8]>) {
    match text.iter().position(|&byte| byte == mark) {
        Some(at) => (&text[..at], Some(&text[at + 1..])),
        None => (text, None),
    }
}

impl Url {
    fn parse(text: &[u8]) -> Result<Self, String> {
        let shown = |text: &[u8]| quoted(&String::from_utf8_lossy(text));
        let (main, fragment) = cut(text, b'#');
        let mut url = Self::parse_main(main).map_err(|error| format!("parse {}: {error}", shown(main)))?;
        if let Some(fragment) = fragment {
            url.fragment = unescape(fragment, Part::Fragment)
                .map_err(|error| format!("parse {}: {error}", shown(text)))?;
        }
        Ok(url)
    }

    fn parse_main(text: &[u8]) -> Result<Self, String> {
        if text.iter().any(|&byte| byte < b' ' || byte == 0x7f) {
            return Err("net/url: invalid control character in URL".to_owned());
        }
        let (scheme, rest) = scheme(text)?;
        let mut url = Self { scheme: scheme.to_ascii_lowercase(), ..Self::default() };
        let (rest, query) = cut(rest, b'?');
        url.query = query.unwrap_or_default().to_vec();
        if !rest.starts_with(b"/") {
            if !url.scheme.is_empty() {
                url.opaque = rest.to_vec();
                return Ok(url);
            }
            if cut(rest, b'/').0.contains(&b':') {
                return Err("first path segment in URL cannot contain colon".to_owned());
            }
        }
        let mut path = rest;
        let has_authority = !url.scheme.is_empty() || !rest.starts_with(b"///");
        if let Some(authority) = rest.strip_prefix(b"//").filter(|_| has_authority) {
            let end = authority.iter().position(|&byte| byte == b'/').unwrap_or(authority.len());
            path = &authority[end..];
            url.parse_authority(&authority[..end])?;
        }
        url.path = unescape(path, Part::Path)?;
        Ok(url)
    }

    fn parse_authority(&mut self, authority: &[u8]) -> Result<(), String> {
        let Some(at) = authority.iter().rposition(|&byte| byte == b'@') else {
            self.host = parse_host(&self.scheme, authority)?;
            return Ok(());
        };
        self.host = parse_host(&self.scheme, &authority[at + 1..])?;
        let user = &authority[..at];
        let is_valid = |&byte: &u8| byte.is_ascii_alphanumeric() || b"-._:~!$&'()*+,;=%@".contains(&byte);
        if !user.iter().all(is_valid) {
            return Err("net/url: invalid userinfo".to_owned());
        }
        let (name, password) = cut(user, b':');
        let password = password.map(|password| unescape(password, Part::User)).transpose()?;
        self.user = Some((unescape(name, Part::User)?, password));
        Ok(())
    }

    fn userinfo(&self) -> Vec<u8> {
        let Some((name, password)) = &self.user else { return Vec::new() };
        let mut out = escape(name, Part::User);
        if let Some(password) = password {
            out.push(b':');
            out.extend(escape(password, Part::User));
        }
        out
    }

    fn hostname(&self) -> &[u8] {
        let colon = self.host.iter().rposition(|&byte| byte == b':');
        let host = match colon.filter(|&colon| is_port(&self.host[colon..])) {
            Some(colon) => &self.host[..colon],
            None => &self.host,
        };
        host.strip_prefix(b"[").and_then(|host| host.strip_suffix(b"]")).unwrap_or(host)
    }

    fn text(&self) -> Vec<u8> {
        let mut out = Vec::new();
        if !self.scheme.is_empty() {
            out.extend_from_slice(self.scheme.as_bytes());
            out.push(b':');
        }
        if !self.opaque.is_empty() {
            out.extend_from_slice(&self.opaque);
        } else {
            if !self.host.is_empty()
                || self.user.is_some()
                || !self.scheme.is_empty() && !self.path.is_empty()
            {
                out.extend_from_slice(b"//");
            }
            if self.user.is_some() {
                out.extend(self.userinfo());
                out.push(b'@');
            }
            out.extend(escape(&self.host, Part::Host));
            let path = if self.path == b"*" { b"*".to_vec() } else { escape(&self.path, Part::Path) };
            if !path.is_empty() && !path.starts_with(b"/") && !self.host.is_empty() {
                out.push(b'/');
            }
            if out.is_empty() && cut(&path, b'/').0.contains(&b':') {
                out.extend_from_slice(b"./");
            }
            out.extend(path);
        }
        if !self.query.is_empty() {
            out.push(b'?');
            out.extend_from_slice(&self.query);
        }
        if !self.fragment.is_empty() {
            out.push(b'#');
            out.extend(escape(&self.fragment, Part::Fragment));
        }
        out
    }
}

fn scheme(text: &[u8]) -> Result<(String, &[u8]), String> {
    for (i, &byte) in text.iter().enumerate() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' => {}
            b'0'..=b'9' | b'+' | b'-' | b'.' if i > 0 => {}
            b':' if i == 0 => return Err("missing protocol scheme".to_owned()),
            b':' => return Ok((String::from_utf8_lossy(&text[..i]).into_owned(), &text[i + 1..])),
            _ => break,
        }
    }
    Ok((String::new(), text))
}

fn is_port(text: &[u8]) -> bool {
    text.split_first().is_none_or(|(colon, digits)| *colon == b':' && digits.iter().all(u8::is_ascii_digit))
}

fn check_port(port: &[u8]) -> Result<(), String> {
    if is_port(port) {
        return Ok(());
    }
    Err(format!("invalid port {} after host", quoted(&String::from_utf8_lossy(port))))
}

fn parse_host(scheme: &str, host: &[u8]) -> Result<Vec<u8>, String> {
    match host.iter().rposition(|&byte| byte == b'[') {
        Some(0) => return parse_bracketed(host),
        Some(_) => return Err("invalid IP-literal".to_owned()),
        None => {}
    }
    let is_web = scheme == "http" || scheme == "https";
    let is_colon = |&byte: &u8| byte == b':';
    let colon = if is_web { host.iter().position(is_colon) } else { host.iter().rposition(is_colon) };
    if let Some(colon) = colon {
        check_port(&host[colon..])?;
    }
    unescape(host, Part::Host)
}

fn parse_bracketed(host: &[u8]) -> Result<Vec<u8>, String> {
    let Some(close) = host.iter().rposition(|&byte| byte == b']') else {
        return Err("missing ']' in host".to_owned());
    };
    check_port(&host[close + 1..])?;
    let inner = &host[1..close];
    let zone = super::strings::find(inner, b"%25").unwrap_or(inner.len());
    let address = unescape(&inner[..zone], Part::Host)?;
    let is_address = std::str::from_utf8(&address).is_ok_and(|address| address.parse::<Ipv6Addr>().is_ok());
    if !is_address {
        return Err("invalid IP-literal".to_owned());
    }
    let zone = unescape(&inner[zone..], Part::Zone)?;
    Ok([b"[", address.as_slice(), &zone, b"]", &host[close + 1..]].concat())
}

fn url_parse(meter: &Meter, args: &[Val]) -> Result<Val, Failure> {
    let text = arg::text(args, 0);
    meter.bytes(text.len().saturating_mul(4))?;
    let url = Url::parse(text).map_err(|error| Failure::new(format!("unable to parse url: {error}")))?;
    let entries = [
        ("scheme", url.scheme.clone().into_bytes()),
        ("host", url.host.clone()),
        ("hostname", url.hostname().to_vec()),
        ("path", url.path.clone()),
        ("query", url.query.clone()),
        ("opaque", url.opaque.clone()),
        ("fragment", url.fragment.clone()),
        ("userinfo", url.userinfo()),
    ];
    let entries = entries.into_iter().map(|(key, value)| (key.as_bytes().into(), Val::str(value)));
    Ok(Val::map(entries.collect::<Tree>()))
}

fn url_join(meter: &Meter, args: &[Val]) -> Result<Val, Failure> {
    let part = |key: &str| -> Result<Vec<u8>, Failure> {
        match arg::map(args, 0).and_then(|map| map.get(key.as_bytes())) {
            None => Ok(Vec::new()),
            Some(Val::Str(text)) => {
                meter.bytes(text.len().saturating_mul(3))?;
                Ok(text.to_vec())
            }
            Some(Val::Nil) => Err(super::coerce::nil_dereference()),
            Some(other) => Err(Failure::new(format!(
                "unable to parse {key} key, must be of type string, but {} found",
                other.kind_name()
            ))),
        }
    };
    let mut url = Url {
        scheme: String::from_utf8_lossy(&part("scheme")?).into_owned(),
        host: part("host")?,
        path: part("path")?,
        query: part("query")?,
        opaque: part("opaque")?,
        fragment: part("fragment")?,
        user: None,
    };
    let userinfo = part("userinfo")?;
    if !userinfo.is_empty() {
        let text = [b"proto://", userinfo.as_slice(), b"@host"].concat();
        let parsed = Url::parse(&text)
            .map_err(|error| Failure::new(format!("unable to parse userinfo in dict: {error}")))?;
        url.user = parsed.user;
    }
    Ok(Val::str(url.text()))
}

//! Calls of every function with values of every kind.

use serde_json::{Value, json};

use crate::compared::Pair;

/// Values for one argument and for two.
const VALUES: [&str; 22] = [
    "\"\"",
    "\"abc\"",
    "\"a b-c_D\u{e9}\"",
    "\"3\"",
    "\"1.5\"",
    "\"-07\"",
    "\" x\\n y \"",
    "-1",
    "2",
    "1.5",
    "true",
    "nil",
    ".LIST",
    ".TEXTS",
    ".MAP",
    ".NIL",
    ".NUMBER",
    ".EMPTY",
    "(list 1 \"a\" nil)",
    "(list)",
    "(dict \"a\" 1)",
    "(int64 5)",
];

/// Values for three arguments.
const FEW: [&str; 9] = ["\"a\"", "\"abcabc\"", "\"\"", "-1", "2", ".LIST", ".MAP", "nil", "1.5"];

/// Functions without random results; those of dates have a grid of their own.
const FUNCTIONS: &str = "and or not eq ne lt le gt ge len index call print printf println html js urlquery hello abbrev \
    abbrevboth trunc trim upper lower title untitle substr repeat trimall trimAll trimSuffix trimPrefix nospace initials \
    swapcase snakecase camelcase kebabcase wrap wrapWith contains hasPrefix hasSuffix quote squote cat indent nindent \
    replace plural sha1sum sha256sum adler32sum toString atoi int64 int float64 toDecimal split splitList splitn toStrings \
    until untilStep add1 add sub div mod mul biggest max min ceil floor round join sortAlpha default empty coalesce compact \
    deepCopy toJson toPrettyJson ternary typeOf typeIs typeIsLike kindOf kindIs deepEqual b64enc b64dec b32enc b32dec tuple \
    list dict set unset hasKey pluck keys values pick omit merge mergeOverwrite append push prepend first rest last initial \
    reverse uniq without has slice concat decryptAES semver semverCompare fail regexMatch regexFindAll regexFind \
    regexReplaceAll regexReplaceAllLiteral regexSplit urlParse urlJoin toYaml toDate unixEpoch dateModify date_modify \
    buildCustomCert genPrivateKey derivePassword genCA genSelfSignedCert genSignedCert";

/// Those that make keys of what they take, or take a second.
const COSTLY: [&str; 5] = ["genPrivateKey", "derivePassword", "genCA", "genSelfSignedCert", "genSignedCert"];

const LAYOUTS: [&str; 16] = [
    "2006-01-02T15:04:05Z07:00",
    "2006-01-02T15:04:05.999999999Z07:00",
    "Mon, 02 Jan 2006 15:04:05 MST",
    "Monday, 02-Jan-06 15:04:05 -0700",
    "January _2, 2006 at 3:04pm (MST)",
    "3:04PM",
    "Jan _2 15:04:05.000",
    "06 1 2 3 4 5",
    "002 __2 _2006",
    "15h04m05s -07 -07:00:00 Z070000",
    "Month Mondays Janus 20061 PMpm",
    "2006,000 .99 .0x",
    "02/01/2006",
    "",
    "text",
    "2006 Z07",
];

const ZONES: [&str; 12] = [
    "",
    "UTC",
    "Local",
    "Europe/Berlin",
    "America/New_York",
    "Asia/Kolkata",
    "Australia/Lord_Howe",
    "America/Sao_Paulo",
    "EST5EDT",
    "europe/berlin",
    "No/Where",
    "../etc/passwd",
];

const SECONDS: [&str; 9] = [
    "0",
    "1700000000",
    "1719835201",
    "-1",
    "-62135596800",
    "951782400",
    "253402300800",
    "-99999999999",
    "4102444800",
];

const DATES: [&str; 40] = [
    "2026-11-25T21:00:00Z",
    "2026-11-25T21:00:00.123456789+05:30",
    "2026-11-25T21:00:00,5-03:00",
    "2026-02-29T00:00:00Z",
    "2024-02-29T24:00:00Z",
    "2024-02-29T23:59:60Z",
    "Tue, 05 Nov 2024 01:02:03 GMT",
    "Tue, 05 Nov 2024 01:02:03 CEST",
    "Tue, 05 Nov 2024 01:02:03 GMT+7",
    "Tue, 05 Nov 2024 01:02:03 +03",
    "xue, 05 Nov 2024 01:02:03 UTC",
    "TUESDAY, 05-NOV-99 01:02:03 -0930",
    "Tuesday, 05-Nov-68 01:02:03 +2460",
    "March  5, 2024 at 12:00am (WITA)",
    "March 25, 2024 at 12:30pm (ChST)",
    "may 5, 2024 at 1:00PM (XST)",
    "12:59AM",
    "0:00PM",
    "13:00PM",
    "Jan  5 01:02:03.004",
    "Jan 15 01:02:03.4",
    "24 2 29 1 2 3",
    "69 12 31 12 59 59.25",
    "24 13 1 1 1 1",
    "060 060 _2024",
    "366 366 _2023",
    "001   1 _0000",
    "15h04m05s -07 -07:00:00 Z",
    "15h04m05s +14 +14:00:30 +140030",
    "Month Tuesdays Janus 20241 AMam",
    "Month Tuesdays Janus 20241 PMam",
    "2024,123 .5 .1x",
    "29/02/2024",
    "31/04/2024",
    " 29/02/2024",
    "29/02/2024 x",
    "",
    "text",
    "2024 +05",
    "-024 Z",
];

const PATTERNS: [&str; 22] = [
    "a",
    "",
    "(a)(b)?",
    "^\\\\w+$",
    "[a-c]+?",
    "(?i)A(?P<n>.)",
    "\\\\d{2,3}",
    "a|b|",
    "(?s).",
    "\\\\bx\\\\b",
    "[^\\\\x00-\\\\x7f]",
    "\\\\p{Greek}",
    "(?:a*)*",
    "(",
    "a**",
    "[[:alpha:]]",
    "x{1001}",
    "(?<n>a)",
    "\\\\Qa.b\\\\E",
    "\\\\z",
    "a{,2}",
    "\\\\pN",
];

const TEXTS: [&str; 7] = ["", "abcab", "a.b x 12 345", "\u{e9}\u{3b1}\\na", "AaXx", "aaa", "{,2}a{,2}"];

const VERSIONS: [&str; 15] = [
    "1.2.3",
    "v1.2.3-alpha.1+b",
    "1.2",
    "1",
    "2.0.0",
    "1.10.0",
    "0.2.3",
    "0.0.3",
    "1.2.3-beta",
    "x",
    "",
    "1.2.3.4",
    "01.2.3",
    "1.2.3-",
    "1.2.3-alpha.10",
];

const CONSTRAINTS: [&str; 22] = [
    "1.2.3",
    "=1.2.3",
    "!=1.2.3",
    ">1.2",
    ">=1.2.3",
    "<2",
    "<=1.2",
    "~1.2.3",
    "~1",
    "^1.2",
    "^0.2.3",
    "^0.0.3",
    "1.x",
    "1.2.X",
    "*",
    "1.2 - 1.4.5",
    ">=1.2, <2 || >3",
    "~>1.2",
    "=>1",
    "><1",
    "",
    ">= 1.2.3-alpha.2",
];

const URLS: [&str; 24] = [
    "http://user:p%20w@host:80/a%20b/c?q=1&r=%2F#frag",
    "https://[::1]:443/x",
    "https://[fe80::1%25en0]/",
    "mailto:a@b",
    "//host/path",
    "///path",
    "/a:b",
    "a:b",
    "a/b:c",
    ":x",
    "http://h:x/",
    "http://a b/",
    "http://%41/",
    "http://h/%zz",
    "http://h?x#y#z",
    "*",
    "HTTP://Host",
    "http://u@@h",
    "http://h\\x00",
    "http://[::1",
    "1http://h",
    "http://h/;a=b,c$d!*'()",
    "",
    "http://\u{e9}/\u{e9}?\u{e9}#\u{e9}",
];

const FORMATS: [&str; 34] = [
    "%v",
    "%+v",
    "%#v",
    "%T",
    "%d",
    "%5d",
    "%-5d|",
    "%05d",
    "%+d",
    "%x",
    "%X",
    "%#x",
    "% x",
    "%o",
    "%b",
    "%c",
    "%q",
    "%#q",
    "%U",
    "%e",
    "%.2f",
    "%8.3f",
    "%g",
    "%G",
    "%s",
    "%.2s",
    "%10s",
    "%t",
    "%%",
    "%",
    "%!",
    "%[2]d %[1]v",
    "%*d",
    "%d %d",
];

/// All pairs.
pub fn all() -> Vec<Pair> {
    let mut calls = functions();
    calls.extend(product(&[&["date"], &quoted(&LAYOUTS), &bracketed(&SECONDS)]));
    calls.extend(product(&[&["dateInZone"], &quoted(&LAYOUTS), &bracketed(&SECONDS), &quoted(&ZONES)]));
    calls.extend(product(&[&["htmlDateInZone"], &bracketed(&SECONDS), &quoted(&ZONES)]));
    calls.extend(product(&[&["htmlDate"], &bracketed(&SECONDS)]));
    calls.extend(product(&[&["toDate"], &quoted(&LAYOUTS), &quoted(&DATES)]));
    calls.extend(product(&[
        &["dateModify"],
        &quoted(&DURATIONS),
        &["(toDate \"2006-01-02\" \"2024-03-31\")"],
    ]));
    for function in ["regexMatch", "regexFind"] {
        calls.extend(product(&[&[function], &quoted(&PATTERNS), &quoted(&TEXTS)]));
    }
    for function in ["regexFindAll", "regexSplit"] {
        calls.extend(product(&[&[function], &quoted(&PATTERNS), &quoted(&TEXTS), &["-1", "0", "2"]]));
    }
    for function in ["regexReplaceAll", "regexReplaceAllLiteral"] {
        let with = ["\"<$1>\"", "\"${n}x\"", "\"$0$$\"", "\"\""];
        calls.extend(product(&[&[function], &quoted(&PATTERNS), &quoted(&TEXTS), &with]));
    }
    calls.extend(product(&[&["semver"], &quoted(&VERSIONS)]));
    calls.extend(product(&[&["semverCompare"], &quoted(&CONSTRAINTS), &quoted(&VERSIONS)]));
    calls.extend(product(&[&["urlParse"], &quoted(&URLS)]));
    calls.extend(product(&[&["urlJoin (urlParse"], &quoted(&URLS)]).iter().map(|call| format!("{call})")));
    calls.extend(product(&[&["printf"], &quoted(&FORMATS), &VALUES]));
    calls.extend(product(&[&["printf"], &quoted(&FORMATS), &FEW, &FEW]));
    calls.extend(product(&[&METHODS]));
    let data = data();
    // A map within itself ends Go's process.
    let is_circular = |call: &String| call.starts_with("set ") && call.matches(".MAP").count() > 1;
    calls
        .into_iter()
        .filter(|call| !is_circular(call))
        .map(|call| Pair {
            name: "grid".to_owned(),
            template: format!("{{{{ {call} }}}}"),
            data: data.clone(),
        })
        .collect()
}

const DURATIONS: [&str; 12] =
    ["1h", "-1.5h", "24h", "90m30s", "1ms", "1us", "1\u{b5}s", "1ns", "0", "", "1d", "9999999h"];

/// Fields and methods of what functions give.
const METHODS: [&str; 14] = [
    "(toDate \"2006-01-02\" \"2024-03-31\").Year",
    "(toDate \"2006-01-02\" \"2024-03-31\").YearDay",
    "(toDate \"2006-01-02\" \"2024-03-31\").Unix",
    "(toDate \"2006-01-02\" \"2024-03-31\").UnixNano",
    "(toDate \"2006-01-02\" \"x\").IsZero",
    "(toDate \"2006-01-02\" \"2024-03-31\").Nope",
    "(toDate \"2006-01-02\" \"2024-03-31\").Format \"Jan\"",
    "(toDate \"2006-01-02\" \"2024-03-31\").Format",
    "(toDate \"2006-01-02\" \"2024-03-31\").Format 1",
    "(toDate \"2006\" \"2024\").Before (toDate \"2006\" \"2025\")",
    "eq (toDate \"2006\" \"2024\") (toDate \"2006\" \"2024\")",
    "(semver \"1.2.3\").Major",
    "toYaml (toDate \"2006-01-02 -0700\" \"2024-03-31 +0130\")",
    "toJson (dict \"t\" (toDate \"2006-01-02 -0700\" \"2024-03-31 +0130\"))",
];

fn data() -> Value {
    json!({
        "LIST": ["c", "a", 2, null, true, ["n"], {"k": 1}],
        "TEXTS": ["b", "a", "b", ""],
        "MAP": {"k": {"x": [1, "y"], "z": null}},
        "NIL": null,
        "NUMBER": 1e6,
        "EMPTY": "",
    })
}

/// Every function alone, and with one, two and three arguments.
fn functions() -> Vec<String> {
    let names: Vec<&str> = FUNCTIONS.split_whitespace().collect();
    let cheap: Vec<&str> = names.iter().copied().filter(|name| !COSTLY.contains(name)).collect();
    let mut calls = product(&[&names]);
    calls.extend(product(&[&cheap, &VALUES]));
    calls.extend(product(&[&cheap, &VALUES, &VALUES]));
    calls.extend(product(&[&cheap, &FEW, &FEW, &FEW]));
    // What a costly one refuses.
    let refused = ["\"x\"", "1.5", "true", ".LIST"];
    calls.extend(product(&[&COSTLY, &refused]));
    calls.extend(product(&[&["genCA", "genPrivateKey"], &["true", ".LIST", "nil"], &refused]));
    calls.extend(product(&[
        &["genSelfSignedCert"],
        &["\"x\""],
        &["(list 1)", "(list \"x\")", "1"],
        &["nil"],
        &["1"],
    ]));
    calls.extend(product(&[
        &["derivePassword"],
        &["-1", "1.5", "\"a\"", ".NUMBER"],
        &["\"pin\" \"a\" \"b\" \"c\""],
    ]));
    calls.extend(product(&[
        &["derivePassword"],
        &["1", "4294967295"],
        &["\"maximum\"", "\"long\"", "\"medium\"", "\"short\"", "\"basic\"", "\"pin\"", "\"\""],
        &["\"p\u{e4}ss\" \"user\" \"site\""],
    ]));
    calls
}

/// Every combination of parts, joined by spaces.
fn product(parts: &[&dyn Part]) -> Vec<String> {
    parts.iter().fold(vec![String::new()], |calls, part| {
        let texts = part.texts();
        let longer = |call: &String| {
            texts.iter().map(|next| format!("{call} {next}").trim_start().to_owned()).collect()
        };
        calls.iter().flat_map(|call| -> Vec<String> { longer(call) }).collect()
    })
}

/// What one position of a call may be.
trait Part {
    fn texts(&self) -> Vec<String>;
}

impl<T: AsRef<str>> Part for Vec<T> {
    fn texts(&self) -> Vec<String> {
        self.iter().map(|text| text.as_ref().to_owned()).collect()
    }
}

impl<T: AsRef<str>, const N: usize> Part for [T; N] {
    fn texts(&self) -> Vec<String> {
        self.iter().map(|text| text.as_ref().to_owned()).collect()
    }
}

fn quoted(texts: &[&str]) -> Vec<String> {
    texts.iter().map(|text| format!("\"{text}\"")).collect()
}

fn bracketed(values: &[&str]) -> Vec<String> {
    values.iter().map(|value| format!("({value})")).collect()
}

//! Functions that draw from the generator, and those that make keys.

use rstest::rstest;

use super::{parse, root};
use crate::{Generator, Never, Root};

/// 2026-11-25T21:00:00.5Z.
fn generator(seed: u8) -> Generator {
    let now = "2026-11-25T21:00:00.5Z".parse().expect("a time");
    Generator::new(now, [seed; 32])
}

fn render_with(text: &str, seed: u8) -> Result<String, String> {
    let template = parse("file.yaml", text).map_err(|error| error.to_string())?;
    let root = root();
    template.render_with(&Root::from(&root), &generator(seed), &Never).map_err(|error| error.to_string())
}

#[rstest]
#[case("{{ randAlphaNum 20 }}")]
#[case("{{ randAlpha 20 }}")]
#[case("{{ randNumeric 20 }}")]
#[case("{{ randAscii 20 }}")]
#[case("{{ shuffle \"abcdefghijklmnopq\" }}")]
#[case("{{ uuidv4 }}")]
#[case("{{ encryptAES \"secret\" \"text\" }}")]
#[case("{{ genPrivateKey \"ecdsa\" }}")]
#[case("{{ (genCA \"ca\" 365).Cert }}")]
fn what_is_random_is_that_of_the_seed(#[case] text: &str) {
    let first = render_with(text, 1).expect("rendered");
    assert_eq!(render_with(text, 1).as_ref(), Ok(&first));
    assert_ne!(render_with(text, 2).as_ref(), Ok(&first));
}

#[test]
fn each_call_draws_anew() {
    let text = render_with("{{ uuidv4 }} {{ uuidv4 }}", 1).expect("rendered");
    let (first, second) = text.split_once(' ').expect("two");
    assert_ne!(first, second);
    assert_eq!((first.len(), &first[14..15]), (36, "4"));
}

#[rstest]
#[case("{{ now }}", "2026-11-25 21:00:00.5 +0000 UTC")]
#[case("{{ now | date \"2006-01-02T15:04:05Z07:00\" }}", "2026-11-25T21:00:00Z")]
#[case("{{ dateInZone \"15:04 MST -0700\" now \"Europe/Berlin\" }}", "22:00 CET +0100")]
#[case("{{ dateInZone \"15:04 MST\" now \"europe/berlin\" }}", "21:00 UTC")]
#[case("{{ date \"2006\" \"no date\" }}", "2026")]
#[case("{{ now | date_modify \"-1h30m\" | unixEpoch }}", "1795635000")]
#[case("{{ ago (toDate \"2006-01-02\" \"2026-11-24\") }}", "45h0m1s")]
#[case("{{ now.Year }} {{ now.Format \"Jan 2\" }} {{ (now).Unix }}", "2026 Nov 25 1795640400")]
#[case("{{ $t := now }}{{ $t.Format \"06\" }}{{ \"05\" | $t.Format }}", "2600")]
#[case("{{ toDate \"2006\" \"x\" }}", "0001-01-01 00:00:00 +0000 UTC")]
#[case(
    "{{ toYaml (dict \"t\" now) }}{{ toJson now }}",
    "t: 2026-11-25T21:00:00.5Z\n\"2026-11-25T21:00:00.5Z\""
)]
fn now_is_what_is_given(#[case] text: &str, #[case] expected: &str) {
    assert_eq!(render_with(text, 1).as_deref(), Ok(expected));
}

#[rstest]
#[case("{{ now }}", "now: this rendering has no clock: pass the time as a value")]
#[case("{{ uuidv4 }}", "uuidv4: this rendering has no source of randomness: pass the text as a value")]
#[case("{{ genCA \"x\" 1 }}", "genCA: this rendering has no clock: pass the certificate as a value")]
fn without_a_generator_they_fail(#[case] text: &str, #[case] message: &str) {
    let error = super::render(text).expect_err("no generator");
    assert!(error.ends_with(&format!("error calling {message}")), "{error}");
}

/// With Go's answers.
#[rstest]
#[case("{{ derivePassword 1 \"long\" \"password\" \"user\" \"example.com\" }}", "ZedaFaxcZaso9*")]
#[case("{{ derivePassword 2 \"maximum\" \"password\" \"user\" \"example.com\" }}", "O8-6Bwz1*I5XVPPq)@H!")]
#[case("{{ derivePassword 1 \"none\" \"p\" \"u\" \"s\" }}", "cannot find password template none")]
#[case("{{ encryptAES \"secretkey\" \"plaintext\" | decryptAES \"secretkey\" }}", "plaintext")]
#[case("{{ decryptAES \"secretkey\" \"30tEfhuJSVRhpG97XCuWgz2okj7L8vQ1s6V9zVUPeDQ=\" }}", "plaintext")]
fn derived(#[case] text: &str, #[case] expected: &str) {
    assert_eq!(render_with(text, 1).as_deref(), Ok(expected));
}

#[test]
fn a_certificate_is_signed_by_its_authority_alone() {
    let text = "{{ $ca := genCA \"ca\" 365 }}{{ $other := genCA \"other\" 365 }}\
                {{ $c := genSignedCert \"host\" (list \"10.0.0.1\" \"::1\") (list \"a.b\") 30 $ca }}{{ kindOf $c }} {{ typeOf $c }}\
                {{ $wrong := buildCustomCert ($ca.Cert | b64enc) ($other.Key | b64enc) }}\
                {{ genSignedCert \"host\" nil nil 30 $wrong }}";
    let error = render_with(text, 3).expect_err("another key");
    assert!(error.ends_with("x509: provided PrivateKey doesn't match parent's PublicKey"), "{error}");
}

/// How long the search for a key takes: run it with `--ignored --nocapture`, optimized.
#[test]
#[ignore = "prints times; for an optimized build"]
fn keys_take() {
    for kind in ["rsa", "dsa", "ecdsa"] {
        let mut times: Vec<u128> = (0..40)
            .map(|seed| {
                #[allow(clippy::disallowed_methods)]
                let began = std::time::Instant::now();
                render_with(&format!("{{{{ genPrivateKey \"{kind}\" }}}}"), seed).expect("rendered");
                began.elapsed().as_millis()
            })
            .collect();
        times.sort_unstable();
        println!("{kind}: median {} ms, longest {} ms", times[20], times[39]);
    }
}

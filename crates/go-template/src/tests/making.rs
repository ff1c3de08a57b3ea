//! Keys are made across interruptions, once, and not without end.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use rstest::rstest;

use super::{parse, root};
use crate::limits::{Interrupt, Interrupted, MAX_KEYS};
use crate::{Generator, KeyStore, Keys, Never, RenderError, Root};

/// A deadline that is reached when it was asked so often.
#[derive(Debug)]
struct After(AtomicUsize);

impl After {
    fn asked(times: usize) -> Self {
        Self(AtomicUsize::new(times))
    }
}

impl Interrupt for After {
    fn interrupted(&self) -> Option<Interrupted> {
        let left = self.0.load(Ordering::Relaxed);
        self.0.store(left.saturating_sub(1), Ordering::Relaxed);
        (left == 0).then_some(Interrupted("took too long"))
    }
}

fn render(text: &str, keys: &Keys, interrupt: &dyn Interrupt) -> Result<String, RenderError> {
    let now = "2026-11-25T21:00:00Z".parse().expect("a time");
    let generator = Generator::new(now, [5; 32]).with_keys(keys);
    let root = root();
    parse("keys.yaml", text).expect("a template").render_with(&Root::from(&root), &generator, interrupt)
}

/// Tries again and again, as a plan does: each try has another budget and the same deadline, which is over after a
/// few candidates. Returns the text and the tries.
fn tried(text: &str, store: &Arc<KeyStore>, asked: usize) -> (String, usize) {
    for tries in 1..2000 {
        match render(text, &Keys::new(store, "tenant"), &After::asked(asked)) {
            Ok(text) => return (text, tries),
            Err(error) => assert!(error.is_transient(), "{error}"),
        }
    }
    panic!("{text} never ends");
}

#[rstest]
#[case::rsa("{{ genPrivateKey \"rsa\" }}")]
#[case::dsa("{{ genPrivateKey \"dsa\" }}")]
#[case::certificates("{{ $c := genCA \"ca\" 9 }}{{ (genSignedCert \"a\" nil nil 9 $c).Cert }}{{ $c.Key }}")]
#[case::passwords("{{ range until 4 }}{{ derivePassword 1 \"pin\" (print .) \"u\" \"s\" }}{{ end }}")]
fn what_takes_longer_than_its_deadline_goes_on_at_the_next_try(#[case] text: &str) {
    let store = Arc::default();
    let (made, tries) = tried(text, &store, 3);
    assert!(tries > 1, "the deadline was over at least once");
    let at_once = render(text, &Keys::default(), &Never).expect("rendered");
    assert_eq!(made, at_once, "interruptions change nothing");
    assert_eq!(tried(text, &store, 3), (at_once, 1), "it is made once");
}

/// The least that a deadline may be: it is over as soon as a candidate was tried.
#[test]
fn each_try_gets_further() {
    let store = Arc::default();
    let (made, tries) = tried("{{ (genCA \"ca\" 9).Key }}", &store, 1);
    assert!(made.starts_with("-----BEGIN RSA PRIVATE KEY-----") && tries > 3, "{tries}");
}

/// The keys of one are not those of another certificate with the same place in its template.
#[test]
fn what_is_kept_is_of_the_same_inputs_alone() {
    let store = Arc::default();
    let rendered = |name: &str| {
        let text = format!("{{{{ (genCA \"{name}\" 9).Cert }}}}");
        render(&text, &Keys::new(&store, "tenant"), &Never).expect("rendered")
    };
    assert_eq!(rendered("one"), rendered("one"));
    assert_ne!(rendered("one"), rendered("two"));
}

#[rstest]
#[case::rsa("genPrivateKey \"rsa\"", "genPrivateKey", 8)]
#[case::dsa("genPrivateKey \"dsa\"", "genPrivateKey", 16)]
#[case::ec("genPrivateKey \"ecdsa\"", "genPrivateKey", 192)]
#[case::certificates("genCA (toString .) 1", "genCA", 64)]
#[case::passwords("derivePassword 1 \"pin\" (toString .) \"u\" \"s\"", "derivePassword", 24)]
fn a_thousand_keys_are_refused(#[case] action: &str, #[case] function: &str, #[case] fit: usize) {
    // Only the last one that fits is made.
    let keys = Keys::default();
    keys.charge(MAX_KEYS / fit * (fit - 1)).expect("a budget");
    let text = format!("{{{{ range until 1000 }}}}{{{{ $x := {action} }}}}{{{{ end }}}}");
    let error = render(&text, &keys, &Never).expect_err("too many");
    assert!(!error.is_transient(), "{error}");
    let said = error.to_string();
    let wanted =
        format!("error calling {function}: key number 3 of this task is over its budget, which is 8 keys");
    assert!(
        said.contains(&wanted) && said.ends_with("divide the task, or use genPrivateKey \"ecdsa\""),
        "{said}"
    );
}

#[test]
fn templates_of_one_task_share_a_budget() {
    let keys = Keys::default();
    let text = "{{ range until 100 }}{{ $x := genPrivateKey \"ecdsa\" }}{{ end }}";
    render(text, &keys, &Never).expect("within the budget");
    assert!(render(text, &keys, &Never).is_err());
    render(text, &Keys::default(), &Never).expect("another task has its own");
}

/// A key that is given is read in bounded time.
#[test]
fn a_given_key_of_too_many_bits_is_refused() {
    let number = |bytes: usize| {
        let length = (bytes as u32).to_be_bytes();
        [&[0x02, 0x83], &length[1..], &vec![0x7f; bytes]].concat()
    };
    let numbers: Vec<u8> = [vec![2, 1, 0], number(300_000), vec![2, 3, 1, 0, 1]]
        .into_iter()
        .chain((0..6).map(|_| number(150_000)))
        .flatten()
        .collect();
    let length = (numbers.len() as u32).to_be_bytes();
    let der = [&[0x30, 0x83], &length[1..], &numbers].concat();
    let key = crate::crypto::pem::encode("RSA PRIVATE KEY", &der);
    assert!(
        crate::crypto::rsa::RsaKey::parse(&crate::crypto::pem::decode(key.as_bytes()).unwrap()).is_none()
    );
}

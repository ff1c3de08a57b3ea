//! Hostile bodies for as long as there is time: 20 seconds for each way in in `make test`, ten
//! minutes in `make soak`. `make fuzz` does the same under libFuzzer, guided by coverage.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

mod flavor;
mod kubelet;
mod large;
mod properties;
mod review;
mod template;
mod yaml;

use std::time::{Duration, Instant};

/// A small generator: what matters is that a seed tells the whole run again.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % u64::try_from(sides.max(1)).unwrap()).unwrap()
    }
}

/// Pieces that mean something to a JSON reader.
const JSON: [&str; 11] = [
    "null",
    "{}",
    "[]",
    "\"\"",
    "-1",
    "1e999",
    "\\u0000",
    "\\ud800",
    "\u{feff}",
    "[[[[[[[[",
    "{\"a\":{\"a\":",
];

/// Pieces that mean something to a rule about Instances.
const OF_REVIEWS: [&str; 9] = [
    "\"planName\":\"\"",
    "\"uid\":\"x\"",
    "\"status\":\"COMPLETE\"",
    "\"planExecution\":null",
    "\"metadata\":{}",
    "\"oldObject\":null",
    "\"operation\":\"DELETE\"",
    "\"v\":1,\"hash\":\"sha256:00\"",
    "\"deletionTimestamp\":\"x\"",
];

/// Pieces that mean something to the resolver of flavors.
const OF_FLAVORS: [&str; 15] = [
    "\\n",
    "{\"name\":\"KONG_ROUTER_FLAVOR\",\"value\":\"expressions\"},",
    "{\"name\":\"KONG_ROUTER_FLAVOR\",\"valueFrom\":{\"configMapKeyRef\":{\"name\":\"a\",\"key\":\"b\"}}},",
    "{\"name\":\"KONG_ROUTER_FLAVOR_FILE\",\"value\":\"/f\"},",
    "{\"prefix\":\"KONG_\",\"secretRef\":{\"name\":\"a\"}},",
    "\"optional\":true,",
    "\"value\":\"\",",
    "$(KONG_ROUTER_FLAVOR)",
    "$$(",
    ")",
    "traditional",
    "\\u00a0expressions",
    "kong:2.8",
    "\"name\":\"proxy\"",
    "\"args\":[\"kong\",\"-c\",\"/c\"],",
];

/// Pieces that mean something to a template.
const OF_TEMPLATES: [&str; 24] = [
    "{{",
    "}}",
    "{{ end }}",
    "{{ range until 100 }}",
    "{{ range .Params.VALUE }}",
    "{{ if .Params.TEXT }}",
    "{{ $x := \"xx\" }}",
    "{{ $x = print $x $x }}",
    "(repeat 1000 \"ab\")",
    "(until 1000)",
    " | toYaml | indent 4",
    " | quote",
    "regexReplaceAll \"(a|b)+\" ",
    "regexFindAll `\\pL{20}` ",
    "printf \"%1000000d %q\" ",
    "splitList \"\" ",
    "uniq ",
    "deepCopy ",
    "(dict \"k\" (list 1 2))",
    "semverCompare \"1,2||3\" ",
    "date \"2006\" ",
    "toJson ",
    "\n=====\n",
    "\n---\n",
];

/// Pieces that mean something to YAML.
const OF_YAML: [&str; 14] =
    ["&a ", "*a", "<<: *a", "- ", "? ", ": ", "|\n", ">-\n", "{a: ", "[", "!!int ", "\n---\n", "~", "'"];

fn damage(dice: &mut Dice, seeds: &[Vec<u8>], pieces: &[&str]) -> Vec<u8> {
    let mut body = seeds[dice.roll(seeds.len())].clone();
    for _ in 0..=dice.roll(4) {
        let at = dice.roll(body.len() + 1);
        let end = (at + dice.roll(40)).min(body.len());
        match dice.roll(6) {
            0 if at < body.len() => body[at] = u8::try_from(dice.roll(256)).unwrap(),
            1 => drop(body.drain(at..end)),
            2 => {
                let piece = pieces[dice.roll(pieces.len())].bytes();
                drop(body.splice(at..end, piece));
            }
            3 => {
                let again: Vec<u8> = body[at..end].to_vec();
                drop(body.splice(at..at, again));
            }
            4 => {
                let other = &seeds[dice.roll(seeds.len())];
                let from = dice.roll(other.len());
                let to = (from + dice.roll(300)).min(other.len());
                drop(body.splice(at..end, other[from..to].iter().copied()));
            }
            _ => body.truncate(at),
        }
    }
    body
}

fn hostile(folder: &str, what: &str, pieces: &[&str], call: fn(&[u8])) {
    let seeds: Vec<Vec<u8>> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| std::fs::read(entry.unwrap().path()).unwrap())
        .collect();
    let pieces: Vec<&str> = JSON.iter().chain(pieces).copied().collect();
    let seconds = if std::env::var_os("INTERLOCK_SOAK").is_some() { 600 } else { 30 };
    let clock = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
    let given = std::env::var("INTERLOCK_SEED").ok().and_then(|text| text.parse::<u64>().ok());
    let seed = given.unwrap_or_else(|| clock.subsec_nanos().into()) | 1;
    let (mut dice, start, mut count) = (Dice(seed), Instant::now(), 0_u64);
    seeds.iter().for_each(|body| call(body));
    while start.elapsed() < Duration::from_secs(seconds) {
        let body = damage(&mut dice, &seeds, &pieces);
        let caught = std::panic::catch_unwind(|| call(&body));
        assert!(caught.is_ok(), "INTERLOCK_SEED={seed}, {what} {count}: {}", String::from_utf8_lossy(&body));
        count += 1;
    }
    eprintln!("counted: {count} hostile {what} in {seconds} s, none made it panic (INTERLOCK_SEED={seed})");
}

#[test]
fn no_body_makes_it_panic() {
    hostile("fuzz/seeds/review", "bodies", &OF_REVIEWS, review::call);
}

#[test]
fn no_template_makes_it_panic() {
    hostile("fuzz/seeds/template", "templates", &OF_TEMPLATES, template::call);
}

#[test]
fn no_yaml_makes_it_panic() {
    hostile("fuzz/seeds/yaml", "documents", &OF_YAML, yaml::call);
}

#[test]
fn no_gateway_makes_it_panic_or_lie() {
    hostile("fuzz/seeds/flavor", "gateways", &OF_FLAVORS, flavor::call);
}

//! The strategic merge beside apimachinery's own (`tests/peers/strategicmerge`): the same object for every merged list
//! of every built-in kind, and for whole objects that are drawn. Directives are not compared: apimachinery forgets them
//! on the way to the patch.

use std::io::{BufRead as _, BufReader, BufWriter, Write as _};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::LazyLock;

use interlock_core::api::object::Gvk;
use interlock_core::strategic_merge::schema::{FieldEntry, ObjectType, SchemaFile, published};
use interlock_core::strategic_merge::three_way;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::{merged_objects, process};

static PEER: LazyLock<PathBuf> = LazyLock::new(|| process::built("tests/peers/strategicmerge/build"));

/// An object as it was applied last, as it is desired, and as it is live.
#[derive(Clone, Debug)]
pub struct Triple {
    pub what: String,
    pub original: Value,
    pub modified: Value,
    pub current: Value,
}

impl Triple {
    fn merged(&self) -> Value {
        let of = ObjectType::of_kind(&Gvk::of(&self.modified).unwrap()).expect("a built-in kind");
        let current = self.current.as_object().unwrap().clone();
        let modified = self.modified.as_object().unwrap();
        Value::Object(three_way::merge(self.original.as_object(), modified, current, of))
    }
}

/// Numbers that are drawn, the same in each run.
pub struct Draw(pub u64);

impl Draw {
    /// Below this one (splitmix64).
    pub fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        usize::try_from((z ^ (z >> 31)) % end as u64).unwrap()
    }

    pub fn is_in(&mut self, chances: usize) -> bool {
        self.below(chances) == 0
    }

    /// Some of these in any order, at least one.
    pub fn some<T: Clone>(&mut self, of: &[T]) -> Vec<T> {
        let mut left = of.to_vec();
        let count = 1 + self.below(of.len());
        (0..count).map(|_| left.remove(self.below(left.len()))).collect()
    }
}

/// What apimachinery makes of these, in their order.
fn apimachinery(triples: &[Triple]) -> Vec<Result<Value, String>> {
    #[derive(Deserialize)]
    struct Answer {
        merged: Value,
        error: Option<String>,
    }
    let mut child = Command::new(PEER.join("strategicmerge"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("strategicmerge starts");
    let mut stdin = BufWriter::new(child.stdin.take().expect("it has a stdin"));
    let lines: Vec<Value> = triples
        .iter()
        .map(|t| json!({"original": t.original, "modified": t.modified, "current": t.current}))
        .collect();
    let writer = std::thread::spawn(move || {
        lines.iter().for_each(|line| writeln!(stdin, "{line}").expect("it reads"));
    });
    let stdout = BufReader::new(child.stdout.take().expect("it has a stdout"));
    let answers = stdout.lines().map(|line| {
        let answer: Answer = serde_json::from_str(&line.expect("UTF-8")).expect("an answer");
        answer.error.map_or(Ok(answer.merged), Err)
    });
    let answers = answers.collect();
    writer.join().expect("all requests are written");
    assert!(child.wait().expect("it ends").success());
    answers
}

#[track_caller]
fn compare(what: &str, triples: &[Triple]) {
    let answers = apimachinery(triples);
    assert_eq!(answers.len(), triples.len());
    let mut differ = Vec::new();
    for (triple, theirs) in triples.iter().zip(answers) {
        let ours = triple.merged();
        if theirs.as_ref() != Ok(&ours) {
            let Triple { what, original, modified, current } = triple;
            differ.push(format!(
                "{what}\n  original {original}\n  modified {modified}\n  current  {current}\n  apimachinery {theirs:?}\n  \
                 ours         {ours}"
            ));
        }
    }
    println!("{what}: {} merges, {} differences", triples.len(), differ.len());
    let shown: Vec<String> = differ.iter().take(20).cloned().collect();
    assert!(differ.is_empty(), "{} of {} differ:\n{}", differ.len(), triples.len(), shown.join("\n"));
}

/// A list that is merged, and where it is.
struct MergedList<'s> {
    /// The fields above, each with its key where it is a list.
    above: Vec<(&'s str, Option<&'s str>)>,
    name: &'s str,
    key: Option<&'s str>,
}

fn lists<'s>(
    schema: &SchemaFile<'s>,
    of: &str,
    above: &[(&'s str, Option<&'s str>)],
    found: &mut Vec<MergedList<'s>>,
) {
    for (name, FieldEntry { key, strategy, of, .. }) in schema.types.get(of).into_iter().flatten() {
        if strategy.is_some_and(|strategy| strategy.starts_with("merge")) {
            found.push(MergedList { above: above.to_vec(), name, key: *key });
        }
        if let Some(of) = of {
            lists(schema, of, &[above, &[(*name, *key)]].concat(), found);
        }
    }
}

impl MergedList<'_> {
    fn key_value(key: &str, i: usize) -> Value {
        if ["port", "containerPort"].contains(&key) { json!(8000 + i) } else { json!(format!("e{i}")) }
    }

    /// A list that is drawn of five elements.
    fn draw(&self, draw: &mut Draw) -> Value {
        let picked = draw.some(&[0, 1, 2, 3, 4]);
        let element = |i: usize| {
            let Some(key) = self.key else { return Self::key_value("", i) };
            let mut element = json!({key: Self::key_value(key, i)});
            if let Some((name, value)) = merged_objects::beside_the_key(self.name, draw.below(3)) {
                element[name] = value;
            }
            element
        };
        picked.into_iter().map(element).collect()
    }

    fn object(&self, api_version: &str, kind: &str, list: Value) -> Value {
        let mut object = json!({self.name: list});
        for (name, key) in self.above.iter().rev() {
            if let Some(key) = key {
                object[*key] = Self::key_value(key, 0);
                object = json!([object]);
            }
            object = json!({*name: object});
        }
        object["apiVersion"] = json!(api_version);
        object["kind"] = json!(kind);
        object
    }
}

#[test]
fn every_merged_list_is_merged_as_apimachinery_does() {
    let (schema, mut draw, mut triples) = (published(), Draw(1), Vec::new());
    for (api_version, kinds) in &schema.kinds {
        for (kind, of) in kinds {
            let mut found = Vec::new();
            lists(&schema, of, &[], &mut found);
            for list in &found {
                let above: Vec<&str> = list.above.iter().map(|(name, _)| *name).collect();
                for _ in 0..8 {
                    let mut drawn = || list.object(api_version, kind, list.draw(&mut draw));
                    let what = format!("{api_version} {kind} {}.{}", above.join("."), list.name);
                    let (original, modified, current) = (drawn(), drawn(), drawn());
                    triples.push(Triple { what, original, modified, current });
                }
            }
        }
    }
    assert!(triples.len() > 2000, "{}", triples.len());
    compare("lists", &triples);
}

#[test]
fn whole_objects_are_merged_as_apimachinery_does() {
    let mut draw = Draw(2);
    let triples: Vec<Triple> = (0..2000)
        .map(|i| {
            let kind = merged_objects::KINDS[i % merged_objects::KINDS.len()];
            let [original, modified, current] = [(); 3].map(|()| kind(&mut draw));
            Triple { what: format!("object {i}"), original, modified, current }
        })
        .collect();
    compare("objects", &triples);
}

/// Where kubectl loses a port, the result is what the package says.
#[test]
fn a_port_of_two_protocols_is_kept() {
    let service = |ports: Value| json!({"apiVersion": "v1", "kind": "Service", "spec": {"ports": ports}});
    let tcp = json!({"name": "dns-tcp", "port": 53, "protocol": "TCP"});
    let udp = json!({"name": "dns", "port": 53, "protocol": "UDP"});
    let triple = Triple {
        what: "DNS".to_owned(),
        original: service(json!([tcp])),
        modified: service(json!([tcp, udp])),
        current: service(json!([tcp])),
    };
    assert_ne!(
        apimachinery(std::slice::from_ref(&triple))[0].as_ref(),
        Ok(&triple.modified),
        "kubectl keeps both now"
    );
    assert_eq!(triple.merged(), triple.modified);
}

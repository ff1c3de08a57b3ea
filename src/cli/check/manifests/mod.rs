//! The input: streams, files, folders and packages, as objects with their places.

use std::fmt;
use std::fs;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context as _, anyhow, bail};
use crd_schema::PathPart;
use go_template::Never;
use go_template::yaml::{Aliases, PathStep, Reader, duplicate_key, line_of, lines_of_items};
use serde_json::Value;

use crate::cli::common::files;
use crate::cli::common::files::READABLE;
use crate::cli::kudo::package::read_package;

mod json;

/// Bytes of all input together.
const MAX_BYTES: u64 = 64 << 20;

/// Objects of all input together.
const MAX_OBJECTS: usize = 20_000;

/// Bytes of an object in which the lines of fields are looked up: each reads the object anew.
const MAX_LOCATED: usize = 1 << 20;

/// Folders in folders.
const MAX_DEPTH: usize = 32;

/// What standard input is called.
pub(in crate::cli) const STDIN: &str = "-";

/// Where an object is in the input.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in crate::cli) struct ManifestPlace {
    pub(super) file: String,
    /// From 1.
    pub(super) line: usize,
}

impl fmt::Display for ManifestPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let file = if self.file == STDIN { "standard input" } else { &self.file };
        write!(f, "{file}:{}", self.line)
    }
}

/// An object of the input.
#[derive(Clone, Debug)]
pub(in crate::cli) struct Manifest {
    pub(in crate::cli) object: Value,
    pub(in crate::cli) place: ManifestPlace,
    /// The text of the object; `None` where it was made of several files.
    source: Option<Arc<Source>>,
}

/// The text of an object, which may begin with the dash of a list's item, and end with what follows.
#[derive(Debug)]
struct Source {
    text: String,
    /// Lines of the file before it.
    lines_before: usize,
}

impl Manifest {
    /// The place of a field, or of the last one on the way that was written.
    pub(super) fn place_of(&self, at: &[PathPart]) -> ManifestPlace {
        let source = self.source.as_ref().filter(|source| source.text.len() <= MAX_LOCATED && !at.is_empty());
        let line = source.and_then(|source| {
            let item = source.text.trim_start().starts_with("- ").then_some(PathStep::Index(0));
            let steps: Vec<PathStep<'_>> = item.into_iter().chain(at.iter().map(step)).collect();
            Some((source.lines_before + line_of(&source.text, &steps)?).max(self.place.line))
        });
        ManifestPlace { file: self.place.file.clone(), line: line.unwrap_or(self.place.line) }
    }
}

fn step(part: &PathPart) -> PathStep<'_> {
    match part {
        PathPart::Key(key) | PathPart::MapKey(key) => PathStep::Key(key),
        PathPart::Index(index) => PathStep::Index(*index),
    }
}

/// Reads all of these, in order.
pub(in crate::cli) fn read(paths: &[PathBuf]) -> anyhow::Result<Vec<Manifest>> {
    let mut input = Input::default();
    for path in paths {
        input.path(path, 0)?;
    }
    Ok(input.manifests)
}

#[derive(Default)]
struct Input {
    manifests: Vec<Manifest>,
    bytes: u64,
}

impl Input {
    fn path(&mut self, path: &Path, depth: usize) -> anyhow::Result<()> {
        if path.extension().is_some_and(|extension| extension == "tgz") {
            return self.package(path, path);
        }
        if !path.is_dir() {
            return self.file(path);
        }
        if depth > MAX_DEPTH {
            bail!("{} is deeper than {MAX_DEPTH} folders: give a folder further down", path.display());
        }
        if ["operator.yaml", "params.yaml"].iter().all(|file| path.join(file).is_file()) {
            return self.package(path, &path.join("operator.yaml"));
        }
        for entry in files::entries(path)? {
            if files::is_manifest(&entry) || entry.is_dir() {
                self.path(&entry, depth + 1)?;
            }
        }
        Ok(())
    }

    /// The objects that `interlock package install` makes of a folder or an archive, but for the Instance.
    fn package(&mut self, source: &Path, file: &Path) -> anyhow::Result<()> {
        let package = read_package(source)?;
        let place = ManifestPlace { file: file.display().to_string(), line: 1 };
        for object in [package.operator, package.operator_version] {
            self.add(Manifest { object, place: place.clone(), source: None })?;
        }
        Ok(())
    }

    fn add(&mut self, manifest: Manifest) -> anyhow::Result<()> {
        if self.manifests.len() >= MAX_OBJECTS {
            bail!("the input holds more than {MAX_OBJECTS} objects: check it in parts");
        }
        self.manifests.push(manifest);
        Ok(())
    }

    fn file(&mut self, path: &Path) -> anyhow::Result<()> {
        let text = self.text_of(path)?;
        let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
        if text.trim_start().starts_with('{')
            && let Some(values) = json::values(text).map_err(|duplicate| {
                anyhow!(
                    "{}:{}: the object has the key {} twice: remove one of both",
                    path.display(),
                    duplicate.line,
                    duplicate.key
                )
            })?
        {
            for (value, range) in values {
                let lines_before = text[..range.start].matches('\n').count();
                self.document(path, value, &text[range], lines_before)?;
            }
            return Ok(());
        }
        self.stream(path, text)
    }

    fn text_of(&mut self, path: &Path) -> anyhow::Result<String> {
        let left = MAX_BYTES - self.bytes;
        let mut text = String::new();
        let read = match path == Path::new(STDIN) {
            true => std::io::stdin().take(left + 1).read_to_string(&mut text),
            false => fs::File::open(path).and_then(|file| file.take(left + 1).read_to_string(&mut text)),
        };
        read.map_err(|error| anyhow!("{} cannot be read: {error}; {READABLE}", path.display()))?;
        self.bytes += text.len() as u64;
        if self.bytes > MAX_BYTES {
            bail!("{}: the input has more than {} MiB: check it in parts", path.display(), MAX_BYTES >> 20);
        }
        Ok(text)
    }

    /// The documents of a YAML stream; each line that starts with `---` begins one, as in kubectl.
    fn stream(&mut self, path: &Path, text: &str) -> anyhow::Result<()> {
        let mut lines_before = 0;
        for chunk in text.split("\n---") {
            if !chunk.trim().is_empty() {
                let value = Reader::new(Aliases::Counted, &Never).read(chunk).map_err(|error| {
                    let line = error.line + lines_before;
                    anyhow!("{}:{line}: the text is neither YAML nor JSON: {}", path.display(), error.problem)
                })?;
                if let Some(found) = duplicate_key(chunk) {
                    let (first, second) = (found.first + lines_before, found.line + lines_before);
                    let remedy = match found.is_top_level {
                        true => {
                            "where a second manifest begins, put a line with --- before it; else remove one of both"
                        }
                        false => "remove one of both",
                    };
                    bail!(
                        "{}:{second}: the key {} is in line {first} already: {remedy}",
                        path.display(),
                        found.key
                    );
                }
                self.document(path, value, chunk, lines_before)?;
            }
            // The line break before the mark.
            lines_before += chunk.matches('\n').count() + 1;
        }
        Ok(())
    }

    /// The object of a document, or those of a List.
    fn document(
        &mut self,
        path: &Path,
        mut value: Value,
        text: &str,
        lines_before: usize,
    ) -> anyhow::Result<()> {
        if value.is_null() {
            return Ok(());
        }
        let file = path.display().to_string();
        let source =
            |text: &str, lines_before: usize| Some(Arc::new(Source { text: text.to_owned(), lines_before }));
        let is_list = value["kind"].as_str().is_some_and(|kind| kind.ends_with("List"));
        let items =
            value.get_mut("items").and_then(Value::as_array_mut).filter(|_| is_list).map(std::mem::take);
        let Some(items) = items else {
            let place = ManifestPlace { file, line: lines_before + line_of(text, &[]).unwrap_or(1) };
            let object = files::object(path, "a document", value).with_context(|| place.to_string())?;
            return self.add(Manifest { object, place, source: source(text, lines_before) });
        };
        let texts = item_texts(text);
        for (i, item) in items.into_iter().enumerate() {
            let (line, text) = texts.get(i).copied().unwrap_or((1, ""));
            let place = ManifestPlace { file: file.clone(), line: lines_before + line };
            let object =
                files::object(path, &format!("items[{i}]"), item).with_context(|| place.to_string())?;
            self.add(Manifest { object, place, source: source(text, lines_before + line - 1) })?;
        }
        Ok(())
    }
}

/// The lines where the items of a List begin, and the lines of each.
fn item_texts(text: &str) -> Vec<(usize, &str)> {
    let mut starts = vec![0];
    starts.extend(text.match_indices('\n').map(|(at, _)| at + 1));
    let lines = lines_of_items(text, "items");
    let begin = |line: usize| starts.get(line - 1).copied().unwrap_or(text.len());
    let end = |i: usize| lines.get(i + 1).map_or(text.len(), |next| begin(*next));
    let items = lines.iter().enumerate();
    items.map(|(i, line)| (*line, &text[begin(*line)..end(i).max(begin(*line))])).collect()
}

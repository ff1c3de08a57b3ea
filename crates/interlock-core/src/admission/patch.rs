//! The patch of a mutation: only the last-applied annotation, the finalizer, planExecution and
//! parameters, the annotations of a plan request, and the history of runs.

use json_patch::jsonptr::{Pointer, PointerBuf};
use json_patch::{AddOperation, Patch, PatchOperation, RemoveOperation};
use serde_json::{Value, json};

use super::review::ReviewMetadata;
use crate::api::json::json_bytes;
use crate::api::meta;

/// The JSON of a patch. Large strings are escaped here, as serde_json inspects every byte separately
/// and the last-applied annotation is most of a patch.
pub fn to_json(patch: &Patch) -> Result<Vec<u8>, serde_json::Error> {
    let strings = patch.0.iter().map(|operation| match operation {
        PatchOperation::Add(AddOperation { value: Value::String(text), .. }) => 2 * text.len(),
        _ => 0,
    });
    let mut out = Vec::with_capacity(strings.sum::<usize>() + 512);
    out.push(b'[');
    for (i, operation) in patch.0.iter().enumerate() {
        if i > 0 {
            out.push(b',');
        }
        match operation {
            PatchOperation::Add(AddOperation { path, value }) => {
                out.extend_from_slice(b"{\"op\":\"add\",\"path\":");
                json_bytes(&mut out, path.as_str());
                out.extend_from_slice(b",\"value\":");
                write(&mut out, value)?;
                out.push(b'}');
            }
            other => serde_json::to_writer(&mut out, other)?,
        }
    }
    out.push(b']');
    Ok(out)
}

fn write(out: &mut Vec<u8>, value: &Value) -> Result<(), serde_json::Error> {
    match value {
        Value::String(text) => json_bytes(out, text),
        Value::Object(members) => {
            out.push(b'{');
            for (i, (name, member)) in members.iter().enumerate() {
                if i > 0 {
                    out.push(b',');
                }
                json_bytes(out, name);
                out.push(b':');
                write(out, member)?;
            }
            out.push(b'}');
        }
        other => serde_json::to_writer(out, other)?,
    }
    Ok(())
}

const ANNOTATIONS: &Pointer = Pointer::from_static("/metadata/annotations");
/// Path of [`meta::LAST_APPLIED_SPEC`].
const STAMP: &Pointer = Pointer::from_static("/metadata/annotations/interlock.dev~1last-applied-spec");
const FINALIZERS: &Pointer = Pointer::from_static("/metadata/finalizers");
const PARAMETERS: &Pointer = Pointer::from_static("/spec/parameters");
const EXECUTION: &Pointer = Pointer::from_static("/spec/planExecution");

/// Operations, in order.
#[derive(Debug, Default)]
pub struct Operations(Vec<PatchOperation>);

impl Operations {
    /// The patch.
    pub fn finish(self) -> Patch {
        Patch(self.0)
    }

    /// Whether there are no changes.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn add(&mut self, path: PointerBuf, value: Value) {
        self.0.push(PatchOperation::Add(AddOperation { path, value }));
    }

    fn remove(&mut self, path: PointerBuf) {
        self.0.push(PatchOperation::Remove(RemoveOperation { path }));
    }

    /// Sets or removes the last-applied annotation.
    pub fn stamp(&mut self, metadata: &ReviewMetadata<'_>, stamp: Option<String>) {
        match stamp {
            Some(text) if metadata.annotations.present => {
                self.add(STAMP.to_buf(), Value::String(text));
            }
            Some(text) => self.add(ANNOTATIONS.to_buf(), json!({ meta::LAST_APPLIED_SPEC: text })),
            None if metadata.annotations.has_stamp => {
                self.remove(STAMP.to_buf());
            }
            None => {}
        }
    }

    /// Sets an annotation of an object that may have none.
    pub fn new_annotation(&mut self, metadata: &ReviewMetadata<'_>, key: &str, text: String) {
        match metadata.annotations.present {
            true => self.annotation(key, &text),
            false => self.add(ANNOTATIONS.to_buf(), json!({ key: text })),
        }
    }

    /// Sets an annotation of an object that has annotations.
    pub fn annotation(&mut self, key: &str, text: &str) {
        self.add(ANNOTATIONS.with_trailing_token(key), Value::String(text.to_owned()));
    }

    /// Removes an existing annotation.
    pub fn drop_annotation(&mut self, key: &str) {
        self.remove(ANNOTATIONS.with_trailing_token(key));
    }

    /// Sets the history of runs; `present`: whether the object has annotations by now.
    pub fn history(&mut self, present: bool, text: Option<&str>) {
        match (text, present) {
            (Some(text), true) => self.annotation(meta::HISTORY, text),
            (Some(text), false) => self.add(ANNOTATIONS.to_buf(), json!({ meta::HISTORY: text })),
            (None, _) => {}
        }
    }

    /// Removes the existing history.
    pub fn drop_history(&mut self) {
        self.remove(ANNOTATIONS.with_trailing_token(meta::HISTORY));
    }

    /// Appends our finalizer.
    pub fn finalizer(&mut self, metadata: &ReviewMetadata<'_>) {
        match metadata.finalizers {
            Some(_) => {
                self.add(FINALIZERS.with_trailing_token("-"), Value::String(meta::FINALIZER.to_owned()))
            }
            None => self.add(FINALIZERS.to_buf(), json!([meta::FINALIZER])),
        }
    }

    /// Sets planExecution; removes an empty one.
    pub fn execution(&mut self, plan: &str, uid: &str, status: &str) {
        let mut execution = serde_json::Map::new();
        for (key, text) in [("planName", plan), ("uid", uid), ("status", status)] {
            if !text.is_empty() {
                execution.insert(key.to_owned(), Value::String(text.to_owned()));
            }
        }
        self.add(EXECUTION.to_buf(), Value::Object(execution));
    }

    /// Sets the values of parameters; `has_map`: whether the spec has a map of them.
    pub fn parameters<'p>(&mut self, values: impl IntoIterator<Item = (&'p str, &'p str)>, has_map: bool) {
        if has_map {
            for (name, value) in values {
                self.add(PARAMETERS.with_trailing_token(name), Value::String(value.to_owned()));
            }
            return;
        }
        let map: serde_json::Map<String, Value> = values
            .into_iter()
            .map(|(name, value)| (name.to_owned(), Value::String(value.to_owned())))
            .collect();
        if !map.is_empty() {
            self.add(PARAMETERS.to_buf(), Value::Object(map));
        }
    }

    /// Removes a parameter.
    pub fn drop_parameter(&mut self, name: &str) {
        self.remove(PARAMETERS.with_trailing_token(name));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_stamp_stands_under_its_key() {
        assert_eq!(STAMP.to_buf(), ANNOTATIONS.with_trailing_token(meta::LAST_APPLIED_SPEC));
    }

    #[test]
    fn a_patch_is_written_as_serde_json_writes_it() {
        let metadata = ReviewMetadata::default();
        let mut operations = Operations::default();
        operations.stamp(&metadata, Some("{\"v\":1,\"é\":\"\\n\"}".to_owned()));
        operations.finalizer(&metadata);
        operations.execution("deploy", "uid \"1\"", "");
        operations.parameters([("A/B~C", "1\u{1}"), ("D", "")], false);
        operations.parameters([("A/B~C", "1\u{1}")], true);
        operations.drop_parameter("D");
        let patch = operations.finish();
        let written: Value = serde_json::from_slice(&to_json(&patch).unwrap()).unwrap();
        assert_eq!(written, serde_json::to_value(&patch).unwrap());
    }
}

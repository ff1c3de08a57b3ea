//! The schema of a version, as `apiextensions.k8s.io/v1` writes it.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use serde::Deserialize;
use serde_json::Value;

use crate::cel::{Expression, Types};
use crate::patterns::CompiledPattern;

/// A JSONSchemaProps; fields that no validation reads are left out.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct StructuralSchema {
    #[serde(rename = "type")]
    pub(crate) type_: Option<String>,
    pub(crate) nullable: bool,
    pub(crate) format: Option<String>,
    pub(crate) default: Option<Value>,
    #[serde(rename = "enum")]
    pub(crate) enumeration: Option<Vec<Value>>,
    pub(crate) required: Vec<String>,
    pub(crate) pattern: Option<String>,
    pub(crate) min_length: Option<u64>,
    pub(crate) max_length: Option<u64>,
    pub(crate) minimum: Option<f64>,
    pub(crate) maximum: Option<f64>,
    pub(crate) exclusive_minimum: bool,
    pub(crate) exclusive_maximum: bool,
    pub(crate) multiple_of: Option<f64>,
    pub(crate) min_items: Option<u64>,
    pub(crate) max_items: Option<u64>,
    pub(crate) min_properties: Option<u64>,
    pub(crate) max_properties: Option<u64>,
    pub(crate) properties: BTreeMap<String, Self>,
    pub(crate) additional_properties: Option<Additional>,
    pub(crate) items: Option<Box<Self>>,
    pub(crate) all_of: Vec<Self>,
    pub(crate) any_of: Vec<Self>,
    pub(crate) one_of: Vec<Self>,
    pub(crate) not: Option<Box<Self>>,
    #[serde(rename = "x-kubernetes-preserve-unknown-fields")]
    pub(crate) preserve_unknown_fields: Option<bool>,
    #[serde(rename = "x-kubernetes-embedded-resource")]
    pub(crate) embedded_resource: bool,
    #[serde(rename = "x-kubernetes-int-or-string")]
    pub(crate) int_or_string: bool,
    #[serde(rename = "x-kubernetes-list-type")]
    pub(crate) list_type: Option<String>,
    #[serde(rename = "x-kubernetes-list-map-keys")]
    pub(crate) list_map_keys: Vec<String>,
    #[serde(rename = "x-kubernetes-map-type")]
    pub(crate) map_type: Option<String>,
    #[serde(rename = "x-kubernetes-validations")]
    pub(crate) rules: Vec<CelRule>,
    /// Shared by all that have the pattern.
    #[serde(skip)]
    pub(crate) compiled_pattern: Arc<OnceLock<CompiledPattern>>,
}

/// `additionalProperties`: whether there may be any, or their schema.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
pub(crate) enum Additional {
    Allowed(bool),
    StructuralSchema(Box<StructuralSchema>),
}

/// An entry of `x-kubernetes-validations`.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct CelRule {
    pub(crate) rule: String,
    pub(crate) message: Option<String>,
    pub(crate) message_expression: Option<String>,
    pub(crate) reason: Option<String>,
    pub(crate) field_path: Option<String>,
    pub(crate) optional_old_self: bool,
    #[serde(skip)]
    compiled: OnceLock<Result<Expression, String>>,
}

impl CelRule {
    /// The expression, compiled once; or why it cannot be asked.
    pub(crate) fn compiled(&self) -> &Result<Expression, String> {
        self.compiled.get_or_init(|| Expression::compile(&self.rule, Types::OfSchema))
    }
}

/// Compiled patterns, or those to be, by text.
pub(crate) type SharedPatterns = BTreeMap<String, Arc<OnceLock<CompiledPattern>>>;

impl StructuralSchema {
    /// Lets equal patterns be compiled once.
    pub(crate) fn share_patterns(&mut self, known: &mut SharedPatterns) {
        if let Some(pattern) = &self.pattern {
            self.compiled_pattern = known.entry(pattern.clone()).or_default().clone();
        }
        let values = match &mut self.additional_properties {
            Some(Additional::StructuralSchema(values)) => Some(values.as_mut()),
            Some(Additional::Allowed(_)) | None => None,
        };
        let single = [self.items.as_deref_mut(), self.not.as_deref_mut(), values];
        let lists = [&mut self.all_of, &mut self.any_of, &mut self.one_of].into_iter().flatten();
        let below = self.properties.values_mut().chain(single.into_iter().flatten()).chain(lists);
        below.for_each(|schema| schema.share_patterns(known));
    }

    /// The schema of the values of keys that `properties` does not have.
    pub(crate) fn values(&self) -> Option<&Self> {
        match &self.additional_properties {
            Some(Additional::StructuralSchema(schema)) => Some(schema),
            _ => None,
        }
    }

    /// Whether keys that `properties` does not have are allowed.
    pub(crate) fn allows_additional(&self) -> bool {
        matches!(
            self.additional_properties,
            Some(Additional::Allowed(true) | Additional::StructuralSchema(_))
        )
    }

    pub(crate) fn preserves_unknown_fields(&self) -> bool {
        self.preserve_unknown_fields == Some(true)
    }

    /// The schema of a key of an object, and whether the key is one of a map.
    pub(crate) fn of_key(&self, key: &str) -> Option<(&Self, bool)> {
        match self.properties.get(key) {
            Some(property) => Some((property, false)),
            None => self.values().map(|values| (values, true)),
        }
    }

    /// Whether two versions of a map have the same keys to compare by.
    pub(crate) fn is_granular_map(&self) -> bool {
        self.map_type.as_deref().unwrap_or("granular") == "granular"
    }

    pub(crate) fn is_list_map(&self) -> bool {
        self.list_type.as_deref() == Some("map")
    }

    pub(crate) fn is_list_set(&self) -> bool {
        self.list_type.as_deref() == Some("set")
    }
}

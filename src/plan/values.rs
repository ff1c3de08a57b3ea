//! Values of parameters as templates see them.

use std::collections::BTreeMap;

use thiserror::Error;

use crate::api::kudo::Parameter;
use crate::api::stamp::Values;
use crate::plan::package::Package;
use crate::template::{self, yaml};

/// A value that cannot be given to templates. It is not shown: it may be a password.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error(
    "parameter \"{parameter}\" has an invalid value: type is \"{value_type}\" but the value is not a YAML \
     {value_type}; set spec.parameters.{parameter} to a YAML {value_type}"
)]
pub struct ValueError {
    /// The parameter.
    pub parameter: String,
    /// `array` or `map`.
    pub value_type: &'static str,
}

/// All parameters of a package: the given value, also an empty one, else the default, else
/// nothing. Arrays and maps are decoded, everything else is text, numbers and booleans too
/// (KUDO `ParamsMap` and `convert.ParamValue`).
pub fn parameters(
    package: &Package,
    values: &Values<'_>,
) -> Result<BTreeMap<String, template::Value>, ValueError> {
    package
        .parameters()
        .filter_map(|p| Some((p, p.name.as_deref()?)))
        .map(|(p, name)| {
            let text = values.get(name).map(AsRef::as_ref).or(p.default.as_deref()).unwrap_or_default();
            Ok((name.to_owned(), value(p, name, text)?))
        })
        .collect()
}

fn value(parameter: &Parameter, name: &str, text: &str) -> Result<template::Value, ValueError> {
    let value_type = match parameter.value_type.as_deref() {
        Some("array") => "array",
        Some("map") => "map",
        _ => return Ok(text.into()),
    };
    let invalid = || ValueError { parameter: name.to_owned(), value_type };
    let decoded = yaml::read(text).map_err(|_| invalid())?;
    // KUDO lets a map be any value; only an array must be one.
    if value_type == "array" && !(decoded.is_array() || decoded.is_null()) {
        return Err(invalid());
    }
    Ok(decoded.into())
}

//! Values of parameters: KUDO's checks with KUDO's texts (`pkg/apis/kudo/v1beta1/parameter.go`).
//!
//! Messages show values only of integers, numbers, booleans and enumerations; any other may be a
//! password, and becomes `***`.

use std::borrow::Cow;

use go_template::Never;
use go_template::yaml::{Aliases, Reader, YamlProblem};
use interlock_core::api::values::Values;
use interlock_core::api::violation::{FieldReason, ViolationField};

use super::Package;
use super::number::{ParseNumberError, parse_bool, parse_float, parse_int};
use crate::api::Parameter;

/// Replaces a value that is not shown.
pub const MASK: &str = "***";

/// The types of parameters; absent means `string`.
pub const TYPES: [&str; 6] = ["string", "integer", "number", "boolean", "array", "map"];

/// Whether the values of a parameter may be shown.
pub fn shown(parameter: &Parameter) -> bool {
    let typed = matches!(parameter.value_type.as_deref(), Some("integer" | "number" | "boolean"));
    typed || parameter.enum_.as_ref().is_some_and(|values| !values.is_empty())
}

/// A value for messages: itself, cut to 64 characters, or `***`.
pub fn display<'v>(parameter: Option<&Parameter>, value: &'v str) -> Cow<'v, str> {
    if !parameter.is_some_and(shown) {
        return Cow::Borrowed(MASK);
    }
    match value.char_indices().nth(64) {
        Some((end, _)) => Cow::Owned(format!("{}...", &value[..end])),
        None => Cow::Borrowed(value),
    }
}

/// A value that does not fit its parameter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParameterProblem {
    pub parameter: String,
    /// Whether a value is missing, or wrong.
    pub reason: FieldReason,
    /// KUDO's sentence.
    pub sentence: String,
    /// The fault, in one line, for the cause of the field.
    pub detail: String,
    pub remedy: String,
}

impl ParameterProblem {
    pub fn field(&self) -> ViolationField {
        ViolationField::parameter(&self.parameter, self.reason, self.detail.clone())
    }
}

/// Decodes arrays and maps; all values of one decision share one budget of decoded bytes. It
/// rejects aliases, which can expand a small text and which no value needs.
pub fn reader() -> Reader<'static> {
    Reader::new(Aliases::Refused, &Never)
}

/// Decodes an array or map. The error has a text only where a bound was exceeded, to continue a
/// sentence that begins with "the value"; any other could show the value.
pub(super) fn decode(reader: &Reader<'_>, text: &str) -> Result<serde_json::Value, Option<String>> {
    reader.read(text).map_err(|error| match error.problem {
        YamlProblem::Alias => Some(format!(
            "uses a YAML alias (*name, in its line {}), which is not allowed; write out what it stands for",
            error.line
        )),
        YamlProblem::TooLarge => Some(format!(
            "takes, with those of other parameters, more than {} bytes when it is decoded; make it smaller",
            go_template::yaml::MAX_MADE
        )),
        YamlProblem::TooDeep => {
            Some(format!("is nested deeper than {} levels", go_template::yaml::MAX_DEPTH))
        }
        _ => None,
    })
}

/// Checks one value. An empty value counts as absent: it is rejected only where the parameter is
/// required and has no default.
pub fn check(reader: &Reader<'_>, parameter: &Parameter, value: Option<&str>) -> Option<ParameterProblem> {
    let name = parameter.name.as_deref().unwrap_or_default();
    let Some(value) = value.filter(|v| !v.is_empty()) else {
        let missing = parameter.required == Some(true) && parameter.default.is_none();
        return missing.then(|| ParameterProblem {
            parameter: name.to_owned(),
            reason: FieldReason::Required,
            sentence: format!("parameter {name:?} is required but has no value set"),
            detail: "a value is required, and there is no default".to_owned(),
            remedy: format!("set spec.parameters.{name}"),
        });
    };
    let Fault { why, bound } =
        wrong_type(reader, parameter, value).or_else(|| not_listed(parameter, value).map(Fault::new))?;
    let value = display(Some(parameter), value);
    let fitting = fitting(parameter);
    let detail = match bound {
        Some(bound) => format!("the value {bound}"),
        None if value == MASK => format!("must be {fitting}"),
        None => format!("{value:?} is not {fitting}"),
    };
    Some(ParameterProblem {
        parameter: name.to_owned(),
        reason: FieldReason::Invalid,
        sentence: format!("parameter {name:?} has an invalid value {value:?}: {why}"),
        detail,
        remedy: format!("set spec.parameters.{name} to {fitting}"),
    })
}

/// The values that a parameter accepts.
fn fitting(parameter: &Parameter) -> String {
    if let Some(values) = parameter.enum_.as_ref().filter(|values| !values.is_empty()) {
        return format!("one of [{}]", values.join(" "));
    }
    let fits = match parameter.value_type.as_deref().unwrap_or_default() {
        "integer" => "a whole number, such as 3",
        "number" => "a number, such as 0.5",
        "boolean" => "true or false",
        "array" => "a list as YAML or JSON, such as [a, b]",
        "map" => "a map as YAML or JSON, such as {a: b}",
        _ => "a value that its OperatorVersion allows",
    };
    fits.to_owned()
}

/// Why a value does not fit, in KUDO's words, which end where KUDO's manager would print an error of Go.
struct Fault {
    why: String,
    /// The bound that it exceeds, to continue a sentence that begins with "the value".
    bound: Option<String>,
}

impl Fault {
    fn new(why: String) -> Self {
        Self { why, bound: None }
    }
}

fn wrong_type(reader: &Reader<'_>, parameter: &Parameter, value: &str) -> Option<Fault> {
    let type_ = parameter.value_type.as_deref()?;
    let shown = display(Some(parameter), value);
    let number = |error: ParseNumberError| {
        let why = format!("type is {type_:?} but format of {shown:?} is invalid");
        let bound = error.is_out_of_range().then(|| format!("{shown:?} needs more than 64 bits"));
        Fault { why, bound }
    };
    let decoded = |fits: fn(&serde_json::Value) -> bool| match decode(reader, value) {
        Ok(value) if value.is_null() || fits(&value) => None,
        Err(Some(bound)) => {
            Some(Fault { why: format!("type is {type_:?}, but the value {bound}"), bound: Some(bound) })
        }
        _ => Some(Fault::new(format!("type is {type_:?}, but format of {shown} is invalid"))),
    };
    match type_ {
        "integer" => parse_int(value).err().map(number),
        "number" => parse_float(value).err().map(number),
        "boolean" => parse_bool(value).err().map(number),
        "array" => decoded(serde_json::Value::is_array),
        "map" => decoded(serde_json::Value::is_object),
        _ => None,
    }
}

fn not_listed(parameter: &Parameter, value: &str) -> Option<String> {
    let allowed = parameter.enum_.as_ref().filter(|values| !values.is_empty())?;
    let listed = allowed.iter().any(|v| v == value);
    let shown = display(Some(parameter), value);
    (!listed).then(|| format!("value is {shown:?}, but only allowed values are [{}]", allowed.join(" ")))
}

/// Checks the values of all parameters that a package defines, in the order it lists them.
pub fn check_all(package: &Package, values: &Values<'_>) -> Vec<ParameterProblem> {
    let reader = reader();
    package
        .constrained()
        .filter_map(|p| check(&reader, p, p.name.as_deref().and_then(|n| values.get(n)).map(AsRef::as_ref)))
        .collect()
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    fn parameter(type_: &str) -> Parameter {
        Parameter { name: Some("P".to_owned()), value_type: Some(type_.to_owned()), ..Parameter::default() }
    }

    /// Rows of "Parameter value rules": (type, value, KUDO's sentence or nothing).
    #[rstest]
    #[case("integer", "42", "")]
    #[case("integer", "-42", "")]
    #[case(
        "integer",
        "4.2",
        r#"parameter "P" has an invalid value "4.2": type is "integer" but format of "4.2" is invalid"#
    )]
    #[case("number", "0x1p-2", "")]
    #[case("number", "Inf", "")]
    #[case(
        "number",
        "one",
        r#"parameter "P" has an invalid value "one": type is "number" but format of "one" is invalid"#
    )]
    #[case("boolean", "T", "")]
    #[case(
        "boolean",
        "yes",
        r#"parameter "P" has an invalid value "yes": type is "boolean" but format of "yes" is invalid"#
    )]
    #[case("array", "[1, 2]", "")]
    #[case("array", "- a\n- b", "")]
    #[case("array", "null", "")]
    #[case(
        "array",
        "a: b",
        r#"parameter "P" has an invalid value "***": type is "array", but format of *** is invalid"#
    )]
    #[case("map", "a: b", "")]
    #[case("map", "{}", "")]
    #[case("map", "null", "")]
    #[case(
        "map",
        "- secret",
        r#"parameter "P" has an invalid value "***": type is "map", but format of *** is invalid"#
    )]
    #[case("string", "anything at all", "")]
    #[case("nonsense", "anything at all", "")]
    #[case("integer", "", "")]
    fn values_by_type(#[case] type_: &str, #[case] value: &str, #[case] sentence: &str) {
        let problem = check(&reader(), &parameter(type_), Some(value));
        assert_eq!(problem.map(|p| p.sentence).unwrap_or_default(), sentence);
    }

    #[rstest]
    #[case::missing(true, None, None, true)]
    #[case::empty_is_missing(true, None, Some(""), true)]
    #[case::defaulted(true, Some("d"), None, false)]
    #[case::empty_default_is_a_default(true, Some(""), None, false)]
    #[case::optional(false, None, None, false)]
    #[case::given(true, None, Some("v"), false)]
    fn values_required(
        #[case] required: bool,
        #[case] default: Option<&str>,
        #[case] value: Option<&str>,
        #[case] refused: bool,
    ) {
        let parameter = Parameter {
            required: Some(required),
            default: default.map(str::to_owned),
            ..parameter("string")
        };
        let sentence = check(&reader(), &parameter, value).map(|p| p.sentence);
        assert_eq!(
            sentence.as_deref(),
            refused.then_some("parameter \"P\" is required but has no value set")
        );
    }

    #[rstest]
    #[case::array("array", "[&a secret, *a]", "uses a YAML alias (*name, in its line 1)")]
    #[case::map("map", "a: &a {b: secret}\nc: {<<: *a}", "uses a YAML alias (*name, in its line 2)")]
    fn aliases_are_refused_and_not_shown(#[case] type_: &str, #[case] value: &str, #[case] why: &str) {
        let problem = check(&reader(), &parameter(type_), Some(value)).unwrap();
        assert!(problem.sentence.contains(why) && problem.sentence.contains("write out"), "{problem:?}");
        assert!(!problem.sentence.contains("secret"), "{problem:?}");
    }

    #[test]
    fn the_values_of_all_parameters_share_a_budget() {
        let value = format!("[{}]", "x,".repeat(60_000));
        let reader = reader();
        let mut problems = (0..10).map(|_| check(&reader, &parameter("array"), Some(&value)));
        assert_eq!(problems.next().unwrap(), None);
        let sentence = problems.last().unwrap().unwrap().sentence;
        assert!(sentence.contains("more than 8388608 bytes when it is decoded"), "{sentence}");
    }

    #[test]
    fn enumerations_are_checked_after_the_type_and_shown() {
        let listed = Parameter { enum_: Some(vec!["a".to_owned(), "b".to_owned()]), ..parameter("string") };
        assert_eq!(check(&reader(), &listed, Some("b")), None);
        assert_eq!(
            check(&reader(), &listed, Some("c")).unwrap().sentence,
            r#"parameter "P" has an invalid value "c": value is "c", but only allowed values are [a b]"#
        );
    }

    /// Validation skips only parameters that accept every value.
    #[rstest]
    fn parameters_that_are_not_constrained_take_every_value(
        #[values(None, Some("string"), Some("nonsense"), Some("integer"), Some("map"))] type_: Option<&str>,
        #[values(None, Some(false), Some(true))] required: Option<bool>,
        #[values(None, Some("d"))] default: Option<&str>,
        #[values(None, Some(vec![]), Some(vec!["a".to_owned()]))] listed: Option<Vec<String>>,
        #[values(None, Some(""), Some("[a"))] value: Option<&str>,
    ) {
        let parameter = Parameter {
            name: Some("P".to_owned()),
            value_type: type_.map(str::to_owned),
            required,
            default: default.map(str::to_owned),
            enum_: listed,
            ..Parameter::default()
        };
        let constrained = crate::package::constrained(&parameter);
        assert!(constrained || check(&reader(), &parameter, value).is_none());
    }

    #[test]
    fn a_wrong_default_is_not_looked_at() {
        let parameter = Parameter { default: Some("not a number".to_owned()), ..parameter("integer") };
        assert_eq!(check(&reader(), &parameter, None), None);
    }
}

//! What metrics say of all objects of a kind.

use crate::topology::ObjectRow;

/// The gauges of all objects of a kind, by their rows, at a time in Unix seconds.
pub type Gauges = fn(&mut dyn Iterator<Item = ObjectRow<'_>>, u64) -> Vec<Gauge>;

/// A gauge with its values. Values of the label come from closed sets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Gauge {
    /// Name, without the prefix of the product.
    pub name: &'static str,
    /// What it counts, without the full stop.
    pub help: &'static str,
    /// Name of its label; `None` for one value without a label.
    pub label: Option<&'static str>,
    /// Each with its value of the label.
    pub values: Vec<(&'static str, u64)>,
}

impl Gauge {
    /// One value.
    pub fn of(name: &'static str, help: &'static str, value: u64) -> Self {
        Self { name, help, label: None, values: vec![("", value)] }
    }

    /// A value for each word of a label.
    pub fn by(
        (name, label): (&'static str, &'static str),
        help: &'static str,
        values: impl IntoIterator<Item = (&'static str, u64)>,
    ) -> Self {
        Self { name, help, label: Some(label), values: values.into_iter().collect() }
    }
}

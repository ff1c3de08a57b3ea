//! A value as YAML, from within a template.

use crate::dynamic::Val;
use crate::error::Failure;
use crate::function::Type::Any;
use crate::function::{Function, fixed};
use crate::limits::{LimitReached, MAX_VALUE_DEPTH, Meter};
use crate::yaml::Doc;

pub(super) const FUNCTIONS: &[Function] = &[fixed("toYaml", &[Any], |meter, args| {
    let text = doc(meter, &args[0], 0)?.write(|bytes| meter.bytes(bytes));
    Ok(Val::str(text?))
})];

fn doc(meter: &Meter, value: &Val, depth: usize) -> Result<Doc, Failure> {
    if depth > MAX_VALUE_DEPTH {
        return Err(LimitReached::ValueDepth.into());
    }
    meter.items(2)?;
    Ok(match value {
        Val::Nil => Doc::Null,
        Val::Bool(value) => Doc::Bool(*value),
        Val::Int(value) | Val::Int64(value) => Doc::Int(*value),
        Val::Byte(value) => Doc::Int(i64::from(*value)),
        Val::Float(value) => Doc::Float(*value),
        Val::Str(text) => {
            meter.bytes(text.len())?;
            Doc::Text(text.to_vec())
        }
        // A struct without exported fields.
        Val::Version(_) => Doc::Map(Vec::new()),
        Val::Time(time) => Doc::Plain(time.rfc3339()),
        Val::Certificate(pair) => {
            meter.bytes(pair.cert.len().saturating_add(pair.key.len()))?;
            let field = |name: &str, text: &[u8]| (name.as_bytes().to_vec(), Doc::Text(text.to_vec()));
            Doc::Map(vec![field("cert", &pair.cert), field("key", &pair.key)])
        }
        Val::List(list) => {
            let items = list.items().iter().map(|item| doc(meter, item, depth + 1));
            Doc::Seq(items.collect::<Result<_, _>>()?)
        }
        Val::Map(map) => {
            let entries = map.entries();
            // YAML sorts their keys in another order.
            let bytes = entries.iter().map(|(key, _)| key.len()).sum::<usize>();
            meter.entries(entries.len())?;
            meter.bytes(bytes)?;
            let halvings = entries.len().max(1).ilog2() as usize;
            meter.read(bytes.saturating_add(entries.len()).saturating_mul(8 * halvings))?;
            let entries = entries.into_iter();
            let entries = entries.map(|(key, value)| Ok((key.to_vec(), doc(meter, &value, depth + 1)?)));
            Doc::Map(entries.collect::<Result<_, Failure>>()?)
        }
    })
}

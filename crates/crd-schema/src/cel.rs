//! CEL expressions: compiled once, asked within limits.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use kube_cel::KubeCelExt as _;
use kube_cel::cel::common::ast::{CallExpr, EntryExpr, Expr, IdedExpr, LiteralValue, operators};
use kube_cel::cel::extractors::This;
use kube_cel::cel::objects::Key;
use kube_cel::cel::{Context, ExecutionError, FunctionContext, Value};

use crate::cost::{self, FIELD, HAS_FIELD, Sizes};
use crate::syntax::{self, SyntaxError};

/// The parser's own bound.
const PARSER_DEPTH: u16 = 96;

/// A compiled expression.
#[derive(Debug)]
pub(crate) struct Expression {
    tree: IdedExpr,
    pub(crate) uses_old_self: bool,
}

/// Why an expression has no value.
#[derive(Debug)]
pub(crate) enum CelFailure {
    /// It fails on these values, also in the API server.
    OnValues(String),
    /// It cannot be evaluated here.
    Unevaluated(String),
}

impl Expression {
    /// Compiles an expression, or says why it cannot be asked here. `types` says whether a schema gives values their types.
    pub(crate) fn compile(text: &str, types: Types) -> Result<Self, String> {
        let mut tree = syntax::parse(text, PARSER_DEPTH).map_err(|error| match error {
            SyntaxError::TooLarge(reason) => reason,
            _ => "the expression has syntax that is not supported offline".to_owned(),
        })?;
        let uses_old_self = tree.references().has_variable("oldSelf");
        adapt(&mut tree, types);
        Ok(Self { tree, uses_old_self })
    }

    /// A bound for the steps on values of these sizes.
    pub(crate) fn bound(&self, sizes: Sizes) -> Option<u64> {
        cost::bound(&self.tree, sizes)
    }

    /// The value of the expression, with these variables.
    pub(crate) fn evaluate(&self, context: &Context<'_>) -> Result<Value, CelFailure> {
        match catch_unwind(AssertUnwindSafe(|| Value::resolve(&self.tree, context))) {
            Ok(Ok(value)) => Ok(value),
            Ok(Err(error)) => Err(failure(&error)),
            Err(_) => Err(CelFailure::Unevaluated("its evaluation fails offline".to_owned())),
        }
    }
}

/// Whether the API server knows types of values before an expression is evaluated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Types {
    /// By a schema: a field is asked of an object only.
    OfSchema,
    /// Not before.
    OfValues,
}

/// Functions of one argument that can be called as methods.
const METHODS: [&str; 5] = ["size", "string", "int", "uint", "double"];

/// Writes an expression so that the library evaluates it as CEL says. Of a field that is not there, its `a.?b`
/// fails, where `a[?'b']` is none; and `size(a.b)` fails for another reason than `a.b.size()`.
fn adapt(tree: &mut IdedExpr, types: Types) {
    let adapt = |tree: &mut IdedExpr| adapt(tree, types);
    let of_entry = |entry: &mut EntryExpr| match entry {
        EntryExpr::StructField(field) => adapt(&mut field.value),
        EntryExpr::MapEntry(entry) => {
            adapt(&mut entry.key);
            adapt(&mut entry.value);
        }
    };
    match &mut tree.expr {
        Expr::Call(call) => {
            if call.func_name == operators::OPT_SELECT {
                operators::OPT_INDEX.clone_into(&mut call.func_name);
            }
            if METHODS.contains(&call.func_name.as_str()) && call.target.is_none() && call.args.len() == 1 {
                call.target = call.args.pop().map(Box::new);
            }
            call.target.iter_mut().for_each(|target| adapt(target));
            call.args.iter_mut().for_each(&adapt);
        }
        Expr::Comprehension(loops) => {
            let parts = [&mut loops.iter_range, &mut loops.accu_init, &mut loops.loop_cond];
            parts.into_iter().for_each(&adapt);
            adapt(&mut loops.loop_step);
            adapt(&mut loops.result);
        }
        Expr::List(list) => list.elements.iter_mut().for_each(adapt),
        Expr::Map(map) => map.entries.iter_mut().for_each(|entry| of_entry(&mut entry.expr)),
        Expr::Struct(of) => of.entries.iter_mut().for_each(|entry| of_entry(&mut entry.expr)),
        Expr::Select(select) => {
            adapt(&mut select.operand);
            if types == Types::OfValues {
                let name = LiteralValue::String(select.field.as_str().into());
                let call = CallExpr {
                    func_name: if select.test { HAS_FIELD } else { FIELD }.to_owned(),
                    target: Some(std::mem::take(&mut select.operand)),
                    args: vec![IdedExpr { id: tree.id, expr: Expr::Literal(name) }],
                };
                tree.expr = Expr::Call(call);
            }
        }
        Expr::Ident(_) | Expr::Literal(_) | Expr::Unspecified => {}
    }
}

/// All functions of Kubernetes' CEL.
pub(crate) fn functions() -> Context<'static> {
    let mut context = Context::default().with_all();
    context.add_function("size", size);
    context.add_function(FIELD, field);
    context.add_function(HAS_FIELD, has_field);
    context
}

fn field(
    context: &FunctionContext<'_, '_>,
    This(of): This<Value>,
    name: Arc<String>,
) -> Result<Value, ExecutionError> {
    let Value::Map(map) = of else { return Err(no_object(context)) };
    map.get(&Key::String(name.clone())).cloned().ok_or(ExecutionError::NoSuchKey(name))
}

fn has_field(
    context: &FunctionContext<'_, '_>,
    This(of): This<Value>,
    name: Arc<String>,
) -> Result<bool, ExecutionError> {
    match of {
        Value::Map(map) => Ok(map.get(&Key::String(name)).is_some()),
        Value::List(_) => Err(no_object(context)),
        _ => Ok(false),
    }
}

fn no_object(context: &FunctionContext<'_, '_>) -> ExecutionError {
    context.error("no object")
}

/// CEL counts the characters of a text, where the library counts bytes.
fn size(context: &FunctionContext<'_, '_>, This(this): This<Value>) -> Result<i64, ExecutionError> {
    let size = match this {
        Value::List(items) => items.len(),
        Value::Map(map) => map.map.len(),
        Value::String(text) => text.chars().count(),
        Value::Bytes(bytes) => bytes.len(),
        _ => return Err(context.error("the value has no size")),
    };
    i64::try_from(size).map_err(|_| context.error("the size is too large"))
}

/// An expression that the API server compiled has no type errors: where the library finds one, it lacks something.
fn failure(error: &ExecutionError) -> CelFailure {
    match error {
        ExecutionError::NoSuchKey(key) => CelFailure::OnValues(format!("there is no key {key}")),
        ExecutionError::IndexOutOfBounds(_) => CelFailure::OnValues("an index is out of bounds".to_owned()),
        ExecutionError::DivisionByZero(_) | ExecutionError::RemainderByZero(_) => {
            CelFailure::OnValues("it divides by zero".to_owned())
        }
        ExecutionError::Overflow(..) => CelFailure::OnValues("a number overflows".to_owned()),
        ExecutionError::FunctionError { function, .. } if [FIELD, HAS_FIELD].contains(&function.as_str()) => {
            CelFailure::OnValues("a field is asked of a value that is no object".to_owned())
        }
        ExecutionError::FunctionError { function, .. } => {
            CelFailure::OnValues(format!("the function {function} fails"))
        }
        ExecutionError::UndeclaredReference(name) => {
            CelFailure::Unevaluated(format!("it uses {name}, which is not supported offline"))
        }
        _ => CelFailure::Unevaluated(
            "it uses an operation that is not supported offline, or on values of types that it does not take"
                .to_owned(),
        ),
    }
}

/// A text that a `messageExpression` gives; it has one line.
pub(crate) fn as_message(value: &Value) -> Option<Arc<String>> {
    match value {
        Value::String(text) if !text.trim().is_empty() && !text.contains('\n') => Some(text.clone()),
        _ => None,
    }
}

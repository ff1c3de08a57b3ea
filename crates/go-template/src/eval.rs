//! Evaluates pipelines, operands and calls within an execution.

use super::ast::{Command, Operand, Pipe, Term};
use super::builtins;
use super::dynamic::{Elem, Val};
use super::error::Failure;
use super::exec::{Executed, Executor, Reached, Variable};
use super::function::{Function, Implementation, Plain, Type};
use super::go::quote::quoted;
use super::limits::Meter;
use super::literal::{self, Ideal};
use super::sprig;
use super::value::Value;

impl<'t> Executor<'t> {
    pub(super) fn pipeline(&mut self, dot: &Reached, pipe: &'t Pipe) -> Executed<Val> {
        self.deeper(|state| {
            state.at(pipe.pos, pipe);
            let mut value: Option<Val> = None;
            for command in &pipe.commands {
                value = Some(state.command(dot, command, value)?.value);
            }
            let value = value.unwrap_or_default();
            for name in &pipe.variables {
                if pipe.assigns {
                    state.assign(name, value.clone().into())?;
                } else {
                    state.variables.push(Variable { name, value: value.clone().into() });
                }
            }
            Ok(value)
        })
    }

    fn command(&mut self, dot: &Reached, command: &'t Command, last: Option<Val>) -> Executed<Reached> {
        let first = &command.first;
        let has_args = !command.args.is_empty() || last.is_some();
        match &first.term {
            Term::Field(names) => {
                self.at(first.pos, first);
                self.member(dot, dot.clone(), names, command, last)
            }
            Term::Chain(operand, names) => {
                self.at(first.pos, first);
                let receiver = self.untyped(dot, operand)?;
                self.member(dot, receiver, names, command, last)
            }
            Term::Variable(name, names) if has_args && !names.is_empty() => {
                let receiver = self.variable(first, name, &[], false)?;
                self.member(dot, receiver, names, command, last)
            }
            Term::Function(function) => {
                self.at(first.pos, first);
                let call = Call { function, args: &command.args, last, pos: command.pos, node: command };
                self.call(dot, call)
            }
            Term::Pipe(pipe) => {
                self.not_a_function(first, has_args)?;
                self.pipeline(dot, pipe).map(Reached::from)
            }
            Term::Variable(name, names) => self.variable(first, name, names, has_args),
            _ => {
                self.at(first.pos, first);
                self.not_a_function(first, has_args)?;
                match &first.term {
                    Term::Dot => Ok(dot.clone()),
                    Term::Nil => self.error("nil is not a command"),
                    _ => self.constant(first).map(Reached::from),
                }
            }
        }
    }

    fn not_a_function(&self, first: &Operand, has_args: bool) -> Executed<()> {
        if has_args { self.error(format!("can't give argument to non-function {first}")) } else { Ok(()) }
    }

    /// A literal without a wanted type.
    fn constant(&mut self, operand: &'t Operand) -> Executed<Val> {
        self.at(operand.pos, operand);
        Ok(match &operand.term {
            Term::Bool(value) => Val::Bool(*value),
            Term::String { value, .. } => Val::str(value),
            Term::Number(number) => match literal::ideal(number) {
                Ideal::Int(value) => Val::Int(value),
                Ideal::Float(value) => Val::Float(value),
                Ideal::Overflow => return self.error(format!("{} overflows int", number.literal)),
            },
            _ => return self.error(format!("can't evaluate command {}", quoted(&operand.to_string()))),
        })
    }

    fn chain(
        &mut self,
        dot: &Reached,
        whole: &'t Operand,
        operand: &'t Operand,
        names: &'t [String],
    ) -> Executed<Reached> {
        self.at(whole.pos, whole);
        let receiver = self.untyped(dot, operand)?;
        self.fields(receiver, names, false)
    }

    /// A field of a receiver, or a method with the arguments of this command.
    fn member(
        &mut self,
        dot: &Reached,
        receiver: Reached,
        names: &'t [String],
        command: &'t Command,
        last: Option<Val>,
    ) -> Executed<Reached> {
        let has_args = !command.args.is_empty() || last.is_some();
        let Some((name, path)) = names.split_last().filter(|_| has_args) else {
            return self.fields(receiver, names, false);
        };
        let receiver = self.fields(receiver, path, false)?;
        let method = matches!(receiver.value, Val::Time(_))
            .then(|| sprig::METHODS.iter().find(|method| method.name == name))
            .flatten();
        let Some(function) = method else { return self.field(&receiver, name, true) };
        let call = Call { function, args: &command.args, last, pos: command.pos, node: command };
        self.call_with(dot, vec![receiver.value], call)
    }

    fn variable(
        &mut self,
        operand: &'t Operand,
        name: &str,
        names: &'t [String],
        has_args: bool,
    ) -> Executed<Reached> {
        self.at(operand.pos, operand);
        let Some(at) = self.place(name)? else {
            return self.error(format!("undefined variable: {name}"));
        };
        let value = self.variables[at].value.clone();
        if names.is_empty() {
            self.not_a_function(operand, has_args)?;
            return Ok(value);
        }
        self.fields(value, names, has_args)
    }

    fn fields(&mut self, mut receiver: Reached, names: &[String], has_args: bool) -> Executed<Reached> {
        for (i, name) in names.iter().enumerate() {
            let has_args = has_args && i + 1 == names.len();
            receiver = self.field(&receiver, name, has_args)?;
        }
        Ok(receiver)
    }

    fn field(&self, receiver: &Reached, name: &str, has_args: bool) -> Executed<Reached> {
        match &receiver.value {
            Val::Nil if receiver.boxed => self.error(format!("nil pointer evaluating interface {{}}.{name}")),
            Val::Nil => self.error(format!("nil data; no entry for key {}", quoted(name))),
            Val::Map(_) if has_args => self.error(format!("{name} is not a method but has arguments")),
            Val::Map(map) => match map.get(name.as_bytes()) {
                Some(value) => Ok(Reached { value, boxed: map.elem == Elem::Any }),
                None => self.error(format!("map has no entry for key {}", quoted(name))),
            },
            value => {
                if let Some(part) = value.part(name).filter(|_| !has_args) {
                    return Ok(part.into());
                }
                let type_name = if receiver.boxed { "interface {}".to_owned() } else { value.type_name() };
                self.error(format!("can't evaluate field {name} in type {type_name}"))
            }
        }
    }
}

/// A function with its unevaluated arguments.
struct Call<'t> {
    function: &'static Function,
    args: &'t [Operand],
    /// The value that the pipeline passes as the last argument.
    last: Option<Val>,
    /// Position for errors of the function itself.
    pos: usize,
    node: &'t dyn std::fmt::Display,
}

// Arguments and calls.
impl<'t> Executor<'t> {
    /// An operand without a wanted type, as the receiver of a field chain.
    fn untyped(&mut self, dot: &Reached, operand: &'t Operand) -> Executed<Reached> {
        self.at(operand.pos, operand);
        match &operand.term {
            Term::Dot => Ok(dot.clone()),
            Term::Nil => self.error(format!("indirection through explicit nil in {operand}")),
            Term::Field(names) => self.fields(dot.clone(), names, false),
            Term::Variable(name, names) => self.variable(operand, name, names, false),
            Term::Pipe(pipe) => self.pipeline(dot, pipe).map(Reached::from),
            Term::Function(function) => {
                let call = Call { function, args: &[], last: None, pos: operand.pos, node: operand };
                self.call(dot, call)
            }
            Term::Chain(inner, names) => self.chain(dot, operand, inner, names),
            _ => self.constant(operand).map(Reached::from),
        }
    }

    /// An operand as an argument of a declared type.
    fn argument(&mut self, dot: &Reached, wanted: Type, operand: &'t Operand) -> Executed<Val> {
        self.at(operand.pos, operand);
        let expected = |what: &str| format!("expected {what}; found {operand}");
        match (&operand.term, wanted) {
            (Term::Nil, wanted) if wanted.can_be_nil() => Ok(Val::Nil),
            (Term::Nil, wanted) => self.error(format!("cannot assign nil to {}", wanted.name())),
            (Term::Bool(_) | Term::String { .. } | Term::Number(_), Type::Any) => self.constant(operand),
            (Term::Bool(value), Type::Bool) => Ok(Val::Bool(*value)),
            (Term::String { value, .. }, Type::Str) => Ok(Val::str(value)),
            (Term::Number(number), Type::Int) => match number.int {
                Some(int) => Ok(Val::Int(int)),
                None => self.error(expected("integer")),
            },
            (Term::Number(number), Type::Float) => match number.float {
                Some(float) => Ok(Val::Float(float)),
                None => self.error(expected("float")),
            },
            (Term::Number(number), Type::Uint32) => match number.int {
                // Go cuts what does not fit.
                Some(int) if int >= 0 => Ok(Val::Int(int & i64::from(u32::MAX))),
                _ => self.error(expected("unsigned integer")),
            },
            (Term::Bool(_) | Term::String { .. } | Term::Number(_), wanted) => match wanted {
                Type::Uint32 => self.error(expected("unsigned integer")),
                Type::Bool => self.error(expected("bool")),
                Type::Int => self.error(expected("integer")),
                Type::Float => self.error(expected("float")),
                Type::Str => self.error(expected("string")),
                Type::Any | Type::Dict | Type::List | Type::Time | Type::Certificate => {
                    self.error(format!("can't handle {operand} for arg of type {}", wanted.name()))
                }
            },
            _ => {
                let reached = self.untyped(dot, operand)?;
                self.typed(reached, wanted)
            }
        }
    }

    /// Go's `validateType`.
    fn typed(&self, reached: Reached, wanted: Type) -> Executed<Val> {
        let Reached { value, boxed } = reached;
        let got = match value {
            value if wanted.takes(&value) => return Ok(value),
            Val::Nil if boxed => "interface {}".to_owned(),
            Val::Nil if wanted.can_be_nil() => return Ok(Val::Nil),
            Val::Nil => return self.error(format!("invalid value; expected {}", wanted.name())),
            value => value.type_name(),
        };
        self.error(format!("wrong type for value; expected {}; got {got}", wanted.name()))
    }

    fn call(&mut self, dot: &Reached, call: Call<'t>) -> Executed<Reached> {
        let Call { function, args, last, .. } = &call;
        self.limit(self.meter.step())?;
        self.count_arguments(function, args.len(), last.is_some())?;
        if let Implementation::And | Implementation::Or = function.run {
            return self.short_circuit(dot, matches!(function.run, Implementation::Or), args, call.last);
        }
        self.call_with(dot, Vec::with_capacity(args.len() + 1), call)
    }

    /// Calls a function; a method has its receiver as the first value.
    fn call_with(&mut self, dot: &Reached, mut values: Vec<Val>, call: Call<'t>) -> Executed<Reached> {
        let Call { function, args, last, pos, node } = call;
        let own = values.len();
        self.count_arguments(function, own + args.len(), last.is_some())?;
        let type_of = |i: usize| function.params.get(i).copied().or(function.variadic).unwrap_or(Type::Any);
        for (i, operand) in args.iter().enumerate() {
            let value = self.argument(dot, type_of(own + i), operand)?;
            values.push(value);
        }
        if let Some(last) = last {
            let value = self.typed(last.into(), type_of(own + args.len()))?;
            values.push(value);
        }
        let texts = values.iter().map(|value| if let Val::Str(text) = value { text.len() } else { 0 });
        self.limit(self.meter.read(texts.sum()))?;
        let result = match function.run {
            Implementation::Body(body) => body(&self.meter, &values),
            Implementation::Plain(body) => plain(&self.meter, body, &values),
            _ => Err(builtins::not_callable(args.first(), &values)),
        };
        match result {
            Ok(value) => Ok(value.into()),
            Err(failure) => {
                self.at(pos, node);
                match failure {
                    Failure::Refused(message) => {
                        self.error(format!("error calling {}: {message}", function.name))
                    }
                    Failure::NoGenerator(message) => self.no_generator(function.name, message),
                    Failure::Limit(limit) => self.reached(limit),
                }
            }
        }
    }

    fn count_arguments(&self, function: &Function, written: usize, piped: bool) -> Executed<()> {
        let given = written + usize::from(piped);
        let wanted = function.params.len();
        let name = function.name;
        match function.variadic {
            Some(_) if given < wanted => {
                self.error(format!("wrong number of args for {name}: want at least {wanted} got {written}"))
            }
            None if given != wanted => {
                self.error(format!("wrong number of args for {name}: want {wanted} got {given}"))
            }
            _ => Ok(()),
        }
    }

    /// `and` and `or` evaluate only as many arguments as necessary.
    fn short_circuit(
        &mut self,
        dot: &Reached,
        until: bool,
        args: &'t [Operand],
        last: Option<Val>,
    ) -> Executed<Reached> {
        let mut value = Reached::default();
        for operand in args {
            value = self.either(dot, operand)?;
            if value.value.truth() == until {
                return Ok(value);
            }
        }
        Ok(last.map_or(value, Reached::from))
    }

    fn either(&mut self, dot: &Reached, operand: &'t Operand) -> Executed<Reached> {
        self.at(operand.pos, operand);
        if let Term::Nil = operand.term { Ok(Reached::default()) } else { self.untyped(dot, operand) }
    }
}

/// Calls a function of the program.
fn plain(meter: &Meter, body: Plain, args: &[Val]) -> Result<Val, Failure> {
    let args: Vec<Value> = args.iter().map(|arg| arg.to_value(meter, 0)).collect::<Result<_, _>>()?;
    let result = body(&args).map_err(Failure::Refused)?;
    Ok(Val::of(meter, &result)?)
}

//! What a validation may cost.

/// Bytes of one CEL expression.
pub const MAX_EXPRESSION_BYTES: usize = 16 << 10;

/// Brackets of one CEL expression that are open at a time: its parser recurses.
pub const MAX_EXPRESSION_DEPTH: usize = 48;

/// Conditional operators (`? :`) of one CEL expression, which nest without brackets.
pub const MAX_CONDITIONALS: usize = 64;

/// Steps that one evaluation of a CEL expression could take, by the sizes of the values at hand.
pub const MAX_STEPS: u64 = 4_000_000;

/// Steps of all CEL expressions on one object together.
pub const MAX_OBJECT_STEPS: u64 = 40_000_000;

/// Bytes of one compiled regular expression.
pub const MAX_PATTERN_BYTES: usize = 1 << 20;

/// Parts of one regular expression that may be wide ranges whose case is ignored.
pub const MAX_WIDE_FOLDS: usize = 16;

/// Errors that one validation lists; the rest are counted.
pub const MAX_ERRORS: usize = 100;

//! Arguments, crypto provider and runtime; everything else is in the library.

fn main() {}

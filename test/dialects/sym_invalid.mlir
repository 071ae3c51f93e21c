// RUN: prism-opt %s --split-input-file --verify-diagnostics --parsing-diagnostics | filecheck %s

// CHECK: expected a symbolic expression: a number, a parameter, `-` or `(`
func.func private @f() -> () attributes {a = #sym.expr<n * >}

// -----
// CHECK: division by zero
func.func private @f() -> () attributes {a = #sym.expr<n / (d - d)>}

// -----
// CHECK: exponent larger than 64
func.func private @f() -> () attributes {a = #sym.expr<n^65>}

// -----
// CHECK: a Boolean power is one of a parameter
func.func private @f() -> () attributes {a = #sym.expr<(n + 1)^m0>}

// -----
// CHECK: expected an axis, one of x, y, z, i, j, k; found 'w'
func.func private @f() -> () attributes {a = #sym.map<{w = 0}>}

// -----
// CHECK: axis 'x' occurs twice in a map
func.func private @f() -> () attributes {a = #sym.map<{x = 0, x = 1}>}

// -----
// CHECK: expected a constraint, one of at_most_one, equal, never, some; found 'most'
func.func private @f() -> () attributes {a = #sym.constraint<most(m0)>}

// -----
// CHECK: number of more than 64 digits
func.func private @f() -> () attributes {a = #sym.expr<1.0e99999999>}

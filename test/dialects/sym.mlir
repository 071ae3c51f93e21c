// RUN: %roundtrip

// Sizes are kept in a normal form and print readably.
// CHECK-LABEL: func.func private @expressions
func.func private @expressions() -> () attributes {
  // CHECK-SAME: a = #sym.expr<n / (grid.x * loop.i)>
  a = #sym.expr<n / loop.i / grid.x>,
  // CHECK-SAME: b = #sym.expr<d / (grid.x^m1 * loop.i^m5)>
  b = #sym.expr<d / (grid.x^m1 * loop.i^m5)>,
  // CHECK-SAME: c = #sym.expr<n - 1>
  c = #sym.expr<(n * n - 1) / (n + 1)>,
  // CHECK-SAME: e = #sym.expr<1 / 100000>
  e = #sym.expr<1.0e-5>,
  // CHECK-SAME: f = #sym.expr<n * n - 2 * n + 1>
  f = #sym.expr<(n - 1)^2>,
  // CHECK-SAME: g = #sym.expr<n / (d + 1)>
  g = #sym.expr<2 * n / (2 * d + 2)>
}

// CHECK-LABEL: func.func private @maps
func.func private @maps() -> () attributes {
  // CHECK-SAME: a = #sym.map<{x = 1, i = 0}>
  a = #sym.map<{x = 1, i = 0}>,
  // CHECK-SAME: b = #sym.map<{x = [m0, m1], i = [m2, m3]}>
  b = #sym.map<{x = [m0, m1], i = [m2, m3]}>,
  // CHECK-SAME: c = #sym.map<{}>
  c = #sym.map<{}>,
  // CHECK-SAME: d = [#sym.constraint<at_most_one(m0, m1)>, #sym.constraint<equal(m0, m2)>, #sym.constraint<never(m3)>, #sym.constraint<some(m1, m2)>]
  d = [#sym.constraint<at_most_one(m0, m1)>, #sym.constraint<equal(m0, m2)>, #sym.constraint<never(m3)>, #sym.constraint<some(m1, m2)>]
}

// A symbolic shape is the encoding of a builtin tensor.
// CHECK-LABEL: func.func private @shape(tensor<?x1xf16, #sym.shape<[n, 1]>>)
func.func private @shape(tensor<?x1xf16, #sym.shape<[n, 1]>>)

// RUN: prism-opt %s -p prism-generate,prism-prune,prism-instantiate-maps,prism-verify | filecheck %s
// RUN: prism-opt %s -p 'prism-generate,prism-prune,prism-instantiate-maps,prism-verify{max_nodes=20 reasons=true}' | filecheck %s --check-prefix=LIMIT
// RUN: prism-opt %s -p prism-generate,prism-verify | filecheck %s --check-prefix=SYMBOLIC

// Every generated graph gets a verdict, the workload none. A limit gives `unknown`, and so do symbolic maps.
!x = tensor<?x?xf16, #sym.shape<[n, d]>>
!w = tensor<?x?xf16, #sym.shape<[d, d]>>
!s = tensor<?x1xf16, #sym.shape<[n, 1]>>

// CHECK: func.func @f(%x: {{.*}} -> tensor<?x?xf16, #sym.shape<[n, d]>> {
// CHECK: func.func @f__g0({{.*}}{kernel.candidate_of = @f, kernel.verdict = #kernel.verdict<equal, "{{[0-9a-f]+}}">
// CHECK-NOT: kernel.verdict<{{not_proven|unknown}}
// LIMIT: kernel.verdict<unknown, "{{[0-9a-f]+}}">, kernel.reason = "the limit of 20 nodes was reached"
// LIMIT-NOT: kernel.verdict<not_proven
// SYMBOLIC: func.func @f__s0({{.*}} kernel.verdict = #kernel.verdict<unknown,
// SYMBOLIC-NOT: kernel.verdict<equal
func.func @f(%x: !x, %s: !s, %w: !w) -> !x {
  %q = kernel.div %x, %s : (!x, !s) -> !x
  %o = kernel.matmul %q, %w : (!x, !w) -> !x
  func.return %o : !x
}

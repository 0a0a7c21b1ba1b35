;; NumPy's products of matrices (`a @ b`, matmul) in WebAssembly, for JupyterLite: Pyodide's NumPy comes without BLAS.
;;
;; What stands below the line is there twice, for f32 and f64; NUMBER, LANES, SPLAT, SIZE and COUNT are filled in by
;; pack.mjs, which assembles it. Addresses and distances are in bytes: a and b point to a first number, a_n is how far
;; it is to the next along axis n, and so on.

(func $total_f32x4 (param $x v128) (result f32)
  (f32.add
    (f32.add (f32x4.extract_lane 0 (local.get $x)) (f32x4.extract_lane 1 (local.get $x)))
    (f32.add (f32x4.extract_lane 2 (local.get $x)) (f32x4.extract_lane 3 (local.get $x)))))

(func $total_f64x2 (param $x v128) (result f64)
  (f64.add (f64x2.extract_lane 0 (local.get $x)) (f64x2.extract_lane 1 (local.get $x))))

;; ---------------------------------------------------------------------------------------------------------------------

;; Σ_n a[n] b[n], wherever they lie.
(func $one_NUMBER (param $a i32) (param $a_n i32) (param $b i32) (param $b_n i32) (param $n i32) (result NUMBER)
  (local $sum NUMBER)
  (loop $next (if (local.get $n) (then
    (local.set $sum
      (NUMBER.add (local.get $sum) (NUMBER.mul (NUMBER.load (local.get $a)) (NUMBER.load (local.get $b)))))
    (local.set $a (i32.add (local.get $a) (local.get $a_n)))
    (local.set $b (i32.add (local.get $b) (local.get $b_n)))
    (local.set $n (i32.sub (local.get $n) (i32.const 1)))
    (br $next))))
  (local.get $sum))

;; The same where both lie in one piece: COUNT numbers of each at a time.
(func $along_NUMBER (param $a i32) (param $b i32) (param $n i32) (result NUMBER)
  (local $sum v128)
  (loop $next (if (i32.ge_u (local.get $n) (i32.const COUNT)) (then
    (local.set $sum (LANES.add (local.get $sum) (LANES.mul (v128.load (local.get $a)) (v128.load (local.get $b)))))
    (local.set $a (i32.add (local.get $a) (i32.const 16)))
    (local.set $b (i32.add (local.get $b) (i32.const 16)))
    (local.set $n (i32.sub (local.get $n) (i32.const COUNT)))
    (br $next))))
  (NUMBER.add (call $total_LANES (local.get $sum))
    (call $one_NUMBER (local.get $a) (i32.const SIZE) (local.get $b) (i32.const SIZE) (local.get $n))))

;; A whole row, out[p] = Σ_n a[n] b[n, p], where out lies in one piece, and each row of b: 64 bytes of them at a time,
;; then 16, then single numbers.
(func $across_NUMBER (param $a i32) (param $a_n i32) (param $b i32) (param $b_n i32) (param $n i32) (param $out i32)
    (param $p i32)
  (local $end i32) (local $x i32) (local $y i32) (local $k i32)
  (local $s v128) (local $0 v128) (local $1 v128) (local $2 v128) (local $3 v128)
  (local.set $end (i32.add (local.get $out) (i32.mul (local.get $p) (i32.const SIZE))))
  (loop $wide (if (i32.le_u (i32.add (local.get $out) (i32.const 64)) (local.get $end)) (then
    (local.set $0 (v128.const i64x2 0 0)) (local.set $1 (v128.const i64x2 0 0))
    (local.set $2 (v128.const i64x2 0 0)) (local.set $3 (v128.const i64x2 0 0))
    (local.set $x (local.get $a)) (local.set $y (local.get $b)) (local.set $k (local.get $n))
    (loop $next (if (local.get $k) (then
      (local.set $s (v128.SPLAT (local.get $x)))
      (local.set $0 (LANES.add (local.get $0) (LANES.mul (local.get $s) (v128.load (local.get $y)))))
      (local.set $1 (LANES.add (local.get $1) (LANES.mul (local.get $s) (v128.load offset=16 (local.get $y)))))
      (local.set $2 (LANES.add (local.get $2) (LANES.mul (local.get $s) (v128.load offset=32 (local.get $y)))))
      (local.set $3 (LANES.add (local.get $3) (LANES.mul (local.get $s) (v128.load offset=48 (local.get $y)))))
      (local.set $x (i32.add (local.get $x) (local.get $a_n)))
      (local.set $y (i32.add (local.get $y) (local.get $b_n)))
      (local.set $k (i32.sub (local.get $k) (i32.const 1)))
      (br $next))))
    (v128.store (local.get $out) (local.get $0)) (v128.store offset=16 (local.get $out) (local.get $1))
    (v128.store offset=32 (local.get $out) (local.get $2)) (v128.store offset=48 (local.get $out) (local.get $3))
    (local.set $b (i32.add (local.get $b) (i32.const 64)))
    (local.set $out (i32.add (local.get $out) (i32.const 64)))
    (br $wide))))
  (loop $narrow (if (i32.le_u (i32.add (local.get $out) (i32.const 16)) (local.get $end)) (then
    (local.set $0 (v128.const i64x2 0 0))
    (local.set $x (local.get $a)) (local.set $y (local.get $b)) (local.set $k (local.get $n))
    (loop $next (if (local.get $k) (then
      (local.set $s (v128.SPLAT (local.get $x)))
      (local.set $0 (LANES.add (local.get $0) (LANES.mul (local.get $s) (v128.load (local.get $y)))))
      (local.set $x (i32.add (local.get $x) (local.get $a_n)))
      (local.set $y (i32.add (local.get $y) (local.get $b_n)))
      (local.set $k (i32.sub (local.get $k) (i32.const 1)))
      (br $next))))
    (v128.store (local.get $out) (local.get $0))
    (local.set $b (i32.add (local.get $b) (i32.const 16)))
    (local.set $out (i32.add (local.get $out) (i32.const 16)))
    (br $narrow))))
  (loop $single (if (i32.lt_u (local.get $out) (local.get $end)) (then
    (NUMBER.store (local.get $out)
      (call $one_NUMBER (local.get $a) (local.get $a_n) (local.get $b) (local.get $b_n) (local.get $n)))
    (local.set $b (i32.add (local.get $b) (i32.const SIZE)))
    (local.set $out (i32.add (local.get $out) (i32.const SIZE)))
    (br $single)))))

;; What NumPy calls, a PyUFuncGenericFunction. args: where a, b and out are. dims: how many products, m, n, p.
;; steps: how far it is from one product's a, b and out to the next one's; then a_m, a_n, b_n, b_p, out_m, out_p.
(func (export "matmul_NUMBER") (param $args i32) (param $dims i32) (param $steps i32) (param $data i32)
  (local $A i32) (local $B i32) (local $OUT i32) (local $a i32) (local $b i32) (local $row i32) (local $out i32)
  (local $many i32) (local $m i32) (local $n i32) (local $p i32) (local $j i32)
  (local $a_n i32) (local $b_n i32) (local $b_p i32) (local $out_p i32) (local $along i32) (local $across i32)
  (local.set $A (i32.load (local.get $args)))
  (local.set $B (i32.load offset=4 (local.get $args)))
  (local.set $OUT (i32.load offset=8 (local.get $args)))
  (local.set $many (i32.load (local.get $dims)))
  (local.set $n (i32.load offset=8 (local.get $dims)))
  (local.set $p (i32.load offset=12 (local.get $dims)))
  (local.set $a_n (i32.load offset=16 (local.get $steps)))
  (local.set $b_n (i32.load offset=20 (local.get $steps)))
  (local.set $b_p (i32.load offset=24 (local.get $steps)))
  (local.set $out_p (i32.load offset=32 (local.get $steps)))
  (local.set $along (i32.and (i32.eq (local.get $a_n) (i32.const SIZE)) (i32.eq (local.get $b_n) (i32.const SIZE))))
  (local.set $across (i32.and (i32.eq (local.get $b_p) (i32.const SIZE)) (i32.eq (local.get $out_p) (i32.const SIZE))))
  (loop $products (if (local.get $many) (then
    (local.set $a (local.get $A)) (local.set $row (local.get $OUT)) (local.set $m (i32.load offset=4 (local.get $dims)))
    (loop $rows (if (local.get $m) (then
      (if (i32.gt_u (local.get $across) (local.get $along))
        (then (call $across_NUMBER (local.get $a) (local.get $a_n) (local.get $B) (local.get $b_n) (local.get $n)
          (local.get $row) (local.get $p)))
        (else
          (local.set $b (local.get $B)) (local.set $out (local.get $row)) (local.set $j (local.get $p))
          (loop $columns (if (local.get $j) (then
            (NUMBER.store (local.get $out) (if (result NUMBER) (local.get $along)
              (then (call $along_NUMBER (local.get $a) (local.get $b) (local.get $n)))
              (else (call $one_NUMBER (local.get $a) (local.get $a_n) (local.get $b) (local.get $b_n) (local.get $n)))))
            (local.set $b (i32.add (local.get $b) (local.get $b_p)))
            (local.set $out (i32.add (local.get $out) (local.get $out_p)))
            (local.set $j (i32.sub (local.get $j) (i32.const 1)))
            (br $columns))))))
      (local.set $a (i32.add (local.get $a) (i32.load offset=12 (local.get $steps))))
      (local.set $row (i32.add (local.get $row) (i32.load offset=28 (local.get $steps))))
      (local.set $m (i32.sub (local.get $m) (i32.const 1)))
      (br $rows))))
    (local.set $A (i32.add (local.get $A) (i32.load (local.get $steps))))
    (local.set $B (i32.add (local.get $B) (i32.load offset=4 (local.get $steps))))
    (local.set $OUT (i32.add (local.get $OUT) (i32.load offset=8 (local.get $steps))))
    (local.set $many (i32.sub (local.get $many) (i32.const 1)))
    (br $products)))))

;; What language runtimes want of WASI, answered inside of the component: time stands at the beginning of 1970 and moves
;; only by what is waited for, random numbers are the same in each call, there are no arguments, environment, files or network. What is written to standard output and error
;; becomes lines of the log, so that the last words of a runtime that gives up are seen.
(module
  (import "kerf:policy/log@0.1.0" "emit" (func $emit (param i32 i32 i32 i32 i32)))
  (import "env" "memory" (memory 0))
  (global $random (mut i64) (i64.const 0x9e3779b97f4a7c15))
  ;; In nanoseconds; Go's runtime takes 0 for a broken clock.
  (global $now (mut i64) (i64.const 1))

  (func (export "sched_yield") (result i32) i32.const 0)
  (func (export "proc_exit") (param $code i32) unreachable)
  (func (export "args_get") (param i32 i32) (result i32) i32.const 0)
  (func (export "args_sizes_get") (param $count i32) (param $bytes i32) (result i32)
    (i32.store (local.get $count) (i32.const 0))
    (i32.store (local.get $bytes) (i32.const 0))
    i32.const 0)
  (func (export "environ_get") (param i32 i32) (result i32) i32.const 0)
  (func (export "environ_sizes_get") (param $count i32) (param $bytes i32) (result i32)
    (i32.store (local.get $count) (i32.const 0))
    (i32.store (local.get $bytes) (i32.const 0))
    i32.const 0)

  (func (export "clock_time_get") (param $clock i32) (param $precision i64) (param $time i32) (result i32)
    (i64.store (local.get $time) (global.get $now))
    i32.const 0)
  (func (export "clock_res_get") (param $clock i32) (param $resolution i32) (result i32)
    (i64.store (local.get $resolution) (i64.const 1000000))
    i32.const 0)
  ;; Every wait is over at once, and waiting for the clock (tag 0) moves it: to a time (flag 1) or by one. A subscription
  ;; has 48 bytes, an event 32.
  (func (export "poll_oneoff") (param $in i32) (param $out i32) (param $count i32) (param $events i32) (result i32)
    (local $i i32)
    (i32.store (local.get $events) (local.get $count))
    (block $done
      (loop $next
        (br_if $done (i32.ge_u (local.get $i) (local.get $count)))
        (if (i32.eqz (i32.load8_u offset=8 (local.get $in)))
          (then
            (if (i32.and (i32.load16_u offset=40 (local.get $in)) (i32.const 1))
              (then
                (if (i64.gt_u (i64.load offset=24 (local.get $in)) (global.get $now))
                  (then (global.set $now (i64.load offset=24 (local.get $in))))))
              (else (global.set $now (i64.add (global.get $now) (i64.load offset=24 (local.get $in))))))))
        (i64.store (local.get $out) (i64.load (local.get $in)))
        (i64.store offset=8 (local.get $out) (i64.const 0))
        (i64.store offset=16 (local.get $out) (i64.const 0))
        (i64.store offset=24 (local.get $out) (i64.const 0))
        (i32.store8 offset=10 (local.get $out) (i32.load8_u offset=8 (local.get $in)))
        (local.set $in (i32.add (local.get $in) (i32.const 48)))
        (local.set $out (i32.add (local.get $out) (i32.const 32)))
        (local.set $i (i32.add (local.get $i) (i32.const 1)))
        (br $next)))
    i32.const 0)

  ;; xorshift64, byte by byte.
  (func (export "random_get") (param $at i32) (param $len i32) (result i32)
    (local $x i64)
    (local.set $x (global.get $random))
    (block $done
      (loop $next
        (br_if $done (i32.eqz (local.get $len)))
        (local.set $x (i64.xor (local.get $x) (i64.shl (local.get $x) (i64.const 13))))
        (local.set $x (i64.xor (local.get $x) (i64.shr_u (local.get $x) (i64.const 7))))
        (local.set $x (i64.xor (local.get $x) (i64.shl (local.get $x) (i64.const 17))))
        (i64.store8 (local.get $at) (local.get $x))
        (local.set $at (i32.add (local.get $at) (i32.const 1)))
        (local.set $len (i32.sub (local.get $len) (i32.const 1)))
        (br $next)))
    (global.set $random (local.get $x))
    i32.const 0)

  ;; Standard output is level info, standard error level error; other files are not there (8: bad file descriptor).
  (func (export "fd_write") (param $fd i32) (param $vectors i32) (param $count i32) (param $written i32) (result i32)
    (local $total i32) (local $len i32)
    (if (i32.gt_u (local.get $fd) (i32.const 2)) (then (return (i32.const 8))))
    (block $done
      (loop $next
        (br_if $done (i32.eqz (local.get $count)))
        (local.set $len (i32.load offset=4 (local.get $vectors)))
        (if (local.get $len)
          (then
            (call $emit
              (select (i32.const 4) (i32.const 2) (i32.eq (local.get $fd) (i32.const 2)))
              (i32.load (local.get $vectors)) (local.get $len)
              (i32.const 0) (i32.const 0))))
        (local.set $total (i32.add (local.get $total) (local.get $len)))
        (local.set $vectors (i32.add (local.get $vectors) (i32.const 8)))
        (local.set $count (i32.sub (local.get $count) (i32.const 1)))
        (br $next)))
    (i32.store (local.get $written) (local.get $total))
    i32.const 0)
  (func (export "fd_read") (param i32 i32 i32) (param $read i32) (result i32)
    (i32.store (local.get $read) (i32.const 0))
    i32.const 0)
  (func (export "fd_close") (param i32) (result i32) i32.const 8)
  (func (export "fd_seek") (param i32 i64 i32 i32) (result i32) i32.const 70)
  (func (export "fd_fdstat_get") (param $fd i32) (param $stat i32) (result i32)
    (if (i32.gt_u (local.get $fd) (i32.const 2)) (then (return (i32.const 8))))
    (i64.store (local.get $stat) (i64.const 2))
    (i64.store offset=8 (local.get $stat) (i64.const 0))
    (i64.store offset=16 (local.get $stat) (i64.const 0))
    i32.const 0)
  (func (export "fd_fdstat_set_flags") (param i32 i32) (result i32) i32.const 0)
  (func (export "fd_prestat_get") (param i32 i32) (result i32) i32.const 8)
  (func (export "fd_prestat_dir_name") (param i32 i32 i32) (result i32) i32.const 8)
)

;; A policy for InstanceSelection with holes: {describe}, {validate} and {select} are the bodies of its functions, {imports} and
;; {data} are more of each. Addresses below 1024 belong to what is here: 16 is the metadata, 128 an empty selection, 160 an
;; accepted configuration. From 1024 to 4096 is free, the heap comes after.
(module
    {imports}
    (import "kerf:policy/log@0.1.0" "emit" (func $emit (param i32 i32 i32 i32 i32)))
    (memory (export "memory") 1)
    (global $heap (mut i32) (i32.const 4096))
    (data (i32.const 512) "hand-written")
    (data (i32.const 16) "\00\02\00\00\0c\00\00\00" "\00\02\00\00\04\00\00\00")
    {data}
    (func (export "cabi_realloc") (param i32 i32 i32 i32) (result i32) (local $at i32)
        (local.set $at (i32.and (i32.add (global.get $heap) (i32.const 7)) (i32.const -8)))
        (global.set $heap (i32.add (local.get $at) (local.get 3)))
        (block $fits
            (br_if $fits (i32.le_u (global.get $heap) (i32.mul (memory.size) (i32.const 65536))))
            (br_if $fits (i32.ne (i32.const -1)
                (memory.grow (i32.add (i32.const 1) (i32.shr_u (local.get 3) (i32.const 16))))))
            unreachable)
        (local.get $at))
    (func $describe (export "kerf:policy/lifecycle@0.1.0#describe") (result i32) {describe})
    (func (export "kerf:policy/lifecycle@0.1.0#validate-config") (param i32 i32) (result i32) {validate})
    (func $select (export "kerf:policy/instance-selection@0.1.0#select") (param i32) (result i32) {select})
)

module family-discount

go 1.25

require kerf/policy v0.0.0

require go.bytecodealliance.org/pkg v0.2.1 // indirect

replace kerf/policy => ../../../sdk/go

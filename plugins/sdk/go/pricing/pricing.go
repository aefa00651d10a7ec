// Package pricing makes a component of a PricingPreference policy in Go.
package pricing

import (
	"kerf/policy"
	lifecycle "kerf/policy/pricing/export_kerf_policy_lifecycle"
	hook "kerf/policy/pricing/export_kerf_policy_pricing_preference"
	log "kerf/policy/pricing/kerf_policy_log"
	contract "kerf/policy/pricing/kerf_policy_pricing_preference"
	"kerf/policy/pricing/kerf_policy_types"
	// The functions that the component exports.
	_ "kerf/policy/pricing/wit_exports"

	witTypes "go.bytecodealliance.org/pkg/wit/types"
)

// The types of the contract.
type (
	Context    = kerf_policy_types.PricingContext
	Candidate  = kerf_policy_types.Candidate
	Offering   = kerf_policy_types.Offering
	Adjustment = contract.Adjustment
)

// Policy is what a policy implements; Check may be nil.
type Policy[C any] struct {
	About policy.About
	// Check says what is wrong with a configuration although it parses. Called at load.
	Check func(config C) []policy.ConfigError
	// Adjust gives new prices for some offerings of a whole catalog; the others keep theirs.
	Adjust func(config C, ctx *Context, candidates []Candidate) ([]Adjustment, error)
}

// Export makes the policy the component's. Call it in a function init.
func Export[C any](it Policy[C]) {
	lifecycle.About = it.About
	lifecycle.Check = func(config string) ([]policy.ConfigError, error) {
		parsed, err := policy.Parse[C](config)
		if err != nil || it.Check == nil {
			return nil, err
		}
		return it.Check(parsed), nil
	}
	hook.Answer = func(config string, ctx Context, candidates []Candidate) ([]Adjustment, error) {
		parsed, err := policy.Parse[C](config)
		if err != nil {
			return nil, err
		}
		return it.Adjust(parsed, &ctx, candidates)
	}
}

// Log writes into the controller's log, with the policy's name; pairs are keys and values.
func Log(message string, pairs ...string) {
	fields := make([]witTypes.Tuple2[string, string], 0, len(pairs)/2)
	for i := 0; i+1 < len(pairs); i += 2 {
		fields = append(fields, witTypes.Tuple2[string, string]{F0: pairs[i], F1: pairs[i+1]})
	}
	log.Emit(log.LevelInfo, message, fields)
}

// Adjust gives one offering another price, with a reason for users.
func Adjust(candidate, offering int, priceMicros uint32, reason string) Adjustment {
	return Adjustment{
		Candidate:   uint32(candidate),
		Offering:    uint32(offering),
		PriceMicros: priceMicros,
		Reason:      witTypes.Some(reason),
	}
}

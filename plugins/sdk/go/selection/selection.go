// Package selection makes a component of an InstanceSelection policy in Go.
package selection

import (
	"kerf/policy"
	hook "kerf/policy/selection/export_kerf_policy_instance_selection"
	lifecycle "kerf/policy/selection/export_kerf_policy_lifecycle"
	contract "kerf/policy/selection/kerf_policy_instance_selection"
	log "kerf/policy/selection/kerf_policy_log"
	"kerf/policy/selection/kerf_policy_types"
	// The functions that the component exports.
	_ "kerf/policy/selection/wit_exports"

	witTypes "go.bytecodealliance.org/pkg/wit/types"
)

// The types of the contract.
type (
	Context   = kerf_policy_types.Context
	Candidate = kerf_policy_types.Candidate
	Offering  = kerf_policy_types.Offering
	Selection = contract.Selection
	Ranked    = contract.Ranked
	Excluded  = contract.Excluded
)

// Policy is what a policy implements; Check may be nil.
type Policy[C any] struct {
	About policy.About
	// Check says what is wrong with a configuration although it parses. Called at load.
	Check func(config C) []policy.ConfigError
	// Select decides. The candidates all fit the pods; the first is what would be launched without a policy.
	Select func(config C, ctx *Context, candidates []Candidate) (Selection, error)
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
	hook.Answer = func(config string, ctx Context, candidates []Candidate) (Selection, error) {
		parsed, err := policy.Parse[C](config)
		if err != nil {
			return Selection{}, err
		}
		return it.Select(parsed, &ctx, candidates)
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

// Exclude takes a candidate with all of its offerings out.
func Exclude(candidate int, reason string) Excluded {
	return Excluded{Candidate: uint32(candidate), Offering: witTypes.None[uint32](), Reason: reason}
}

// ExcludeOffering takes one offering of a candidate out.
func ExcludeOffering(candidate, offering int, reason string) Excluded {
	return Excluded{Candidate: uint32(candidate), Offering: witTypes.Some(uint32(offering)), Reason: reason}
}

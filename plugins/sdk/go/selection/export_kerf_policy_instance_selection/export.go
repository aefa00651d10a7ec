// Package export_kerf_policy_instance_selection is where the generated exports find the policy.
package export_kerf_policy_instance_selection

import (
	"errors"

	"kerf/policy"
	instance "kerf/policy/selection/kerf_policy_instance_selection"
	. "kerf/policy/selection/kerf_policy_types"

	witTypes "go.bytecodealliance.org/pkg/wit/types"
)

// Answer is the policy's; Export sets it.
var Answer func(config string, ctx Context, candidates []Candidate) (instance.Selection, error)

// Select asks the policy. Whatever goes wrong becomes an error of the contract.
func Select(config string, ctx Context, candidates []Candidate) witTypes.Result[instance.Selection, PolicyError] {
	var answer instance.Selection
	err := policy.Guard(func() (err error) {
		answer, err = Answer(config, ctx, candidates)
		return err
	})
	var invalid policy.InvalidConfig
	var unsupported policy.Unsupported
	switch {
	case err == nil:
		return witTypes.Ok[instance.Selection, PolicyError](answer)
	case errors.As(err, &invalid):
		return witTypes.Err[instance.Selection](MakePolicyErrorInvalidConfig(err.Error()))
	case errors.As(err, &unsupported):
		return witTypes.Err[instance.Selection](MakePolicyErrorUnsupported(err.Error()))
	default:
		return witTypes.Err[instance.Selection](MakePolicyErrorInternal(err.Error()))
	}
}

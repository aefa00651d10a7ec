// Package export_kerf_policy_bootstrap_userdata is where the generated exports find the policy.
package export_kerf_policy_bootstrap_userdata

import (
	"errors"

	"kerf/policy"
	userdata "kerf/policy/bootstrap/kerf_policy_bootstrap_userdata"
	. "kerf/policy/bootstrap/kerf_policy_types"

	witTypes "go.bytecodealliance.org/pkg/wit/types"
)

// Answer is the policy's; Export sets it.
var Answer func(config string, node userdata.Node, parts []userdata.Part) ([]userdata.Part, error)

// Render asks the policy. Whatever goes wrong becomes an error of the contract.
func Render(config string, node userdata.Node, parts []userdata.Part) witTypes.Result[[]userdata.Part, PolicyError] {
	var answer []userdata.Part
	err := policy.Guard(func() (err error) {
		answer, err = Answer(config, node, parts)
		return err
	})
	var invalid policy.InvalidConfig
	var unsupported policy.Unsupported
	switch {
	case err == nil:
		return witTypes.Ok[[]userdata.Part, PolicyError](answer)
	case errors.As(err, &invalid):
		return witTypes.Err[[]userdata.Part](MakePolicyErrorInvalidConfig(err.Error()))
	case errors.As(err, &unsupported):
		return witTypes.Err[[]userdata.Part](MakePolicyErrorUnsupported(err.Error()))
	default:
		return witTypes.Err[[]userdata.Part](MakePolicyErrorInternal(err.Error()))
	}
}

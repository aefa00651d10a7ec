// Package export_kerf_policy_pricing_preference is where the generated exports find the policy.
package export_kerf_policy_pricing_preference

import (
	"errors"

	"kerf/policy"
	preference "kerf/policy/pricing/kerf_policy_pricing_preference"
	. "kerf/policy/pricing/kerf_policy_types"

	witTypes "go.bytecodealliance.org/pkg/wit/types"
)

// Answer is the policy's; Export sets it.
var Answer func(config string, ctx PricingContext, candidates []Candidate) ([]preference.Adjustment, error)

// Adjust asks the policy. Whatever goes wrong becomes an error of the contract.
func Adjust(config string, ctx PricingContext, candidates []Candidate) witTypes.Result[[]preference.Adjustment, PolicyError] {
	var answer []preference.Adjustment
	err := policy.Guard(func() (err error) {
		answer, err = Answer(config, ctx, candidates)
		return err
	})
	var invalid policy.InvalidConfig
	var unsupported policy.Unsupported
	switch {
	case err == nil:
		return witTypes.Ok[[]preference.Adjustment, PolicyError](answer)
	case errors.As(err, &invalid):
		return witTypes.Err[[]preference.Adjustment](MakePolicyErrorInvalidConfig(err.Error()))
	case errors.As(err, &unsupported):
		return witTypes.Err[[]preference.Adjustment](MakePolicyErrorUnsupported(err.Error()))
	default:
		return witTypes.Err[[]preference.Adjustment](MakePolicyErrorInternal(err.Error()))
	}
}

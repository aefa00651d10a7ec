// Package export_kerf_policy_lifecycle is where the generated exports find the policy.
package export_kerf_policy_lifecycle

import (
	"kerf/policy"
	. "kerf/policy/bootstrap/kerf_policy_lifecycle"

	witTypes "go.bytecodealliance.org/pkg/wit/types"
)

// About and Check are the policy's; Export sets them.
var (
	About policy.About
	Check func(config string) ([]policy.ConfigError, error)
)

// Describe says what the policy is.
func Describe() Metadata {
	return Metadata{
		Name:          About.Name,
		Version:       About.Version,
		Summary:       About.Summary,
		ConfigSchema:  About.ConfigSchema,
		DefaultConfig: About.DefaultConfig,
		TimeStepS:     About.TimeStepS,
	}
}

// ValidateConfig asks the policy what is wrong with a configuration.
func ValidateConfig(config string) witTypes.Result[witTypes.Unit, []ConfigError] {
	var found []policy.ConfigError
	err := policy.Guard(func() (err error) {
		found, err = Check(config)
		return err
	})
	if err != nil {
		found = []policy.ConfigError{{Message: err.Error()}}
	}
	if len(found) == 0 {
		return witTypes.Ok[witTypes.Unit, []ConfigError](witTypes.Unit{})
	}
	wrong := make([]ConfigError, len(found))
	for i, it := range found {
		wrong[i] = ConfigError{Path: it.Path, Message: it.Message}
	}
	return witTypes.Err[witTypes.Unit](wrong)
}

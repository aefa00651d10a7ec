// Package bootstrap makes a component of a BootstrapUserData policy in Go.
package bootstrap

import (
	"kerf/policy"
	hook "kerf/policy/bootstrap/export_kerf_policy_bootstrap_userdata"
	lifecycle "kerf/policy/bootstrap/export_kerf_policy_lifecycle"
	contract "kerf/policy/bootstrap/kerf_policy_bootstrap_userdata"
	log "kerf/policy/bootstrap/kerf_policy_log"
	// The functions that the component exports.
	_ "kerf/policy/bootstrap/wit_exports"

	witTypes "go.bytecodealliance.org/pkg/wit/types"
)

// The types of the contract.
type (
	Node = contract.Node
	Part = contract.Part
)

// Policy is what a policy implements; Check may be nil.
type Policy[C any] struct {
	About policy.About
	// Check says what is wrong with a configuration although it parses. Called at load.
	Check func(config C) []policy.ConfigError
	// Render gives the parts of the user data, from those so far. Those that join the node must stay as they are.
	Render func(config C, node *Node, parts []Part) ([]Part, error)
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
	hook.Answer = func(config string, node Node, parts []Part) ([]Part, error) {
		parsed, err := policy.Parse[C](config)
		if err != nil {
			return nil, err
		}
		return it.Render(parsed, &node, parts)
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

// Script is a part that root runs when the machine boots.
func Script(body string) Part {
	return Part{ContentType: "text/x-shellscript", Name: witTypes.None[string](), Body: body}
}

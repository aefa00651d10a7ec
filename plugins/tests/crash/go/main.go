// Fails in the way that its configuration names, so that tests see what becomes of panics.
package main

import (
	"kerf/policy"
	"kerf/policy/selection"
)

type config struct {
	How string `json:"how"`
}

func init() {
	selection.Export(selection.Policy[config]{
		About: policy.About{Name: "crash", Version: "0.1.0"},
		Select: func(it config, _ *selection.Context, candidates []selection.Candidate) (selection.Selection, error) {
			if it.How == "" || len(candidates) == 0 {
				return selection.Selection{}, nil
			}
			selection.Log("about to fail", "how", it.How)
			switch it.How {
			case "config":
				return selection.Selection{}, policy.InvalidConfig("deliberate")
			case "unsupported":
				return selection.Selection{}, policy.Unsupported("deliberate")
			default:
				panic("deliberate")
			}
		},
	})
}

func main() {}

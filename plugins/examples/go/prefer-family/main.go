// Launches the families that you like first, and never those that you dislike. Within a family the cheapest stays first.
package main

import (
	_ "embed"
	"fmt"
	"slices"
	"strings"

	"kerf/policy"
	"kerf/policy/selection"
)

//go:embed config-schema.json
var schema string

type config struct {
	Weights map[string]int32 `json:"weights"`
	Exclude []string         `json:"exclude"`
}

func init() {
	selection.Export(selection.Policy[config]{
		About: policy.About{
			Name:          "prefer-family",
			Version:       "0.1.0",
			Summary:       "ranks instance families by weight and excludes some",
			ConfigSchema:  schema,
			DefaultConfig: `{"weights":{},"exclude":[]}`,
		},
		Check:  check,
		Select: decide,
	})
}

func check(it config) (errors []policy.ConfigError) {
	families := slices.Clone(it.Exclude)
	for family := range it.Weights {
		families = append(families, family)
		if slices.Contains(it.Exclude, family) {
			errors = append(errors, policy.ConfigError{
				Path:    "/weights/" + family,
				Message: "is excluded too; remove it from one of the two",
			})
		}
	}
	slices.Sort(families)
	for _, family := range families {
		if !strings.HasPrefix(family, "ecs.") {
			message := fmt.Sprintf("%q is not a family; write it as ecs.%s", family, family)
			errors = append(errors, policy.ConfigError{Message: message})
		}
	}
	return errors
}

func decide(it config, ctx *selection.Context, candidates []selection.Candidate) (selection.Selection, error) {
	var found selection.Selection
	for i := range candidates {
		family := policy.Word(ctx.Vocabulary.Families, candidates[i].Family)
		if slices.Contains(it.Exclude, family) {
			found.Excluded = append(found.Excluded, selection.Exclude(i, "family "+family+" is excluded"))
		} else if score, ok := it.Weights[family]; ok {
			found.Ranked = append(found.Ranked, selection.Ranked{Candidate: uint32(i), Score: score})
		}
	}
	return found, nil
}

func main() {}

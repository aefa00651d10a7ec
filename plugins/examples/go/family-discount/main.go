// Orders by the price that you really pay: takes a discount per family off, or adds a cost that the bill does not show.
package main

import (
	_ "embed"
	"fmt"

	"kerf/policy"
	"kerf/policy/pricing"
)

//go:embed config-schema.json
var schema string

type config struct {
	PercentOff map[string]int64 `json:"percentOff"`
}

func init() {
	pricing.Export(pricing.Policy[config]{
		About: policy.About{
			Name:          "family-discount",
			Version:       "0.1.0",
			Summary:       "takes a discount per instance family off the price that ordering uses",
			ConfigSchema:  schema,
			DefaultConfig: `{"percentOff":{}}`,
		},
		Adjust: adjust,
	})
}

func adjust(it config, ctx *pricing.Context, candidates []pricing.Candidate) ([]pricing.Adjustment, error) {
	var adjustments []pricing.Adjustment
	for i := range candidates {
		family := policy.Word(ctx.Vocabulary.Families, candidates[i].Family)
		percent, ok := it.PercentOff[family]
		if !ok {
			continue
		}
		reason := fmt.Sprintf("%d %% off %s", percent, family)
		for j, sold := range candidates[i].Offerings {
			if sold.PriceMicros == policy.UnknownPrice {
				continue
			}
			price := int64(sold.PriceMicros) * (100 - percent) / 100
			price = min(max(price, 0), int64(policy.UnknownPrice)-1)
			adjustments = append(adjustments, pricing.Adjust(i, j, uint32(price), reason))
		}
	}
	return adjustments, nil
}

func main() {}

package recall

import (
	"cmp"
	"slices"
)

// Part is what one feature adds to the score of a document.
type Part struct {
	Feature string `json:"feature"`
	// Value is the feature, and Weight what one of it adds to the logarithm of the odds; Adds is their product.
	Value  float64 `json:"value"`
	Weight float64 `json:"weight"`
	Adds   float64 `json:"adds"`
}

// Explain returns what the score of a document is made of, what counts most first. The constant is the part of the feature
// "constant".
func (c *Corpus) Explain(query string, document int) []Part {
	table := &weights[0]
	if c.named {
		table = &weights[1]
	}
	number := func(value int64) float64 { return float64(value) / float64(one) }
	parts := []Part{{Feature: "constant", Value: 1, Weight: number(table[0]), Adds: number(table[0])}}
	if near := c.documents[document].Near; near != 0 {
		parts = append(parts, Part{Near, number(near), number(nearWeight), number(mul(nearWeight, near))})
	}
	c.Features(query, func(i int, row *Row) {
		if i != document {
			return
		}
		for k, value := range row {
			if adds := table[k+1] * value >> 16; adds != 0 {
				parts = append(parts, Part{Names[k], number(value), number(table[k+1]), number(adds)})
			}
		}
	})
	slices.SortStableFunc(parts, func(a, b Part) int { return cmp.Compare(max(b.Adds, -b.Adds), max(a.Adds, -a.Adds)) })
	return parts
}

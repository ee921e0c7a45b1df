package config

import (
	"testing"

	"github.com/continuo-log/continuo/internal/nearest"
)

// Any single slip in a key is answered with that key: a letter left out, put in, replaced, or swapped
// with its neighbour.
func TestOneTypoIsCorrected(t *testing.T) {
	var keys []string
	for _, row := range newLoader(nil).table {
		keys = append(keys, row.key)
	}
	for _, key := range keys {
		for at := range key {
			slips := []string{key[:at] + key[at+1:], key[:at] + "q" + key[at:], key[:at] + "q" + key[at+1:]}
			if at > 0 {
				slips = append(slips, key[:at-1]+key[at:at+1]+key[at-1:at]+key[at+1:])
			}
			for _, slip := range slips {
				if got := nearest.Name(slip, keys); got != key {
					t.Errorf("%s was answered with %q, want %s", slip, got, key)
				}
			}
		}
	}
}

// Package rapidseed makes tests of properties try the same values in every run. A test imports it beside rapid, which else
// draws from a new seed each time: a value that nobody tried before would fail a change that has nothing to do with it.
// CONTINUO_SEED is another seed, and make long tries new ones. The flag -rapid.seed comes before both. Go takes what is read
// here for no input of the test: give -count=1 with another seed.
package rapidseed

import (
	"cmp"
	"flag"
	"os"

	_ "pgregory.net/rapid" // makes the flag
)

func init() {
	if err := flag.Set("rapid.seed", cmp.Or(os.Getenv("CONTINUO_SEED"), "1")); err != nil {
		panic("CONTINUO_SEED: " + err.Error())
	}
}

package token

import "testing"

// Run these with -fuzzminimizetime 10x: what is in the piece cache decides which lines run, so the fuzzer's
// attempts to shorten an interesting input mostly fail and would take a minute each.

func FuzzO200kAgainstOracle(f *testing.F)  { fuzzAgainstOracle(f, O200k()) }
func FuzzCL100kAgainstOracle(f *testing.F) { fuzzAgainstOracle(f, CL100k()) }

func fuzzAgainstOracle(f *testing.F, enc *Encoding) {
	for _, text := range awkward {
		if len(text) < 100 {
			f.Add(text)
		}
	}
	f.Fuzz(func(t *testing.T, text string) {
		if oracleKnows(text) {
			checkOracle(t, enc, text)
		}
	})
}

// FuzzCountNeverPanics gives both encodings any bytes; besides not panicking, counting agrees with encoding and
// decoding gives the bytes back.
func FuzzCountNeverPanics(f *testing.F) {
	for _, text := range append(append([]string{}, awkward...), broken...) {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		checkLaws(t, O200k(), string(text))
		checkLaws(t, CL100k(), string(text))
	})
}

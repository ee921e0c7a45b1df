// Package vector compares entries by embeddings, which a model makes of their texts. Runner makes the vectors of entries in
// the background, after they have been indexed; Finder finds the entries whose vectors are nearest to that of a query, which
// is the only one that is made while somebody waits.
//
// A vector is stored as one signed byte for each dimension. All comparisons are in integers or in single operations on
// floating-point numbers, so that every machine finds the same. How near an entry is counts in standard deviations above
// the mean of all that was compared, since models differ in what their similarities mean; below nearFrom it counts nothing,
// so that vectors which say nothing about a query move few entries.
package vector

import (
	"context"
	"errors"
	"math"
	"math/bits"
)

// ErrRefused is wrapped by the errors of an embedder for texts that it does not take: asked again it refuses them again.
var ErrRefused = errors.New("the texts are refused")

// ErrLater is wrapped by the errors of an embedder for texts whose owner may make no requests now, as when a budget is used up: those of
// others are not refused.
var ErrLater = errors.New("the texts are refused for now")

// Embedder makes embeddings of texts. It must be safe for concurrent use.
type Embedder interface {
	// Embed returns a vector for each text, all of one length, and how many tokens its server has counted; 0 where it does not say.
	Embed(ctx context.Context, texts []string) (vectors [][]float32, tokens int, err error)
	// Name identifies what made a vector: those of different names are not compared.
	Name() string
	// Model names the model and its provider as prices and usage do.
	Model() (provider, model string)
}

// quantize returns a vector with one signed byte for each dimension; nil for one without a direction.
func quantize(values []float32) []byte {
	var most float64
	for _, v := range values {
		if a := math.Abs(float64(v)); a > most {
			most = a
		}
	}
	if most == 0 || math.IsNaN(most) || math.IsInf(most, 0) {
		return nil
	}
	bytes := make([]byte, len(values))
	for i, v := range values {
		if math.IsNaN(float64(v)) {
			return nil
		}
		bytes[i] = byte(int8(math.RoundToEven(float64(v) / most * 127)))
	}
	return bytes
}

// one is the unit of similarities and of nearness.
const one = 1 << 16

// similarity is the cosine of the angle between two vectors, in units of 1/65536; 0 for vectors of different lengths.
func similarity(a, b []byte, normOfA int64) int64 {
	if len(a) != len(b) {
		return 0
	}
	var dot, norm int64
	for i := range a {
		x, y := int64(int8(a[i])), int64(int8(b[i]))
		dot += x * y
		norm += y * y
	}
	if norm == 0 || normOfA == 0 {
		return 0
	}
	return int64(float64(dot) / math.Sqrt(float64(normOfA*norm)) * one)
}

func normOf(a []byte) (norm int64) {
	for _, v := range a {
		norm += int64(int8(v)) * int64(int8(v))
	}
	return norm
}

// root is the square root of a whole number.
func root(n uint64) int64 {
	if n == 0 {
		return 0
	}
	guess := uint64(1) << ((bits.Len64(n) + 1) / 2)
	for {
		next := (guess + n/guess) / 2
		if next >= guess {
			return int64(guess)
		}
		guess = next
	}
}

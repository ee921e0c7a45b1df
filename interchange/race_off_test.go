//go:build !race

package interchange

import "math"

// dataBytes is how much of each shared file is read: all of it.
const dataBytes = math.MaxInt

package recall

import "math/bits"

// fixed is a number in units of 1/65536. All arithmetic of a score is in integers, so that every machine computes the
// same score: the compiler may fuse a multiplication and an addition of floating-point numbers on some processors.
type fixed = int64

const one fixed = 1 << 16

func mul(a, b fixed) fixed { return a * b >> 16 }

// div returns a/b; 0 where b is 0.
func div(a, b fixed) fixed {
	if b == 0 {
		return 0
	}
	return a << 16 / b
}

const ln2 fixed = 45426

// ln returns the natural logarithm of a positive number.
func ln(x fixed) fixed {
	if x <= 0 {
		return -16 * one
	}
	shift := 63 - bits.LeadingZeros64(uint64(x))
	whole := fixed(shift-16) << 16
	m := uint64(x) << (31 - min(shift, 31)) >> max(0, shift-31) // 1 to 2, in units of 2^-31
	var fraction fixed
	for bit := one >> 1; bit > 0; bit >>= 1 {
		m = m * m >> 31
		if m >= 1<<32 {
			m >>= 1
			fraction |= bit
		}
	}
	return mul(whole+fraction, ln2)
}

// sqrt returns the square root of a number that is not negative.
func sqrt(x fixed) fixed {
	if x <= 0 {
		return 0
	}
	n := uint64(x) << 16
	root := uint64(1) << ((bits.Len64(n) + 1) / 2)
	for {
		next := (root + n/root) / 2
		if next >= root {
			return fixed(root)
		}
		root = next
	}
}

// powers has e^(-2^k) for k from 3 down to -12, in units of 2^-30.
var powers = [...]uint64{
	360200, 19666268, 145315154, 395007542, 651257337, 836230973, 947573834, 1008687096, 1040706261, 1057095000, 1065385899,
	1069555701, 1071646719, 1072693760, 1073217664, 1073479712,
}

// exp returns e^-x of a number that is not negative, in units of 2^-30.
func exp(x fixed) uint64 {
	if x >= 16*one {
		return 0
	}
	result := uint64(1 << 30)
	for i, power := range powers {
		if x>>(19-i)&1 == 1 {
			result = result * power >> 30
		}
	}
	rest := uint64(x) & 15 // so small that e^-x is 1-x
	return result - result*rest>>16
}

// probability returns 1/(1+e^-x), in units of 2^-30.
func probability(x fixed) uint64 {
	if x < 0 {
		e := exp(-x)
		return e << 30 / (1<<30 + e)
	}
	return 1 << 60 / (1<<30 + exp(x))
}

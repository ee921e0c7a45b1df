//go:build race

package mcptool

// largeResult is small with the race detector, which makes reading JSON many times slower.
const largeResult = 4 << 20

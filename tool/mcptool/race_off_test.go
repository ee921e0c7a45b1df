//go:build !race

package mcptool

// largeResult is the size of a text that is larger than any that the log keeps.
const largeResult = 64 << 20

//go:build race

package interchange

// dataBytes is how much of each shared file is read: the race detector makes JSON many times slower.
const dataBytes = 30 << 10

//go:build unix && !linux

package child

// onAnotherThread is for Linux only: elsewhere threads do not matter.
func onAnotherThread(func(thread int)) {}

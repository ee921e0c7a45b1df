package storetest

import (
	"testing"

	continuo "github.com/continuo-log/continuo"
)

func TestMemoryPassesTheSuite(t *testing.T) {
	Run(t, func(*testing.T) Opener {
		data := newMemoryData()
		return func(*testing.T) continuo.Store { return &memory{memoryData: data} }
	})
}

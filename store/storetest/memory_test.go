package storetest

import (
	"testing"

	"github.com/continuo-log/continuo/upkeep"
)

func TestMemoryPassesTheSuite(t *testing.T) {
	Run(t, func(*testing.T) Opener {
		data := newMemoryData()
		return func(*testing.T) upkeep.Store { return &memory{memoryData: data} }
	})
}

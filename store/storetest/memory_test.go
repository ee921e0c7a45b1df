package storetest

import (
	"testing"

	"github.com/continuo-log/continuo/maintenance"
)

func TestMemoryPassesTheSuite(t *testing.T) {
	Run(t, func(*testing.T) Opener {
		data := newMemoryData()
		return func(*testing.T) maintenance.Store { return &memory{memoryData: data} }
	})
}

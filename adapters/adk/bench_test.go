package adk

import (
	"testing"

	"google.golang.org/adk/v2/session"

	"github.com/continuo-log/continuo/adapters/adk/internal/sessionbench"
)

// ADK's SQL store is measured in internal/ownstore: its driver and ours have the same name.
func stores(b *testing.B) map[string]session.Service {
	b.Helper()
	return map[string]session.Service{"continuo": New(openLog(b), Options{}), "adk-memory": session.InMemoryService()}
}

func BenchmarkAppend(b *testing.B) {
	for name, service := range stores(b) {
		b.Run(name, func(b *testing.B) { sessionbench.Append(b, service) })
	}
}

func BenchmarkGet(b *testing.B) {
	for name, service := range stores(b) {
		b.Run(name, func(b *testing.B) { sessionbench.Get(b, service) })
	}
}

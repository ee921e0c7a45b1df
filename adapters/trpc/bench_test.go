package trpc

import (
	"testing"

	"trpc.group/trpc-go/trpc-agent-go/session"
	"trpc.group/trpc-go/trpc-agent-go/session/inmemory"

	"github.com/continuo-log/continuo/adapters/trpc/internal/sessionbench"
)

// tRPC-Agent-Go has its SQL stores in modules of their own; only its store in memory is measured.
var stores = map[string]func(b *testing.B) session.Service{
	"continuo":    func(b *testing.B) session.Service { return New(openLog(b), Options{}) },
	"trpc-memory": func(*testing.B) session.Service { return inmemory.NewSessionService() },
}

func BenchmarkAppend(b *testing.B) {
	for name, open := range stores {
		b.Run(name, func(b *testing.B) { sessionbench.Append(b, open(b)) })
	}
}

func BenchmarkGet(b *testing.B) {
	for name, open := range stores {
		b.Run(name, func(b *testing.B) { sessionbench.Get(b, open(b)) })
	}
}

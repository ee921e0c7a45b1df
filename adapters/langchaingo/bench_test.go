package langchaingo

import (
	"testing"

	"github.com/tmc/langchaingo/memory"
	"github.com/tmc/langchaingo/schema"

	"github.com/continuo-log/continuo/adapters/langchaingo/internal/historybench"
)

// langchaingo's SQLite history, which needs a C compiler, is measured in internal/ownstore.
func histories(b *testing.B) map[string]schema.ChatMessageHistory {
	b.Helper()
	return map[string]schema.ChatMessageHistory{"continuo": New(openLog(b), "bench", Options{}), "langchaingo-memory": memory.NewChatMessageHistory()}
}

func BenchmarkAdd(b *testing.B) {
	for name, h := range histories(b) {
		b.Run(name, func(b *testing.B) { historybench.Add(b, h) })
	}
}

func BenchmarkMessages(b *testing.B) {
	for name, h := range histories(b) {
		b.Run(name, func(b *testing.B) { historybench.Messages(b, h) })
	}
}

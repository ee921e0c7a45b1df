package eino

import (
	"context"
	"path/filepath"
	"testing"

	"github.com/cloudwego/eino/schema"

	"github.com/continuo-log/continuo/adapters/eino/internal/historybench"
)

// session is one of Sessions.
type session struct {
	*Sessions[*schema.Message]
}

func (s session) Append(ctx context.Context, message *schema.Message) error {
	return s.Sessions.Append(ctx, "bench", message)
}

func (s session) Read(ctx context.Context) ([]*schema.Message, error) {
	return s.Sessions.Read(ctx, "bench")
}

var histories = map[string]func(b *testing.B) historybench.History{
	"continuo": func(b *testing.B) historybench.History {
		return session{NewSessions[*schema.Message](openLog(b), Options{})}
	},
	"example-memory": func(*testing.B) historybench.History { return &historybench.Gob{} },
	"example-jsonl": func(b *testing.B) historybench.History {
		return historybench.Lines{Path: filepath.Join(b.TempDir(), "s.jsonl")}
	},
	"example-jsonl-durable": func(b *testing.B) historybench.History {
		return historybench.Lines{Path: filepath.Join(b.TempDir(), "s.jsonl"), Durable: true}
	},
}

func BenchmarkAppend(b *testing.B) {
	for name, open := range histories {
		b.Run(name, func(b *testing.B) { historybench.Append(b, open(b)) })
	}
}

func BenchmarkRead(b *testing.B) {
	for name, open := range histories {
		b.Run(name, func(b *testing.B) { historybench.Read(b, open(b)) })
	}
}

//go:build cgo

// Package ownstore measures langchaingo's own SQLite history, to compare.
package ownstore

import (
	"path/filepath"
	"testing"

	"github.com/tmc/langchaingo/memory/sqlite3"
	"github.com/tmc/langchaingo/schema"

	"github.com/continuo-log/continuo/adapters/langchaingo/internal/historybench"
)

func history(b *testing.B) schema.ChatMessageHistory {
	b.Helper()
	return sqlite3.NewSqliteChatMessageHistory(sqlite3.WithContext(b.Context()), sqlite3.WithSession("bench"),
		sqlite3.WithDBAddress(filepath.Join(b.TempDir(), "own.db")+"?_journal_mode=WAL&_synchronous=FULL"), sqlite3.WithLimit(1<<20))
}

func BenchmarkAdd(b *testing.B) {
	b.Run("langchaingo-sqlite", func(b *testing.B) { historybench.Add(b, history(b)) })
}

func BenchmarkMessages(b *testing.B) {
	b.Run("langchaingo-sqlite", func(b *testing.B) { historybench.Messages(b, history(b)) })
}

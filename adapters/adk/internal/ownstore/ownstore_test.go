// Package ownstore measures ADK's own SQL store with SQLite, to compare.
package ownstore

import (
	"path/filepath"
	"testing"

	"github.com/glebarez/sqlite"
	"google.golang.org/adk/v2/session"
	"google.golang.org/adk/v2/session/database"
	"gorm.io/gorm"
	"gorm.io/gorm/logger"

	"github.com/continuo-log/continuo/adapters/adk/internal/sessionbench"
)

func store(b *testing.B) session.Service {
	b.Helper()
	own, err := database.NewSessionService(sqlite.Open(filepath.Join(b.TempDir(), "own.db")+"?_pragma=journal_mode(WAL)"), &gorm.Config{Logger: logger.Discard})
	if err == nil {
		err = database.AutoMigrate(own)
	}
	if err != nil {
		b.Fatal(err)
	}
	return own
}

func BenchmarkAppend(b *testing.B) {
	b.Run("adk-sqlite", func(b *testing.B) { sessionbench.Append(b, store(b)) })
}

func BenchmarkGet(b *testing.B) {
	b.Run("adk-sqlite", func(b *testing.B) { sessionbench.Get(b, store(b)) })
}

package sqlite_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/store/sqlite"
)

// What was appended is in the file when Append returns.
func Example() {
	ctx := context.Background()
	folder, err := os.MkdirTemp("", "continuo")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(folder)
	path := filepath.Join(folder, "conversations.db")

	store, err := sqlite.Open(ctx, path, sqlite.Options{})
	if err != nil {
		log.Fatal(err)
	}
	l := continuo.NewLog(store, continuo.LogOptions{})
	conversation, err := l.Create(ctx, continuo.Conversation{Key: "garden"})
	if err != nil {
		log.Fatal(err)
	}
	question := continuo.Entry{Role: continuo.User, Content: continuo.Text("When do I sow carrots?")}
	if _, err := l.Append(ctx, conversation.ID, []continuo.Entry{question}, continuo.AppendOptions{}); err != nil {
		log.Fatal(err)
	}
	if err := store.Close(); err != nil {
		log.Fatal(err)
	}

	again, err := sqlite.Open(ctx, path, sqlite.Options{Existing: true}) // a mistyped path is not made
	if err != nil {
		log.Fatal(err)
	}
	defer again.Close()
	l = continuo.NewLog(again, continuo.LogOptions{})
	found, err := l.Find(ctx, continuo.Scope{ProjectID: continuo.DefaultProject}, "garden")
	if err != nil {
		log.Fatal(err)
	}
	for entry, err := range l.Entries(ctx, found.ID, continuo.Range{}) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(entry.Seq, entry.Role, entry.Content)
	}
	// Output:
	// 1 user When do I sow carrots?
}

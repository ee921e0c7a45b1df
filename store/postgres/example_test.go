package postgres_test

import (
	"context"
	"log"
	"os"

	"github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/store/postgres"
)

// Any number of processes may use one database. WatchChanges reports to each what the others append.
func Example() {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	store, err := postgres.Open(ctx, os.Getenv("DATABASE_URL"), postgres.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer store.Close()
	l := continuo.NewLog(store, continuo.LogOptions{})
	go l.WatchChanges(ctx)

	conversation, err := l.Create(ctx, continuo.Conversation{Title: "Garden"})
	if err != nil {
		log.Fatal(err)
	}
	for entry, err := range l.Tail(ctx, conversation.ID, 0) { // also those that other processes append
		if err != nil {
			log.Fatal(err)
		}
		log.Println(entry.Seq, entry.Role, entry.Content)
	}
}

package continuo_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/model"
	"github.com/continuo-log/continuo/store/sqlite"
	"github.com/continuo-log/continuo/turn"
	"github.com/continuo-log/continuo/window"
)

// A log in a SQLite file: append what was said, and build the request that a model gets.
func Example() {
	ctx := context.Background()
	folder, err := os.MkdirTemp("", "continuo")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(folder)
	store, err := sqlite.Open(ctx, filepath.Join(folder, "garden.db"), sqlite.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer store.Close()
	l := continuo.NewLog(store, continuo.LogOptions{})

	garden, err := l.Create(ctx, continuo.Conversation{Title: "Garden"})
	if err != nil {
		log.Fatal(err)
	}
	_, err = l.Append(ctx, garden.ID, []continuo.Entry{
		{Role: continuo.User, Content: continuo.Text("When do I sow carrots?")},
		{Role: continuo.Assistant, Content: continuo.Text("From March to June.")},
		{Role: continuo.User, Content: continuo.Text("And leeks?")},
	}, continuo.AppendOptions{})
	if err != nil {
		log.Fatal(err)
	}

	view, err := window.DefaultSettings().View(window.Codex)
	if err != nil {
		log.Fatal(err)
	}
	const newest = 0 // or the seq of an entry, for the request as it would have been then
	request, err := turn.Build(ctx, l, garden, newest, view,
		continuo.Envelope{System: []string{"You are a gardener."}},
		model.Info{Provider: "openai", Name: "gpt-4o", Protocol: model.ProtocolOpenAIChat})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%s\n", request.Body)
	fmt.Println(request.Plan.Totals.Kept, "of", request.Plan.Totals.Entries, "entries are shown")
	// Output:
	// {"model":"gpt-4o","messages":[{"role":"system","content":"You are a gardener."},{"role":"user","content":"When do I sow carrots?"},{"role":"assistant","content":"From March to June."},{"role":"user","content":"And leeks?"}]}
	// 3 of 3 entries are shown
}

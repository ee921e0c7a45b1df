// Command embedding is a Go service that has a conversation log, a model with a tool, and the whole HTTP API inside. It
// answers one question and ends; with -listen it serves. docs/embedding.md explains it.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"log"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"time"

	"github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/api"
	"github.com/continuo-log/continuo/engine"
	"github.com/continuo-log/continuo/model/demo"
	"github.com/continuo-log/continuo/server"
	"github.com/continuo-log/continuo/store/sqlite"
	"github.com/continuo-log/continuo/tool"
	"github.com/continuo-log/continuo/turn"
)

// stock is a tool that the model can call.
type stock struct{}

func (stock) Spec() continuo.ToolSpec {
	return continuo.ToolSpec{
		Name:        "stock",
		Description: "Tells how many pieces of an article are in stock.",
		Parameters:  json.RawMessage(`{"type":"object","properties":{"article":{"type":"string"}},"required":["article"]}`),
	}
}

func (stock) Run(_ context.Context, call tool.Call) tool.Result {
	var in struct {
		Article string `json:"article"`
	}
	if err := tool.Decode(call.Arguments, `{"article":"lamp"}`, &in); err != nil {
		return tool.Failure("%s", err)
	}
	return tool.Result{Content: "7 of " + in.Article}
}

func main() {
	folder := flag.String("data", os.TempDir(), "folder of the database")
	listen := flag.String("listen", "", "address to serve the API on")
	flag.Parse()
	if err := run(context.Background(), filepath.Join(*folder, "shop.db"), *listen); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, path, listen string) error {
	store, err := sqlite.Open(ctx, path, sqlite.Options{})
	if err != nil {
		return err
	}
	defer store.Close()
	e, err := engine.New(continuo.NewLog(store, continuo.LogOptions{}), engine.Options{
		Models:  map[string]engine.Upstream{"demo": {Model: demo.New(demo.Options{})}}, // model/openai and the like ask real ones
		Default: "demo",
		Tools:   tool.Set{stock{}},
		Policy:  tool.Policy{Allow: []string{"stock"}},
		Index:   store, // for searches over all conversations
	}, nil)
	if err != nil {
		return err
	}
	defer func() { _ = e.Close(context.Background()) }() // waits for turns in progress

	calls := &api.Service{Engine: e}
	chat, err := calls.Chat(ctx, continuo.Scope{ProjectID: continuo.DefaultProject}, api.ChatRequest{
		SessionID: "counter", Message: continuo.Text(`call stock {"article": "lamp"}`),
	})
	if err != nil {
		return err
	}
	for event, err := range chat.Events {
		switch {
		case err != nil:
			return err
		case event.Kind == turn.ToolDone:
			fmt.Println("tool:", event.Entry.Content)
		case event.Kind == turn.Failed:
			return errors.New(event.Entry.Error.Message)
		}
	}
	if listen == "" {
		return nil
	}
	return serve(ctx, listen, e)
}

// serve puts the API beside the handlers of the service. The paths are those of continuo serve.
func serve(ctx context.Context, listen string, e *engine.Engine) error {
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt)
	defer stop()
	mux := http.NewServeMux()
	mux.HandleFunc("GET /shop", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "our own page") })
	mux.Handle("/", server.New(e, server.Options{}))
	s := &http.Server{Addr: listen, Handler: mux, ReadHeaderTimeout: 10 * time.Second}
	go func() {
		<-ctx.Done()
		_ = s.Shutdown(context.WithoutCancel(ctx))
	}()
	if err := s.ListenAndServe(); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

package turn_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log"

	"github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/model/demo"
	"github.com/continuo-log/continuo/store/storetest"
	"github.com/continuo-log/continuo/tool"
	"github.com/continuo-log/continuo/turn"
	"github.com/continuo-log/continuo/window"
)

// weather is a tool that a model can call.
type weather struct{}

func (weather) Spec() continuo.ToolSpec {
	return continuo.ToolSpec{
		Name:        "weather",
		Description: "Tells the weather of a town.",
		Parameters:  json.RawMessage(`{"type":"object","properties":{"town":{"type":"string"}},"required":["town"]}`),
	}
}

func (weather) Run(_ context.Context, call tool.Call) tool.Result {
	var arguments struct {
		Town string `json:"town"`
	}
	if err := tool.Decode(call.Arguments, `{"town":"Graz"}`, &arguments); err != nil {
		return tool.Failure("%s", err)
	}
	return tool.Result{Content: "In " + arguments.Town + " it rains."}
}

// A turn: the user's message, the model's call of a tool, its result, and the answer.
func Example() {
	ctx := context.Background()
	l := continuo.NewLog(storetest.NewMemory(), continuo.LogOptions{})
	conversation, err := l.Create(ctx, continuo.Conversation{})
	if err != nil {
		log.Fatal(err)
	}
	view, err := window.DefaultSettings().View(window.Continuity)
	if err != nil {
		log.Fatal(err)
	}

	keeper := turn.NewKeeper(turn.KeeperOptions{Log: l})
	runner := &turn.Runner{
		Model:  demo.New(demo.Options{}),
		View:   view,
		Tools:  tool.Set{weather{}},
		Policy: tool.Policy{Allow: []string{"weather"}},
	}
	journal, err := keeper.Begin(ctx, continuo.Turn{ConversationID: conversation.ID})
	if err != nil {
		log.Fatal(err)
	}
	ran := make(chan error, 1)
	go func() { ran <- runner.Run(journal, turn.Input{Message: continuo.Text(`call weather {"town":"Graz"}`)}) }()
	for event, err := range journal.Follow(ctx, 0) {
		if err != nil {
			log.Fatal(err)
		}
		switch event.Kind {
		case turn.TextDelta:
			fmt.Print(event.Text) // piece by piece, while the model speaks
		case turn.Answered:
			fmt.Println()
		case turn.Called:
			fmt.Println("call:", event.Call.Name, event.Call.Arguments)
		case turn.ToolDone:
			fmt.Println("result:", event.Entry.Content)
		case turn.Failed:
			fmt.Println("failed:", event.Entry.Error.Message)
		}
	}
	if err := <-ran; err != nil {
		log.Fatal(err)
	}
	// Output:
	// As you asked, I call weather.
	// call: weather {"town":"Graz"}
	// result: In Graz it rains.
	// I am Continuo's built-in demo model, not a real one: I can only tell what I was shown. I was shown 3 messages. weather returned 17 characters: “In Graz it rains.”
}

// Without a reader of its events a turn just runs. Its result is in the log.
func ExampleRunner_Run() {
	ctx := context.Background()
	l := continuo.NewLog(storetest.NewMemory(), continuo.LogOptions{})
	conversation, err := l.Create(ctx, continuo.Conversation{})
	if err != nil {
		log.Fatal(err)
	}
	view, err := window.DefaultSettings().View(window.Continuity)
	if err != nil {
		log.Fatal(err)
	}
	keeper := turn.NewKeeper(turn.KeeperOptions{Log: l})
	runner := &turn.Runner{Model: demo.New(demo.Options{}), View: view}

	journal, err := keeper.Begin(ctx, continuo.Turn{ConversationID: conversation.ID})
	if err != nil {
		log.Fatal(err)
	}
	if err := runner.Run(journal, turn.Input{Message: continuo.Text("Carrots are sown in March.")}); err != nil {
		log.Fatal(err)
	}
	for entry, err := range l.Entries(ctx, conversation.ID, continuo.Range{}) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(entry.Seq, entry.Role, entry.Content)
		if entry.Round != nil {
			fmt.Println("from the entries up to", entry.Round.At)
		}
	}
	// Output:
	// 1 user Carrots are sown in March.
	// 2 assistant I am Continuo's built-in demo model, not a real one: I can only tell what I was shown. I was shown 1 message. You say: “Carrots are sown in March.”
	// from the entries up to 1
}

package eino_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/cloudwego/eino/adk"
	"github.com/cloudwego/eino/components/model"
	"github.com/cloudwego/eino/components/tool"
	"github.com/cloudwego/eino/components/tool/utils"
	"github.com/cloudwego/eino/compose"
	"github.com/cloudwego/eino/schema"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/adapters/eino"
	"github.com/continuo-log/continuo/store/sqlite"
)

// clerk is a model that calls a tool first, and then says what the tool returned.
type clerk struct{}

func (clerk) Generate(_ context.Context, input []*schema.Message, _ ...model.Option) (*schema.Message, error) {
	last := input[len(input)-1]
	if last.Role == schema.Tool {
		return schema.AssistantMessage("Done: "+last.Content, nil), nil
	}
	return schema.AssistantMessage("", []schema.ToolCall{{ID: "c1", Type: "function", Function: schema.FunctionCall{Name: "order", Arguments: `{"article":"lamp"}`}}}), nil
}

func (c clerk) Stream(ctx context.Context, input []*schema.Message, options ...model.Option) (*schema.StreamReader[*schema.Message], error) {
	message, err := c.Generate(ctx, input, options...)
	return schema.StreamReaderFromArray([]*schema.Message{message}), err
}

func (c clerk) WithTools([]*schema.ToolInfo) (model.ToolCallingChatModel, error) { return c, nil }

type order struct {
	Article string `json:"article"`
}

// shop is a program of Eino's over a store: its agent, and the session's history.
func shop(ctx context.Context, log *continuo.Log) (*adk.Runner, *eino.Sessions[*schema.Message], error) {
	ask, err := utils.InferTool("order", "Orders an article.", func(ctx context.Context, in order) (string, error) {
		if interrupted, _, _ := tool.GetInterruptState[string](ctx); !interrupted {
			return "", tool.StatefulInterrupt(ctx, "May I order a "+in.Article+"?", in.Article)
		}
		return in.Article + " ordered", nil
	})
	if err != nil {
		return nil, nil, err
	}
	agent, err := adk.NewChatModelAgent(ctx, &adk.ChatModelAgentConfig{
		Name: "clerk", Description: "Orders things.", Model: clerk{},
		ToolsConfig: adk.ToolsConfig{ToolsNodeConfig: compose.ToolsNodeConfig{Tools: []tool.BaseTool{ask}}},
	})
	if err != nil {
		return nil, nil, err
	}
	runner := adk.NewRunner(ctx, adk.RunnerConfig{Agent: agent, CheckPointStore: eino.NewCheckPoints(log, eino.Options{})})
	return runner, eino.NewSessions[*schema.Message](log, eino.Options{}), nil
}

// keep appends the messages of events to a session, and returns the question of an interrupt.
func keep(ctx context.Context, sessions *eino.Sessions[*schema.Message], events *adk.AsyncIterator[*adk.AgentEvent]) (question any, err error) {
	for {
		event, more := events.Next()
		if !more {
			return question, err
		}
		switch {
		case event.Err != nil:
			err = event.Err
		case event.Action != nil && event.Action.Interrupted != nil:
			question = event.Action.Interrupted.InterruptContexts[0].Info
		case event.Output != nil && event.Output.MessageOutput != nil:
			var message *schema.Message
			if message, err = event.Output.MessageOutput.GetMessage(); err == nil {
				err = sessions.Append(ctx, "order 1", message)
			}
		}
	}
}

// An agent is interrupted by a tool that asks, and goes on in a second program with the same store.
func Example() {
	folder, err := os.MkdirTemp("", "")
	check(err)
	defer os.RemoveAll(folder)
	program := func(run func(context.Context, *adk.Runner, *eino.Sessions[*schema.Message])) {
		ctx := context.Background()
		store, err := sqlite.Open(ctx, filepath.Join(folder, "shop.db"), sqlite.Options{})
		check(err)
		defer store.Close()
		runner, sessions, err := shop(ctx, continuo.NewLog(store, continuo.LogOptions{}))
		check(err)
		run(ctx, runner, sessions)
	}
	program(func(ctx context.Context, runner *adk.Runner, sessions *eino.Sessions[*schema.Message]) {
		check(sessions.Append(ctx, "order 1", schema.UserMessage("I need a lamp.")))
		history, err := sessions.Read(ctx, "order 1")
		check(err)
		question, err := keep(ctx, sessions, runner.Run(ctx, history, adk.WithCheckPointID("order 1")))
		check(err)
		fmt.Println(question)
	})
	program(func(ctx context.Context, runner *adk.Runner, sessions *eino.Sessions[*schema.Message]) {
		events, err := runner.Resume(ctx, "order 1")
		check(err)
		_, err = keep(ctx, sessions, events)
		check(err)
		history, err := sessions.Read(ctx, "order 1")
		check(err)
		for _, message := range history {
			fmt.Println(message.Role, message.Content, len(message.ToolCalls))
		}
	})
	// Output:
	// May I order a lamp?
	// user I need a lamp. 0
	// assistant  1
	// tool lamp ordered 0
	// assistant Done: lamp ordered 0
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}

package trpc_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"trpc.group/trpc-go/trpc-agent-go/agent/llmagent"
	"trpc.group/trpc-go/trpc-agent-go/model"
	"trpc.group/trpc-go/trpc-agent-go/runner"
	"trpc.group/trpc-go/trpc-agent-go/tool"
	"trpc.group/trpc-go/trpc-agent-go/tool/function"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/adapters/trpc"
	"github.com/continuo-log/continuo/store/sqlite"
)

// clerk is a model that calls a tool for each question, and then says what the tool returned and how long the request was.
type clerk struct{}

func (clerk) Info() model.Info { return model.Info{Name: "clerk"} }

func (clerk) GenerateContent(_ context.Context, request *model.Request) (<-chan *model.Response, error) {
	last := request.Messages[len(request.Messages)-1]
	answer := model.Message{Role: model.RoleAssistant}
	if last.Role == model.RoleTool {
		answer.Content = fmt.Sprintf("%s in stock, of %d messages", last.Content, len(request.Messages))
	} else {
		call := model.FunctionDefinitionParam{Name: "stock", Arguments: []byte(`{"article":"lamp"}`)}
		answer.ToolCalls = []model.ToolCall{{ID: fmt.Sprint("c", len(request.Messages)), Type: "function", Function: call}}
	}
	responses := make(chan *model.Response, 1)
	responses <- &model.Response{Done: true, Object: model.ObjectTypeChatCompletion, Choices: []model.Choice{{Message: answer}}}
	close(responses)
	return responses, nil
}

type article struct {
	Article string `json:"article"`
}

// ask is a program that asks the agent one question, in the session of a store.
func ask(folder, question string) error {
	ctx := context.Background()
	store, err := sqlite.Open(ctx, filepath.Join(folder, "shop.db"), sqlite.Options{})
	if err != nil {
		return err
	}
	defer store.Close()
	stock := function.NewFunctionTool(func(context.Context, article) (int, error) { return 7, nil }, function.WithName("stock"), function.WithDescription("Counts an article."))
	agent := llmagent.New("clerk", llmagent.WithModel(clerk{}), llmagent.WithTools([]tool.Tool{stock}))
	sessions := trpc.New(continuo.NewLog(store, continuo.LogOptions{}), trpc.Options{})
	run := runner.NewRunner("shop", agent, runner.WithSessionService(sessions))
	defer run.Close()
	events, err := run.Run(ctx, "ada", "session 1", model.NewUserMessage(question))
	if err != nil {
		return err
	}
	for e := range events {
		if e.Error != nil {
			return e.Error
		}
		if e.Response != nil && len(e.Choices) > 0 && e.Choices[0].Message.Role == model.RoleAssistant && !e.IsRunnerCompletion() {
			if text := e.Choices[0].Message.Content; text != "" {
				fmt.Println(text)
			}
		}
	}
	return nil
}

// Two programs, one after another, go on with one session.
func Example() {
	folder, err := os.MkdirTemp("", "")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(folder)
	for _, question := range []string{"How many lamps?", "And now?"} {
		if err := ask(folder, question); err != nil {
			panic(err)
		}
	}
	// Output:
	// 7 in stock, of 4 messages
	// 7 in stock, of 8 messages
}

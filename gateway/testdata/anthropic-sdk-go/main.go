// Command anthropic-sdk-go uses the official Go client of Anthropic's API before a gateway: streams, tools and errors. It
// prints a line for each check that fails and ends with the number of checks. It is a module of its own, so that the
// client is no dependency of the project.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/option"
)

var (
	client         = anthropic.NewClient(option.WithBaseURL(strings.TrimSuffix(os.Getenv("BASE_URL"), "/v1")), option.WithAPIKey("none"), option.WithMaxRetries(0))
	passed, failed int
)

func check(name string, run func() error) {
	if err := run(); err != nil {
		failed++
		fmt.Printf("FAILED %s: %v\n", name, err)
		return
	}
	passed++
}

func equal(got, want any) error {
	if fmt.Sprint(got) != fmt.Sprint(want) {
		return fmt.Errorf("got %v, want %v", got, want)
	}
	return nil
}

func asking(text string) anthropic.MessageNewParams {
	return anthropic.MessageNewParams{
		Model: anthropic.Model(os.Getenv("MODEL")), MaxTokens: 99,
		Messages: []anthropic.MessageParam{anthropic.NewUserMessage(anthropic.NewTextBlock(text))},
	}
}

// streamed reads a stream to its end.
func streamed(params anthropic.MessageNewParams) (message anthropic.Message, text string, err error) {
	stream := client.Messages.NewStreaming(context.Background(), params)
	for stream.Next() {
		event := stream.Current()
		if err := message.Accumulate(event); err != nil {
			return message, text, err
		}
		text += event.Delta.Text
	}
	return message, text, stream.Err()
}

func isStatus(err error, status int) error {
	var refused *anthropic.Error
	if !errors.As(err, &refused) || refused.StatusCode != status {
		return fmt.Errorf("got %v, want the status %d", err, status)
	}
	return nil
}

func calls() error {
	params := asking("call: look twice")
	params.Tools = []anthropic.ToolUnionParam{{OfTool: &anthropic.ToolParam{
		Name: "look", InputSchema: anthropic.ToolInputSchemaParam{Properties: map[string]any{"at": map[string]string{"type": "integer"}}},
	}}}
	first, _, err := streamed(params)
	if err != nil {
		return err
	}
	var results []anthropic.ContentBlockParamUnion
	var inputs []string
	for _, block := range first.Content {
		var input struct{ At int }
		if err := json.Unmarshal(block.Input, &input); err != nil {
			return err
		}
		inputs = append(inputs, fmt.Sprint(block.Name, input.At))
		results = append(results, anthropic.NewToolResultBlock(block.ID, fmt.Sprint("seen ", input.At), false))
	}
	if err := equal(fmt.Sprint(first.StopReason, inputs), "tool_use[look1 look2]"); err != nil {
		return err
	}
	params.Messages = append(params.Messages, first.ToParam(), anthropic.NewUserMessage(results...))
	second, err := client.Messages.New(context.Background(), params)
	if err != nil {
		return err
	}
	return equal(second.Content[0].Text, "results: seen 1, seen 2")
}

func main() {
	check("a message", func() error {
		message, err := client.Messages.New(context.Background(), asking("say: one message"))
		if err != nil {
			return err
		}
		return equal(fmt.Sprint(message.Content[0].Text, message.StopReason, message.Usage.OutputTokens), "one messageend_turn30")
	})
	check("a stream", func() error {
		message, text, err := streamed(asking("say: streamed żółć 🚀"))
		if err != nil {
			return err
		}
		return equal(fmt.Sprint(text, message.Content[0].Text, message.StopReason), "streamed żółć 🚀streamed żółć 🚀end_turn")
	})
	check("thinking", func() error {
		message, _, err := streamed(asking("think: So."))
		if err != nil {
			return err
		}
		return equal(fmt.Sprint(message.Content[0].Thinking, message.Content[1].Text), "Hm.So.")
	})
	check("two calls at once, and their results", calls)
	check("an error before the stream", func() error {
		_, _, err := streamed(asking("fault: 429"))
		return isStatus(err, 429)
	})
	check("an error within the stream", func() error {
		_, text, err := streamed(asking("fault: cut"))
		if err == nil || text != "part one " {
			return fmt.Errorf("got %q, %v", text, err)
		}
		return nil
	})
	check("an unknown model", func() error {
		params := asking("x")
		params.Model = "nope"
		_, err := client.Messages.New(context.Background(), params)
		return isStatus(err, 404)
	})
	check("the number of tokens, and the models", func() error {
		count, err := client.Messages.CountTokens(context.Background(), anthropic.MessageCountTokensParams{Model: asking("").Model, Messages: asking("hello there").Messages})
		if err != nil || count.InputTokens == 0 {
			return fmt.Errorf("got %v, %w", count, err)
		}
		found, err := client.Models.Get(context.Background(), os.Getenv("MODEL"), anthropic.ModelGetParams{})
		if err != nil {
			return err
		}
		return equal(found.ID, os.Getenv("MODEL"))
	})
	fmt.Printf("%d passed, %d failed\n", passed, failed)
	if failed > 0 {
		os.Exit(1)
	}
}

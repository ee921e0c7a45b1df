package summary_test

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/continuo-log/continuo/engine"
	"github.com/continuo-log/continuo/engine/catalog"
	"github.com/continuo-log/continuo/engine/summary"
	"github.com/continuo-log/continuo/engine/tasks"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/internal/rawjson"
	"github.com/continuo-log/continuo/model"
	"github.com/continuo-log/continuo/model/transcript"
	"github.com/continuo-log/continuo/task"
)

// connectorModel is a model that is asked as a program is.
type connectorModel struct{ *scriptedModel }

func (p connectorModel) Info() model.Info {
	info := p.scriptedModel.Info()
	info.Protocol = model.ProtocolPrompt
	return info
}

// smallByDefault makes the summarizer the default model, which shortens the messages of tasks.
func smallByDefault(options *engine.Options) { options.Default = "small" }

// everyKind makes a model of each kind that can be asked for a summary, which answers what a function says.
func everyKind(answer func(ctx context.Context, body string) (string, error)) map[string]model.Model {
	newModel := func() *scriptedModel { return &scriptedModel{name: "small-1", answer: answer} }
	return map[string]model.Model{"with calls": newModel(), "a transcript's": transcript.New(newModel()), "a program": connectorModel{newModel()}}
}

// Whatever a model is like, it is shown the whole text and the rules, and what it answers is the summary.
func TestModelsOfEveryKindSummarize(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		long := "We talked for long. " + strings.Repeat("And then some more was said. ", 20)
		var asked string
		for kind, m := range everyKind(func(_ context.Context, body string) (string, error) {
			asked = body
			return "They talked.", nil
		}) {
			e := newSummaryEngine(t, newCountedLog(), m, smallByDefault)
			status, warnings, err := e.Tasks.Create(t.Context(), taskOf(long))
			if err != nil || len(warnings) > 0 || status.Task.Context.ConversationHistory.Messages[0].Content != "They talked. (summarized)" {
				t.Errorf("%s: %+v, %v, %v", kind, status, warnings, err)
			}
			if !strings.Contains(asked, strings.TrimSpace(long)) || !strings.Contains(asked, "at most 150 characters") {
				t.Errorf("%s: it was asked %s", kind, asked)
			}
			e = newSummaryEngine(t, newCountedLog(), m)
			summaries := e.checkSummaries(e.appendConversation("tea", 15))
			if len(summaries) == 0 {
				t.Errorf("%s: a long talk has no summary", kind)
			}
			for _, entry := range summaries {
				if entry.Summary.By != "small-1" || entry.Content.String() != "They talked." {
					t.Errorf("%s: the summary is %q by %s", kind, entry.Content.String(), entry.Summary.By)
				}
			}
		}
	})
}

// A model that is shown a transcript is told how to read one and how to answer.
func TestATranscriptsModelAnswersInEvents(t *testing.T) {
	var asked string
	small := &scriptedModel{name: "small-1", answer: func(_ context.Context, body string) (string, error) {
		asked = body
		return "§think: It is short.\n\n§respond: They talked.", nil
	}}
	text, err := summary.NewSummarizer(catalog.Upstream{Model: transcript.New(small)}, slog.Default()).Summarize(t.Context(), "$user: hello\n$respond: hi", 100)
	if err != nil || text != "They talked." || !strings.Contains(asked, "How to read and how to answer") {
		t.Errorf("got %q, %v, asked %s", text, err, asked)
	}
}

// taskOf is a request for a task with messages of an assistant, which are to be summarized.
func taskOf(messages ...string) tasks.Request {
	var history []map[string]string
	for _, message := range messages {
		history = append(history, map[string]string{"role": "assistant", "content": message})
	}
	return tasks.Request{Scope: continuo.Scope{ProjectID: continuo.DefaultProject}, Request: task.Request{Description: "Go on", Compression: task.Semantic, ConversationHistory: rawjson.MustMarshal(history)}}
}

// A model that does not answer holds nobody up for longer than one summary may take; the extract replaces it.
func TestASummaryHasATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		late := &scriptedModel{name: "small-1", answer: func(ctx context.Context, _ string) (string, error) {
			<-ctx.Done()
			return "", ctx.Err()
		}}
		e := newSummaryEngine(t, newCountedLog(), late, smallByDefault)
		began := time.Now()
		status, warnings, err := e.Tasks.Create(t.Context(), taskOf(strings.Repeat("It is late. ", 20), strings.Repeat("It is later. ", 20)))
		if err != nil || len(warnings) != 2 || time.Since(began) != summary.SummaryPatience {
			t.Fatalf("after %s: %v, %v", time.Since(began), warnings, err)
		}
		for _, message := range status.Task.Context.ConversationHistory.Messages {
			if !strings.HasPrefix(message.Content, "It is late") {
				t.Errorf("it reads %q", message.Content)
			}
		}
	})
}

// A cancelled creation of a task does not wait for its summary, and leaves no task.
func TestSummariesEndWithTheirRequest(t *testing.T) {
	asked := make(chan struct{}, 100)
	small := &scriptedModel{name: "small-1", answer: func(ctx context.Context, _ string) (string, error) {
		asked <- struct{}{}
		<-ctx.Done()
		return "", ctx.Err()
	}}
	e := newSummaryEngine(t, newCountedLog(), small, smallByDefault)
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-asked
		cancel()
	}()
	if _, _, err := e.Tasks.Create(ctx, taskOf(slices.Repeat([]string{strings.Repeat("On and on. ", 20)}, 40)...)); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	if n := len(small.bodies()); n > 4 {
		t.Errorf("the model was asked %d times", n)
	}
	if tasks, _, err := e.Tasks.List(t.Context(), tasks.Query{Scope: continuo.Scope{ProjectID: continuo.DefaultProject}, Limit: 10}); err != nil || len(tasks) > 0 {
		t.Errorf("there are %+v, %v", tasks, err)
	}
}

// A model that breaks down takes nothing down with it.
func TestAModelThatPanicsMakesNoSummary(t *testing.T) {
	small := &scriptedModel{name: "small-1", answer: func(context.Context, string) (string, error) { panic("a bug") }}
	var logged strings.Builder
	e := newSummaryEngine(t, newCountedLog(), small, smallByDefault, func(options *engine.Options) {
		options.Logger = slog.New(slog.NewTextHandler(&logged, nil))
	})
	status, warnings, err := e.Tasks.Create(t.Context(), taskOf(strings.Repeat("It is late. ", 20)))
	if err != nil || len(warnings) != 1 || !strings.HasPrefix(status.Task.Context.ConversationHistory.Messages[0].Content, "It is late.") {
		t.Errorf("%v, %v", warnings, err)
	}
	if line := logged.String(); !strings.Contains(line, "a bug") || !strings.Contains(line, "stack=") {
		t.Errorf("logged %s", line)
	}
}

// What a program says that could not make a summary is logged only where the text of messages may be.
func TestAProgramsWordsOnASummaryAreNotLogged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, logText := range []bool{false, true} {
			fails := connectorModel{&scriptedModel{name: "small-1", answer: func(context.Context, string) (string, error) {
				return "", &model.Error{Reason: continuo.ReasonUpstream, Message: "its stderr: word hush-hush"}
			}}}
			var logged strings.Builder
			e := newSummaryEngine(t, newCountedLog(), fails, func(options *engine.Options) {
				options.Logger, options.LogText = slog.New(slog.NewTextHandler(&logged, nil)), logText
			})
			conversation := e.appendConversation("tea", 3)
			if _, err := e.Summaries.Make(t.Context(), conversation, 1, 4, 0, "", "small", 1000); err != nil {
				t.Fatal(err)
			}
			if line := logged.String(); !strings.Contains(line, "summary_fell_back") || !strings.Contains(line, "upstream") && !logText || strings.Contains(line, "hush-hush") != logText {
				t.Errorf("text %v: logged %s", logText, line)
			}
		}
	})
}

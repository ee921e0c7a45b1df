package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/crew"
	"github.com/continuo-log/continuo/engine"
	"github.com/continuo-log/continuo/internal/config"
	"github.com/continuo-log/continuo/model/demo"
	"github.com/continuo-log/continuo/store/storetest"
	"github.com/continuo-log/continuo/telegram"
	"github.com/continuo-log/continuo/telegram/telegramtest"
)

// chatOfTest is a chat in which a bot speaks for the example crew, over a store that outlives the program.
type chatOfTest struct {
	t     *testing.T
	api   *telegramtest.Server
	token string
	store continuo.Store
}

// collect runs a program with the front end until a role has answered so often in all, and ends it.
func (c *chatOfTest) collect(role string, answers int) []telegramtest.Sent {
	c.t.Helper()
	ctx, cancel := context.WithCancel(c.t.Context())
	defer cancel()
	e, err := engine.New(continuo.NewLog(c.store, continuo.LogOptions{}), engine.Options{
		Models: map[string]engine.Upstream{"demo": {Model: demo.New(demo.Options{})}}, Default: "demo", Crews: newCrewFolder(&config.Config{DefaultModel: "demo"}),
	}, nil)
	if err != nil {
		c.t.Fatal(err)
	}
	defer e.Close(context.WithoutCancel(ctx)) //nolint:errcheck // never fails
	chat := &crewChat{engine: e, session: engine.CrewSession{Scope: continuo.Scope{ProjectID: "default"}, Crew: "example", SessionID: "telegram:-7"}}
	frontEnd, err := telegram.New(chat, telegram.Options{Token: c.token, ChatID: -7, HTTP: c.api.Client()})
	if err != nil {
		c.t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- frontEnd.Run(ctx) }()
	for {
		changed := c.api.Changed()
		answered := 0
		for _, message := range c.api.Sent() {
			if strings.HasPrefix(message.Text, role+"\n") {
				answered++
			}
		}
		if answered >= answers {
			break
		}
		select {
		case <-changed:
		case err := <-ended:
			c.t.Fatalf("the front end ended: %v", err)
		}
	}
	cancel()
	if err := <-ended; err != nil {
		c.t.Error(err)
	}
	return c.api.Sent()
}

func TestACrewAnswersOnTelegram(t *testing.T) {
	api := telegramtest.New()
	c := &chatOfTest{t: t, api: api, token: api.AddBot(1, "crew_bot"), store: storetest.NewMemory()}
	api.AddChat(-7, "group", "Garden", c.token)
	api.Receive(-7, "Ada", "Make a plan for a garden.")
	sent := c.collect("Reviewer", 1)
	for i, role := range []string{"Planner", "Builder", "Reviewer"} {
		if !strings.HasPrefix(sent[i].Text, role+"\n") {
			t.Errorf("message %d is %q", i, sent[i].Text)
		}
	}
	api.Receive(-7, "Ada", "/status")
	api.Receive(-7, "Ada", "/context planner")
	api.Receive(-7, "Ada", "/context nobody")
	api.Receive(-7, "Ada", "/reset")
	api.Receive(-7, "Ada", "/restore")
	api.Receive(-7, "Ada", "And now?")
	sent = c.collect("Reviewer", 2)
	var all []string
	for _, message := range sent[3:] {
		all = append(all, message.Text)
	}
	messages := strings.Join(all, "\n---\n")
	for _, want := range []string{"Planner: 1 answer", "User (Ada): Make a plan", "planner (Planner), builder (Builder), reviewer (Reviewer)", "/restore brings them back", "Everybody sees again", "Planner\n", "Builder\n", "Reviewer\n"} {
		if !strings.Contains(messages, want) {
			t.Errorf("nothing says %q in\n%s", want, messages)
		}
	}
	if strings.Contains(messages, continuo.Placeholder) {
		t.Errorf("a placeholder was sent:\n%s", messages)
	}
	if problems := api.Problems(); len(problems) > 0 {
		t.Errorf("the Bot API was used wrongly: %q", problems)
	}
}

// What is answered before the front end has looked for the first time how far it is, is sent too.
func TestTheFirstAnswersAreSent(t *testing.T) {
	e, err := engine.New(continuo.NewLog(storetest.NewMemory(), continuo.LogOptions{}), engine.Options{
		Models: map[string]engine.Upstream{"demo": {Model: demo.New(demo.Options{})}}, Default: "demo", Crews: newCrewFolder(&config.Config{DefaultModel: "demo"}),
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close(context.WithoutCancel(t.Context())) //nolint:errcheck // never fails
	chat := &crewChat{engine: e, session: engine.CrewSession{Scope: continuo.Scope{ProjectID: "default"}, Crew: "example", SessionID: "telegram:-7"}}
	if err := chat.Send(t.Context(), "k", continuo.Text("Make a plan."), nil); err != nil {
		t.Fatal(err)
	}
	from, err := chat.Delivered(t.Context())
	if err != nil || from.Seq != 0 {
		t.Errorf("it begins to send behind entry %d, %v", from.Seq, err)
	}
	if err := chat.SetDelivered(t.Context(), telegram.Delivery{Seq: 5, Parts: 1}); err != nil {
		t.Fatal(err)
	}
	if err := chat.SetDelivered(t.Context(), telegram.Delivery{Seq: 5}); err != nil {
		t.Fatal(err)
	}
	if now, err := chat.Delivered(t.Context()); err != nil || now != (telegram.Delivery{Seq: 5, Parts: 1}) {
		t.Errorf("it goes back to %+v, %v", now, err)
	}
	conversation, err := e.Conversations.Find(t.Context(), continuo.Scope{ProjectID: "default"}, "telegram:-7")
	if err != nil {
		t.Fatal(err)
	}
	team := continuo.ConversationChange{Metadata: []byte(`{"team":"red"}`)}
	if _, err := e.Conversations.Change(t.Context(), continuo.Scope{ProjectID: "default"}, conversation.ID, team); err != nil {
		t.Fatal(err)
	}
	if err := chat.SetDelivered(t.Context(), telegram.Delivery{Seq: 6}); err != nil {
		t.Fatal(err)
	}
	if conversation, err = e.Conversations.Conversation(t.Context(), conversation.ID); err != nil || string(conversation.Metadata) != `{"team":"red"}` {
		t.Errorf("the metadata that a client wrote is %s, %v", conversation.Metadata, err)
	}
	if now, err := chat.Delivered(t.Context()); err != nil || now != (telegram.Delivery{Seq: 6}) {
		t.Errorf("after a client replaced the metadata it is at %+v, %v", now, err)
	}
}

// An error in a chat is one line without internal details, and only what may pass is tried again.
func TestErrorMessagesInAChat(t *testing.T) {
	for name, test := range map[string]struct {
		err  error
		want string // "" for one that passes
	}{
		"none":           {nil, ""},
		"too long":       {fmt.Errorf("say: %w", &continuo.OverflowError{View: "role:a"}), "send it in parts"},
		"a broken file":  {fmt.Errorf("secret/a.yaml: %w", &crew.Problems{}), "file is not valid"},
		"two lines":      {fmt.Errorf("no role bob: %w\nsecret", continuo.ErrInvalid), "no role bob"},
		"a missing crew": {fmt.Errorf("crew a: %w", continuo.ErrNotFound), ""}, // it may come back
		"archived":       {continuo.ErrArchived, "archived"},
		"busy":           {&continuo.BusyError{}, ""},
		"away":           {continuo.ErrUnavailable, ""},
	} {
		t.Run(name, func(t *testing.T) {
			got := refusal(test.err)
			refused, stays := errors.AsType[*telegram.RefusedError](got)
			switch {
			case stays != (test.want != ""):
				t.Errorf("it stays: %v, and is %v", stays, got)
			case stays && (!strings.Contains(refused.Reason, test.want) || strings.ContainsAny(refused.Reason, "\n") || strings.Contains(refused.Reason, "secret")):
				t.Errorf("the chat receives %q", refused.Reason)
			}
		})
	}
	if got := withoutStderr("all failed: Ann (it ended with 1; its stderr: key)"); got != "all failed: Ann (it ended with 1)" {
		t.Errorf("a reason in brackets becomes %q", got)
	}
	if got := withoutStderr("it ended with 1; its stderr: /home/ann/key"); got != "it ended with 1" {
		t.Errorf("the chat receives %q of a program's output", got)
	}
}

package trace_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/internal/span"
	"github.com/continuo-log/continuo/model"
	"github.com/continuo-log/continuo/model/modeltest"
	"github.com/continuo-log/continuo/model/trace"
)

// opening is an agent whose sessions take four seconds to open, or fail then.
type opening struct {
	*modeltest.Script
	err error
}

func (o opening) Open(_ context.Context, id string) (model.Session, error) {
	time.Sleep(4 * time.Second)
	if o.err != nil {
		return nil, o.err
	}
	return opened{o.Script, id}, nil
}

type opened struct {
	*modeltest.Script
	id string
}

func (o opened) ID() string   { return "s1" }
func (o opened) Loaded() bool { return o.id == "s1" }
func (o opened) Alive() bool  { return true }
func (o opened) Close()       {}

const openNames = "gen_ai.operation.name=open_session,gen_ai.provider.name=script,gen_ai.request.model=script"

func TestASessionIsOpened(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newFixture(t)
		m := trace.New(opening{Script: &modeltest.Script{Answers: [][]modeltest.Step{{modeltest.Text("fine"), modeltest.Finish()}}}}, h.options).(model.Sessions)
		ctx := span.With(t.Context(), attribute.String(span.ConversationID, "conv_1"))
		session, err := m.Open(ctx, "s1")
		if err != nil || session.ID() != "s1" || !session.Loaded() {
			t.Fatalf("opened %v, %v", session, err)
		}
		s, set := h.one()
		if s.Name != "open_session script" || s.Status.Code != codes.Unset || s.EndTime.Sub(s.StartTime) != 4*time.Second {
			t.Errorf("the span: %+v", s)
		}
		if get(set, span.ConversationID) != "conv_1" || get(set, span.OperationName) != "open_session" || get(set, "continuo.session.loaded") != "true" {
			t.Errorf("its attributes: %s", key(set))
		}
		if failed := ask(ctx, session, "{}"); failed != nil {
			t.Fatal(failed)
		}
		if got := h.metrics()[span.OperationDuration]; got[openNames] != (histogram{1, 4}) || got[names].count != 1 || len(got) != 2 {
			t.Errorf("the durations: %v", got)
		}
	})
}

func TestASessionThatIsNotOpenedIsNamedByTheReason(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newFixture(t)
		broken := &model.Error{Reason: continuo.ReasonUpstream, Message: "its stderr: my secret"}
		m := trace.New(opening{&modeltest.Script{}, broken}, h.options).(model.Sessions)
		if _, err := m.Open(t.Context(), ""); err != broken {
			t.Errorf("the caller got %v", err)
		}
		s, set := h.one()
		if s.Status.Code != codes.Error || s.Status.Description != "upstream" || get(set, span.ErrorType) != "upstream" || strings.Contains(key(set), "secret") {
			t.Errorf("the span: %+v", s)
		}
		if got := h.metrics()[span.OperationDuration]; got["error.type=upstream,"+openNames] != (histogram{1, 4}) || len(got) != 1 {
			t.Errorf("the durations: %v", got)
		}
	})
}

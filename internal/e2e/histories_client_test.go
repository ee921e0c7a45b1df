package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/internal/historytest"
)

// recordingClient is a client of one conversation, which records what it does. One goroutine uses it.
type recordingClient struct {
	t            *testing.T
	number       int
	random       *rand.Rand
	conversation *sharedConversation
	any          func() *killable
	calm         *atomic.Bool // no faults come any more: every answer is waited for
	said         int
	length       int64  // of the log as it was last seen
	turn         string // the one whose message the log ended with, but for entries by hand, when it was last seen
	unknown      int    // answers that never came
}

// sharedConversation is a conversation that several clients use at once.
type sharedConversation struct {
	key     string
	history *historytest.History
}

// callTime is how long a client waits at most for an answer before it gives up, mostly less: what became of the call is
// unknown then.
const callTime = 3 * time.Second

// longestLog is how many entries a client adds to at most, so that a log stays shorter than a page.
const longestLog = 800

// runUntilStopped does one thing after another until stop is closed.
func (w *recordingClient) runUntilStopped(ctx context.Context, stop <-chan struct{}) {
	for {
		select {
		case <-stop:
			return
		case <-time.After(time.Duration(20+w.random.IntN(80)) * time.Millisecond):
		}
		switch chance := w.random.IntN(100); {
		case chance < 30 || w.length > longestLog:
			w.read(ctx, w.any())
		case chance < 45:
			w.append(ctx, -1)
		case chance < 65:
			w.append(ctx, w.length)
		case chance < 75:
			w.appendWithKey(ctx)
		case chance < 88:
			w.chat(ctx)
		default:
			w.cancel(ctx)
		}
	}
}

// answered is the status and the body of an answer; status 0 means that none came.
func (w *recordingClient) answered(ctx context.Context, method, path string, body any, header ...string) (status int, text []byte) {
	limit := callTime/10 + time.Duration(w.random.Int64N(int64(callTime*9/10)))
	if w.calm.Load() {
		limit = patience
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	response, err := w.any().do(ctx, method, path, body, header...)
	if err != nil {
		w.unknown++
		return 0, nil
	}
	defer response.Body.Close()
	if text, err = io.ReadAll(response.Body); err != nil {
		w.unknown++
		return 0, nil
	}
	return response.StatusCode, text
}

func (w *recordingClient) path(rest string) string {
	return "/api/conversations/" + w.conversation.key + rest
}

// begin begins an operation.
func (w *recordingClient) begin(kind historytest.Kind) historytest.Operation {
	return historytest.Operation{Client: w.number, Kind: kind, After: -1, Called: w.conversation.history.Now(), Outcome: historytest.Unknown}
}

// next is a text that is not in use yet.
func (w *recordingClient) next() string {
	w.said++
	return fmt.Sprintf("%s client %d says %d", w.conversation.key, w.number, w.said)
}

// append adds an entry, behind the seq after if that is at least 0.
func (w *recordingClient) append(ctx context.Context, after int64) {
	w.tryAppend(ctx, w.next(), after, "")
}

// appendWithKey adds an entry under a key, and asks again, also after an answer.
func (w *recordingClient) appendWithKey(ctx context.Context) {
	text := w.next()
	for range 1 + w.random.IntN(3) {
		w.tryAppend(ctx, text, -1, fmt.Sprintf("key-%d-%d", w.number, w.said))
	}
}

func (w *recordingClient) tryAppend(ctx context.Context, text string, after int64, key string) {
	o := w.begin(historytest.Append)
	o.Value, o.After, o.Keyed = text, after, key != ""
	body := map[string]any{"entries": []any{map[string]string{"role": "user", "content": text}}}
	if after >= 0 {
		body["expect_seq"] = after + 1
	}
	var header []string
	if key != "" {
		header = []string{"Idempotency-Key", key}
	}
	status, said := w.answered(ctx, http.MethodPost, w.path("/entries"), body, header...)
	switch {
	case status == http.StatusCreated:
		var stored struct{ Entries []continuo.Entry }
		if err := json.Unmarshal(said, &stored); err != nil || len(stored.Entries) != 1 {
			w.t.Errorf("an append is answered with %s: %v", said, err)
			return
		}
		o.Outcome, o.Seq = historytest.Done, stored.Entries[0].Seq
		w.length = o.Seq
	case after >= 0 && codeOf(said) == "conflict":
		o.Outcome = historytest.Refused
	case status >= http.StatusBadRequest && status < http.StatusInternalServerError:
		w.t.Errorf("an append is answered with %d %s", status, said)
	}
	w.conversation.history.Add(o)
}

// codeOf is the code of an error; "" of what is none.
func codeOf(said []byte) string {
	var failed struct{ Error struct{ Code string } }
	_ = json.Unmarshal(said, &failed) // what is no JSON is no error of the API
	return failed.Error.Code
}

// read reads the whole log, and reports whether an answer came.
func (w *recordingClient) read(ctx context.Context, k *killable) (entries []continuo.Entry, ok bool) {
	o := w.begin(historytest.Read)
	var page struct {
		Data    []continuo.Entry
		HasMore bool `json:"has_more"`
	}
	limit := callTime
	if w.calm.Load() {
		limit = patience
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	if status, err := k.get(ctx, w.path("/entries?limit=1000"), &page); err != nil || status != http.StatusOK {
		return nil, false
	}
	if page.HasMore {
		w.t.Errorf("%s is longer than a page: the test writes too much", w.conversation.key)
	}
	for i, e := range page.Data {
		if e.Seq != int64(i)+1 {
			w.t.Errorf("%s: entry %d has the seq %d", w.conversation.key, i+1, e.Seq)
		}
		if o.Log = append(o.Log, valueOf(e)); e.TurnID != "" {
			w.turn = e.TurnID
		}
		if e.Role == continuo.Assistant { // it has ended
			w.turn = ""
		}
	}
	w.length, o.Outcome = int64(len(page.Data)), historytest.Done
	w.conversation.history.Add(o)
	return page.Data, true
}

// valueOf is what tells an entry from all others: a client's words, or the id that the server gave it.
func valueOf(e continuo.Entry) string {
	if e.Role == continuo.User {
		return e.Content.String()
	}
	return e.ID
}

// chat begins a turn, and waits for its end unless the conversation is busy.
func (w *recordingClient) chat(ctx context.Context) {
	o := w.begin(historytest.Begin)
	o.Value = w.next()
	o.Turn = o.Value // the message tells turns apart
	status, said := w.answered(ctx, http.MethodPost, "/chat", map[string]any{"session_id": w.conversation.key, "message": o.Value, "on_busy": "reject"})
	switch {
	case status == http.StatusOK:
		o.Outcome = historytest.Done
	case codeOf(said) == "conversation_busy": // one that was cancelled is a conflict as well
		o.Outcome = historytest.Refused
	}
	w.conversation.history.Add(o)
}

// cancel stops the running turn, if one does.
func (w *recordingClient) cancel(ctx context.Context) {
	if _, ok := w.read(ctx, w.any()); !ok || w.turn == "" {
		return
	}
	o := w.begin(historytest.Signal)
	o.Turn = w.turn
	if status, _ := w.answered(ctx, http.MethodPost, w.path("/turns/"+w.turn+"/cancel"), nil); status == http.StatusAccepted {
		o.Outcome = historytest.Done
		w.conversation.history.Add(o)
	}
}

// complete adds what turns did to a history, as the final log shows it, and names turns by their messages.
func complete(history []historytest.Operation, final []continuo.Entry) []historytest.Operation {
	messages, last := map[string]string{}, map[string]int{}
	for i, e := range final {
		if e.TurnID != "" {
			last[e.TurnID] = i
		}
		if e.TurnID != "" && e.Role == continuo.User {
			messages[e.TurnID] = valueOf(e)
		}
	}
	called := map[string]time.Duration{}
	for i := range history {
		if o := &history[i]; o.Kind == historytest.Signal {
			o.Turn = messages[o.Turn]
		} else if o.Kind == historytest.Begin {
			called[o.Turn] = o.Called
		}
	}
	for i, e := range final {
		if e.TurnID == "" || e.Role == continuo.User {
			continue
		}
		o := historytest.Operation{
			Client: -1, Kind: historytest.AppendEntry, Value: e.ID, Turn: messages[e.TurnID], Last: last[e.TurnID] == i,
			Outcome: historytest.Done, Called: called[messages[e.TurnID]],
		}
		o.Answered, _ = historytest.FirstRead(history, o)
		history = append(history, o)
	}
	return history
}

package gateway_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/auth"
	"github.com/continuo-log/continuo/engine"
	"github.com/continuo-log/continuo/engine/ledger"
	"github.com/continuo-log/continuo/gateway"
	"github.com/continuo-log/continuo/model/openai"
	"github.com/continuo-log/continuo/store/storetest"
)

// A budget that is used up is refused in the form of each protocol, and the upstream is not asked.
func TestBudgetsInEachProtocol(t *testing.T) {
	u, store := newUpstream(t), storetest.NewMemory()
	log := continuo.NewLog(store, continuo.LogOptions{})
	e, err := engine.New(log, engine.Options{
		Models:  map[string]engine.Upstream{"gpt": {Model: openai.New(openai.Options{BaseURL: u.URL + "/v1", Name: "gpt-4o"})}},
		Default: "gpt", Budgets: ledger.BudgetOptions{Project: auth.Budget{Tokens: 100, Period: auth.PeriodDay}},
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(gateway.New(e, log, store, gateway.Options{}).Handler(continuo.Scope{ProjectID: continuo.DefaultProject}))
	t.Cleanup(func() {
		server.Close()
		_ = e.Close(context.Background())
	})
	spent := continuo.Spending{ProjectID: continuo.DefaultProject, Day: "2999-01-01", Spent: continuo.Spent{InputTokens: 100}} // a day that has not ended
	if err := log.Charge(t.Context(), spent); err != nil {
		t.Fatal(err)
	}
	for path, test := range map[string]struct{ body, has string }{
		"/v1/chat/completions":               {`{"model": "gpt", "messages": [{"role": "user", "content": "hi"}]}`, `"code":"insufficient_quota"`},
		"/v1/responses":                      {`{"model": "gpt", "input": "hi"}`, `"code":"insufficient_quota"`},
		"/v1/messages":                       {`{"model": "gpt", "max_tokens": 9, "messages": [{"role": "user", "content": "hi"}]}`, `"type":"rate_limit_error"`},
		"/v1beta/models/gpt:generateContent": {`{"contents": [{"role": "user", "parts": [{"text": "hi"}]}]}`, `"status":"RESOURCE_EXHAUSTED"`},
		"/v1/chat/completions?stream":        {`{"model": "gpt", "stream": true, "messages": [{"role": "user", "content": "hi"}]}`, `"code":"insufficient_quota"`},
		"/v1/embeddings":                     {`{"model": "gpt", "input": "hi"}`, `"code":"insufficient_quota"`},
	} {
		response, err := http.Post(server.URL+path, "application/json", strings.NewReader(test.body))
		if err != nil {
			t.Fatal(err)
		}
		text, _ := io.ReadAll(response.Body)
		_ = response.Body.Close()
		got := strings.ReplaceAll(string(text), `": "`, `":"`)
		if response.StatusCode != 429 || !strings.Contains(got, test.has) || !strings.Contains(got, "the budget of project default is used up: 100 of 100 tokens this day") {
			t.Errorf("%s: %d %s", path, response.StatusCode, got)
		}
		if response.Header.Get("Retry-After") == "" {
			t.Errorf("%s: no Retry-After", path)
		}
	}
	unrecorded := httptest.NewServer(gateway.New(e, log, store, gateway.Options{Record: gateway.RecordOff}).Handler(continuo.Scope{ProjectID: continuo.DefaultProject}))
	t.Cleanup(unrecorded.Close)
	response, err := http.Post(unrecorded.URL+"/v1/chat/completions", "application/json", strings.NewReader(`{"model": "gpt", "messages": [{"role": "user", "content": "hi"}]}`))
	if err != nil {
		t.Fatal(err)
	}
	_ = response.Body.Close()
	if response.StatusCode != http.StatusTooManyRequests {
		t.Errorf("a request that is not recorded: %s", response.Status)
	}
	if len(u.requests) > 0 {
		t.Errorf("the upstream was asked: %+v", <-u.requests)
	}
}

// A request is charged, also where no log has it. What its upstream does not report is estimated: clients of chat completions get
// no usage in a stream that they do not ask for it, and budgets bound them, too.
func TestRequestsWithoutUsageAreCharged(t *testing.T) {
	const body = `{"model":"gpt","stream":true,"messages":[{"role":"user","content":"hi"}]}`
	for _, record := range []gateway.Record{gateway.RecordAll, gateway.RecordOff} {
		store := storetest.NewMemory()
		g := newGatewayWith(t, newUpstream(t, stream(chatStream)), store, gateway.Options{Record: record})
		if response, answer := g.post(t, "/v1/chat/completions", body); response.StatusCode != http.StatusOK {
			t.Fatal(answer)
		}
		want := continuo.Spent{Requests: 1, InputTokens: int64(len(strings.Replace(body, "gpt", "gpt-4o-2024", 1)) / 4), OutputTokens: int64(len("Grüß Gott") / 4)}
		spent, err := continuo.NewLog(store, continuo.LogOptions{}).Spent(t.Context(), continuo.SpendingQuery{ProjectID: continuo.DefaultProject})
		if err != nil || len(spent) != 1 || spent[0].Spent != want {
			t.Errorf("record %s: spent %+v, %v; want %+v", record, spent, err, want)
		}
	}
}

// A request that its upstream refused costs nothing.
func TestRefusedRequestsAreFree(t *testing.T) {
	refuse := func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusBadRequest)
		_, _ = io.WriteString(w, `{"error":{"message":"no"}}`)
	}
	for _, record := range []gateway.Record{gateway.RecordAll, gateway.RecordOff} {
		store := storetest.NewMemory()
		g := newGatewayWith(t, newUpstream(t, refuse), store, gateway.Options{Record: record})
		if response, answer := g.post(t, "/v1/chat/completions", `{"model":"gpt","messages":[{"role":"user","content":"hi"}]}`); response.StatusCode != http.StatusBadRequest {
			t.Fatal(answer)
		}
		spent, err := continuo.NewLog(store, continuo.LogOptions{}).Spent(t.Context(), continuo.SpendingQuery{ProjectID: continuo.DefaultProject})
		if err != nil || len(spent) != 1 || spent[0].Requests != 1 || spent[0].Tokens() != 0 {
			t.Errorf("record %s: spent %+v, %v", record, spent, err)
		}
	}
}

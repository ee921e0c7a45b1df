package server

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"

	"github.com/continuo-log/continuo/engine"
)

// held is how much of a budget is used.
func (b *budget) held() int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.used
}

// TestBodiesShareABudget: while one request holds it, another one is refused with a time to retry; the memory is
// released afterwards.
func TestBodiesShareABudget(t *testing.T) {
	handler := New(newEngine(t, engine.Options{}), Options{MemoryBudget: 10 * bodyCost << 10}).(*server)
	server := httptest.NewServer(handler)
	defer server.Close()
	post := func(body io.Reader) *http.Response {
		response, err := server.Client().Post(server.URL+"/chat", "application/json", body)
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		_, _ = io.Copy(io.Discard, response.Body)
		return response
	}
	message := func(bytes int) *strings.Reader {
		return strings.NewReader(fmt.Sprintf(`{"message": %q}`, strings.Repeat("a", bytes)))
	}
	begun, rest := io.Pipe() // of unknown length: it draws as it arrives
	first := make(chan int, 1)
	go func() { first <- post(begun).StatusCode }()
	if _, err := io.WriteString(rest, `{"message": "`+strings.Repeat("a", 6<<10)); err != nil {
		t.Fatal(err)
	}
	for handler.budget.held() < 6<<10*bodyCost { // until the server has read it: the next request must not come before it
		if len(first) > 0 {
			t.Fatalf("the first one: status %d", <-first)
		}
		runtime.Gosched()
	}
	refused := post(message(8 << 10))
	if refused.StatusCode != http.StatusServiceUnavailable || refused.Header.Get("Retry-After") != "1" {
		t.Errorf("status %d, Retry-After %q", refused.StatusCode, refused.Header.Get("Retry-After"))
	}
	if status := post(message(100)).StatusCode; status != http.StatusOK {
		t.Errorf("a small request beside it: status %d", status)
	}
	if _, err := io.WriteString(rest, `"}`); err != nil {
		t.Fatal(err)
	}
	_ = rest.Close()
	if status := <-first; status != http.StatusOK {
		t.Errorf("the first one: status %d", status)
	}
	for _, size := range []int{8 << 10, 12 << 10} { // the second alone is more than the whole budget
		if status := post(message(size)).StatusCode; status != http.StatusOK {
			t.Errorf("afterwards, %d bytes: status %d", size, status)
		}
	}
}

// TestAnswersShareTheBudget: a request for large entries while others hold the budget is refused with a time to retry;
// the memory is released afterwards.
func TestAnswersShareTheBudget(t *testing.T) {
	handler := New(newEngine(t, engine.Options{}), Options{MemoryBudget: 128 << 20}).(*server)
	ask := func(method, path, body string) (answer *httptest.ResponseRecorder, broken bool) {
		answer = httptest.NewRecorder()
		defer func() {
			if cause := recover(); cause != nil {
				broken = cause == http.ErrAbortHandler
			}
		}()
		request := httptest.NewRequestWithContext(t.Context(), method, path, strings.NewReader(body))
		request.Host = "localhost"
		handler.ServeHTTP(answer, request)
		return answer, false
	}
	message := func(text string) string { return fmt.Sprintf(`{"session_id": "s", "message": %q}`, text) }
	if answer, _ := ask("POST", "/chat", message("hello")); answer.Code != http.StatusOK {
		t.Fatal(answer.Code, answer.Body)
	}
	chatted, _ := ask("POST", "/chat", message(strings.Repeat("a large message ", 200_000)))
	var chat struct {
		SessionID string `json:"session_id"`
		TurnID    string `json:"turn_id"`
	}
	if err := json.Unmarshal(chatted.Body.Bytes(), &chat); err != nil {
		t.Fatal(chatted.Code, err)
	}
	const one = "/api/conversations/s"
	for path, status := range map[string]int{
		one + "/entries?from=3":                   http.StatusServiceUnavailable,
		one + "/entries?limit=3":                  http.StatusOK, // the large entry comes third, and breaks the list off
		one + "/entries?limit=2":                  http.StatusOK,
		one + "/transcript":                       http.StatusServiceUnavailable,
		one + "/context":                          http.StatusServiceUnavailable,
		one + "/entries/4/request":                http.StatusServiceUnavailable,
		one + "/turns/" + chat.TurnID + "/events": http.StatusServiceUnavailable,
		one: http.StatusOK,
	} {
		t.Run(path, func(t *testing.T) {
			other := &reservation{budget: &handler.budget}
			if err := other.grow(17 << 20); err != nil {
				t.Fatal(err)
			}
			answer, broken := ask("GET", path, "")
			refused := status == http.StatusServiceUnavailable
			if text := answer.Body.String(); answer.Code != status || refused != strings.Contains(text, `"memory_budget"`) {
				t.Errorf("while others hold the budget: %d %.300s", answer.Code, text)
			}
			if again := answer.Header().Get("Retry-After"); refused && again != "1" {
				t.Errorf("Retry-After %q", again)
			}
			if want := strings.HasSuffix(path, "limit=3"); broken != want {
				t.Errorf("the answer broke off: %v, want %v", broken, want)
			}
			other.release()
			if answer, broken := ask("GET", path, ""); answer.Code != http.StatusOK || broken {
				t.Errorf("afterwards: %d %.300s", answer.Code, answer.Body)
			}
			if handler.budget.used != 0 {
				t.Errorf("%d bytes are still held", handler.budget.used)
			}
		})
	}
}

// TestReservations: released memory can be reserved by others, and work that outlives its request reserves none.
func TestReservations(t *testing.T) {
	b := &budget{size: 100 * entryCost}
	first, second := &reservation{budget: b}, &reservation{budget: b}
	step := func(what string, err error, refused bool, used int64) {
		t.Helper()
		if (err != nil) != refused || b.used != used*entryCost {
			t.Errorf("%s: %v, %d bytes are held, want %d", what, err, b.used/entryCost, used)
		}
	}
	step("60 for the first", first.Take(60), false, 60)
	step("60 for the second", second.Take(60), true, 60)
	step("40 for the second", second.Take(40), false, 100)
	step("one more", second.Take(1), true, 100)
	step("back", first.Take(-30), false, 70)
	step("30 for the second", second.Take(30), false, 100)
	step("more than all there is", second.Take(1000), true, 100)
	first.release()
	step("released", nil, false, 70)
	step("more than all there is, alone", second.Take(1000), false, 100)
	step("half of that back", second.Take(-500), false, 100)
	step("all but 10 back", second.Take(-560), false, 10)
	step("after the request", first.Take(1000), false, 10)
	first.release()
	second.release()
	step("all released", nil, false, 0)
}

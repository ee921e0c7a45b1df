package server

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/continuo-log/continuo/engine"
)

// TestBodiesShareABudget: while one request holds it, another one is refused and told when to come again; what was
// held is given back.
func TestBodiesShareABudget(t *testing.T) {
	server := httptest.NewServer(New(newEngine(t, engine.Options{}), Options{MemoryBudget: 10 * bodyCost << 10}))
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
	if _, err := io.WriteString(rest, "a"); err != nil { // what came before has been read
		t.Fatal(err)
	}
	for {
		if response := post(message(8 << 10)); response.StatusCode == http.StatusServiceUnavailable {
			if response.Header.Get("Retry-After") != "1" {
				t.Errorf("Retry-After %q", response.Header.Get("Retry-After"))
			}
			break
		} else if response.StatusCode != http.StatusOK {
			t.Fatalf("status %d", response.StatusCode)
		} // the server has not read the first one's beginning yet
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

package telegramtest

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/iotest"
)

// A call that breaks off is none of the client's mistakes.
func TestWhatIsAProblemOfTheClient(t *testing.T) {
	for name, test := range map[string]struct {
		body     io.Reader
		problems int
	}{
		"an unknown parameter":          {strings.NewReader(`{"chat_id":5,"spoiler":true}`), 1},
		"no JSON":                       {strings.NewReader(`{"chat_id":`), 1},
		"a connection that breaks":      {io.MultiReader(strings.NewReader(`{"chat_id":`), iotest.ErrReader(io.ErrUnexpectedEOF)), 0},
		"another error of a connection": {iotest.ErrReader(errors.New("connection reset")), 0},
	} {
		t.Run(name, func(t *testing.T) {
			s := New()
			token := s.AddBot(1, "bot")
			call := httptest.NewRequest(http.MethodPost, "/bot"+token+"/sendMessage", test.body)
			call.Header.Set("Content-Type", "application/json")
			response := httptest.NewRecorder()
			s.ServeHTTP(response, call)
			if response.Code != http.StatusBadRequest || len(s.Problems()) != test.problems {
				t.Errorf("status %d, problems %q", response.Code, s.Problems())
			}
		})
	}
}

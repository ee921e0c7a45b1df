package textserver_test

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/continuo-log/continuo/model/internal/textserver"
)

type refusing int

func (s refusing) RoundTrip(*http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: int(s), Body: io.NopCloser(strings.NewReader("no such account"))}, nil
}

// TestARefusedKeyIsNamed: the error says where the key comes from, and never has the key.
func TestARefusedKeyIsNamed(t *testing.T) {
	const note = "the key in SOME_KEY was sent"
	for status, want := range map[int]string{
		401: `status 401: "no such account" (` + note + `)`,
		403: `status 403: "no such account" (` + note + `)`,
		404: `status 404: "no such account"`,
	} {
		client := textserver.New[string](textserver.Options{URL: "http://server/v1", Key: "secret", KeyNote: note, HTTP: &http.Client{Transport: refusing(status)}})
		if _, err := client.Post(t.Context(), "text", nil); err == nil || err.Error() != want {
			t.Errorf("%d: %v, want %s", status, err, want)
		}
	}
}

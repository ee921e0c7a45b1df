package main

import (
	"bytes"
	"encoding/json"
	"io"
	"strings"
	"testing"
	"testing/iotest"
	"time"
)

// readMCP gives a pipe what comes in, and returns what the SDK gets of it and what the client is answered at once.
func readMCP(t *testing.T, in io.Reader, longest int) (passed, answered string) {
	t.Helper()
	var out bytes.Buffer
	got, err := io.ReadAll(newMCPPipe(in, &out, longest, time.Nanosecond))
	if err != nil {
		t.Fatal(err)
	}
	return string(got), out.String()
}

// A line that is no message is answered and kept from the SDK, which would end the session; what comes behind it passes.
func TestInvalidMessagesAreAnswered(t *testing.T) {
	const ping = `{"jsonrpc":"2.0","id":7,"method":"ping"}`
	for line, want := range map[string]string{
		`hello`:                                 `-32700 null`,
		`{"jsonrpc":"2.0"`:                      `-32700 null`,
		ping + ping:                             `-32700 null`,
		`{"jsonrpc":"2.0"}`:                     `-32600 null`,
		`[]`:                                    `-32600 null`,
		`[` + ping + `]`:                        `-32600 null`,
		`null`:                                  `-32600 null`,
		`5`:                                     `-32600 null`,
		`"x"`:                                   `-32600 null`,
		`{}`:                                    `-32600 null`,
		`{"jsonrpc":"1.0","id":4,"method":"x"}`: `-32600 4`,
		`{"id":"four","method":"ping"}`:         `-32600 "four"`,
		`{"jsonrpc":"2.0","id":true,"method":"x"}`: `-32600 null`,
		`{"jsonrpc":"2.0","id":{},"method":"x"}`:   `-32600 null`,
		`{"jsonrpc":"2.0","id":5,"method":5}`:      `-32600 5`,
		`{"x":"` + strings.Repeat("y", 300) + `"}`: `-32600 null`,
		strings.Repeat(" ", 300):                   `-32600 null`,
		"\xff\xfe":                                 `-32700 null`,
	} {
		for _, end := range []string{"\n", "\r\n"} {
			in := strings.NewReader(line + end + "\n" + ping + end + ping)
			passed, answered := readMCP(t, iotest.OneByteReader(in), 200)
			if passed != ping+"\n"+ping+"\n" {
				t.Errorf("behind %s comes %q", line, passed)
			}
			var answer struct {
				Version string `json:"jsonrpc"`
				ID      json.RawMessage
				Error   struct {
					Code    json.Number
					Message string
				}
			}
			err := json.Unmarshal([]byte(answered), &answer)
			if got := answer.Error.Code.String() + " " + string(answer.ID); err != nil || got != want || answer.Version != "2.0" || answer.Error.Message == "" || strings.Count(answered, "\n") != 1 {
				t.Errorf("%s is answered %q, want %s", line, answered, want)
			}
		}
	}
}

// Messages pass as they are, however they come.
func TestMessagesPassThePipe(t *testing.T) {
	for _, line := range []string{
		`{"jsonrpc":"2.0","method":"notifications/initialized"}`,
		`{"jsonrpc":"2.0","id":"a","method":"tools/call","params":{"x":[1,{"y":"\u2028\n"}]}}`,
		`{"jsonrpc":"2.0","id":3,"result":{}}`,
		`{"jsonrpc":"2.0","id":3,"error":{"code":-1,"message":"no"}}`,
		`{"jsonrpc":"2.0","method":"x","params":{"y":"` + strings.Repeat("é", 20_000) + `"}}`,
	} {
		passed, answered := readMCP(t, iotest.HalfReader(strings.NewReader(line+"\n")), len(line))
		if passed != line+"\n" || answered != "" {
			t.Errorf("%.80s comes as %.80q, and is answered %q", line, passed, answered)
		}
	}
}

package e2e

import (
	"fmt"
	"net/http"
	"net/url"
	"os/exec"
	"strings"
	"time"
)

// ackStatement ends with a full stop, so that no kill's statement is the beginning of another's.
func ackStatement(s *ackFixture) string { return "Tea belongs to " + s.key + "." }

func ackFact(s *ackFixture) any { return map[string]any{"text": ackStatement(s)} }

func ackCorrection(s *ackFixture) any {
	return map[string]any{"text": "Tea and coffee to " + s.key + "."}
}

func ackKey(s *ackFixture) any { return map[string]any{"name": s.key} }

// fact has the memory know something, and shows that it does.
func (s *ackFixture) fact() {
	s.t.Helper()
	s.names["fact"] = fmt.Sprint(s.call(http.MethodPost, "/api/memory", ackFact(s))["id"])
	s.knows(ackStatement(s), 1)
}

// exported keeps an export of a memory that then forgets all.
func (s *ackFixture) exported() {
	s.t.Helper()
	s.fact()
	s.export = s.call(http.MethodGet, "/api/memory/export", nil)
	s.call(http.MethodDelete, "/api/memory", nil)
	s.knows(ackStatement(s), 0)
}

// repeated has the user repeat an instruction in two conversations.
func (s *ackFixture) repeated() {
	s.t.Helper()
	for c := range 2 {
		var messages []any
		for n := range 2 {
			messages = append(messages, userMessage(fmt.Sprintf("Always answer in metric units to %s. This is number %d%d.", s.key, c, n)))
		}
		s.call(http.MethodPost, "/api/conversations/import", map[string]any{"key": fmt.Sprint(s.key, "-", c), "messages": messages})
	}
}

// knows checks how many facts of the memory have a text, those included that others supersede.
func (s *ackFixture) knows(text string, count int) {
	s.t.Helper()
	export := s.call(http.MethodGet, "/api/memory/export", nil)
	facts, _ := export["facts"].([]any)
	found := 0
	for _, fact := range facts {
		if strings.Contains(fmt.Sprint(fact), text) {
			found++
		}
	}
	if found != count || count == 0 && strings.Contains(fmt.Sprint(export), text) {
		s.t.Errorf("%d facts have %q, want %d: %v", found, text, count, export)
	}
}

// keyed has the server need keys from its first one on, and sends that one.
func (s *ackFixture) keyed() {
	s.t.Helper()
	if s.apiKey == "" {
		command := exec.CommandContext(s.t.Context(), s.k.command.Path, "keys", "create")
		command.Dir, command.Env = s.k.command.Dir, s.k.command.Env
		shown, err := command.Output()
		if err != nil {
			s.t.Fatal(err)
		}
		s.apiKey = strings.TrimSpace(string(shown))
	}
	s.header = []string{"X-Continuo-Key", s.apiKey}
}

// keyMade has the caller make a second key.
func (s *ackFixture) keyMade() {
	s.t.Helper()
	s.keyed()
	made := s.call(http.MethodPost, "/api/keys", ackKey(s))
	key, _ := made["key"].(map[string]any)
	s.names["key"], s.names["secret"] = text(key, "id"), text(made, "api_key")
}

// keyIsRevoked checks that there is one key of this kill, and whether it was revoked.
func (s *ackFixture) keyIsRevoked(want bool) {
	s.t.Helper()
	listed := s.call(http.MethodGet, "/api/keys", nil)
	keys, _ := listed["data"].([]any)
	found := 0
	for _, key := range keys {
		if key, _ := key.(map[string]any); key["name"] == s.key && (key["revoked_at"] != nil) == want {
			found++
		}
	}
	if found != 1 {
		s.t.Errorf("%d keys are named %s with revoked %t: %v", found, s.key, want, listed)
	}
}

// sessionOpened opens a session and has the next requests send its cookie, as a browser does from the server's page.
func (s *ackFixture) sessionOpened() {
	s.t.Helper()
	s.keyed()
	response, err := s.k.do(s.t.Context(), http.MethodPost, "/api/session", map[string]any{"key": s.apiKey})
	if err != nil {
		s.t.Fatal(err)
	}
	_ = response.Body.Close()
	s.opened = response.Cookies()
	s.sessionIsOpen(s.opened, true)
}

// sendCookie sends the cookie of a session from now on, and no key. Its name has the port of the server, which the next
// program does not have.
func (s *ackFixture) sendCookie(cookies []*http.Cookie) {
	s.t.Helper()
	if len(cookies) != 1 || cookies[0].Value == "" || time.Until(cookies[0].Expires) <= 0 {
		s.t.Fatalf("the cookies of a session are %v", cookies)
	}
	address, err := url.Parse(s.k.url)
	if err != nil {
		s.t.Fatal(err)
	}
	s.header = []string{"Origin", s.k.url, "Cookie", "continuo_session_" + address.Port() + "=" + cookies[0].Value}
}

// sessionIsOpen checks whether a cookie still has the rights of its key.
func (s *ackFixture) sessionIsOpen(cookies []*http.Cookie, want bool) {
	s.t.Helper()
	s.sendCookie(cookies)
	if caller := s.call(http.MethodGet, "/api/session", nil); caller["keys"] != true || caller["authenticated"] != want {
		s.t.Errorf("the session is shown as %v, want it open: %t", caller, want)
	}
}

package server

import (
	"slices"
	"strings"

	"github.com/continuo-log/continuo/internal/rawjson"
)

// crewKey is the Idempotency-Key that the victim spoke to its crew with.
const crewKey = "crew-once"

// crews has the victim speak to a crew in two sessions, one of which is the crew's own; each rests then.
func (v *victim) crews() {
	v.t.Helper()
	for _, session := range []string{"", "crews-" + mark} {
		answer := v.askAsOwner("POST", "/api/crews/pair/messages", crewBody(session, "my secret is "+mark), "Idempotency-Key", crewKey, "Accept", "text/event-stream")
		v.crew = endOf(v.t, crewFrames(v.t, answer.body))
	}
}

func crewBody(session, message string) string {
	return string(rawjson.MustMarshal(map[string]string{"session_id": session, "message": message}))
}

// hidesCrew makes the row of a call about a session: another's is not found, by its id, its key, or as the crew's own.
func hidesCrew(method, call string) func(*victim) {
	return func(v *victim) {
		v.t.Helper()
		target, body := "/api/crews/pair"+call, `{"session_id": "ID"}`
		if method == "GET" {
			body, target = "", target+"?session_id=ID"
			if call != "/status" && call != "/events" {
				target += "&role=one"
			}
		}
		v.hidden(method, target, body, v.crew.ConversationID, noConversation)
		v.hidden(method, target, body, "crews-"+mark, "crews-nobody")
		own := strings.NewReplacer("?session_id=ID&", "?", "?session_id=ID", "").Replace(target)
		v.askAsOther(method, own, "").failed(404, "not_found", "session_id")
	}
}

// speaksToCrews: another's conversation is not found, another's key is free, and another's Idempotency-Key has said
// nothing.
func (v *victim) sendsToCrews() {
	v.t.Helper()
	v.hidden("POST", "/api/crews/pair/messages", crewBody("ID", "hello"), v.crew.ConversationID, noConversation)
	theirs := append([]string{v.crew.ConversationID}, v.conversations...)
	answer := v.askAsOther("POST", "/api/crews/pair/messages", crewBody("crews-"+mark, "hello"), "Idempotency-Key", crewKey, "Accept", "text/event-stream")
	began := endOf(v.t, crewFrames(v.t, answer.body))
	if began.ProjectID != "thief" || began.RunID == v.crew.RunID || began.FirstSeq != 1 || slices.Contains(theirs, began.ConversationID) {
		v.t.Errorf("another's names began %+v", began)
	}
	ran := v.askAsOther("GET", "/api/crews/pair/context?role=one&session_id=crews-"+mark, "")
	if ran.status != 200 || strings.Contains(string(ran.body), "my secret") {
		v.t.Errorf("the thief's role sees %s", ran.body)
	}
	v.askAsOther("DELETE", "/api/conversations/"+began.ConversationID, "") // the rows behind find nothing of that key
}

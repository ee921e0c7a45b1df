package server

import (
	"net/http"
	"strings"
)

// remembers gives the victim a memory, and one to its project.
func (v *victim) remembers() {
	v.t.Helper()
	for _, target := range []string{"/api/memory", "/api/memory?project=true", "/api/memory?user_id=ada"} {
		v.askAsOwner("POST", target, `{"text": "the secret word is `+mark+`"}`).into(http.StatusCreated, &struct{}{})
	}
}

// hidesFact makes the row of a call about a fact, which is never found: in the memory of the caller, of another user and,
// where the caller has another project, of the project.
func hidesFact(method, call, body string) func(*victim) {
	return func(v *victim) {
		v.t.Helper()
		v.askAsOther(method, "/api/memory/1"+call, body).failed(http.StatusNotFound, "not_found", "")
		v.hidesOthers(method, "/api/memory/1"+call, body, http.StatusNotFound)
		v.stillKnows()
	}
}

// hidesMemory makes the row of a call about a whole memory.
func hidesMemory(method, call, body string) func(*victim) {
	return func(v *victim) {
		v.t.Helper()
		v.askAsOther(method, "/api/memory"+call, body)
		v.hidesOthers(method, "/api/memory"+call, body, 0)
		v.stillKnows()
	}
}

// hidesOthers names memories that are not the thief's. Of its own project, a user may read the project's memory and may
// not name another user; in another project, the same names are of other memories.
func (v *victim) hidesOthers(method, target, body string, status int) {
	v.t.Helper()
	if v.sharesProject {
		v.askAsOther(method, target+"?user_id=ada", body).failed(http.StatusForbidden, "other_user", "user_id")
		if method != "GET" {
			v.askAsOther(method, target+"?project=true", body).failed(http.StatusForbidden, "other_user", "")
		}
		return
	}
	for _, owner := range []string{"?user_id=ada", "?project=true"} {
		if answer := v.askAsOther(method, target+owner, body); status != 0 && answer.status != status {
			v.t.Errorf("%s %s%s: %d %s", method, target, owner, answer.status, answer.body)
		}
	}
}

// stillKnows checks that nothing of the victim's memory is gone.
func (v *victim) stillKnows() {
	v.t.Helper()
	for _, owner := range []string{"", "?project=true", "?user_id=ada"} {
		if answer := v.askAsOwner("GET", "/api/memory"+owner, ""); strings.Count(string(answer.body), "the secret word is") < 1 {
			v.t.Errorf("the victim's memory %s has changed: %s", owner, answer.body)
		}
	}
}

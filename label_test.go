package continuo

import (
	"encoding/json"
	"errors"
	"maps"
	"strings"
	"testing"
)

func TestLabelsAreScalarsAsText(t *testing.T) {
	long := strings.Repeat("x", MaxLabelBytes)
	for metadata, want := range map[string]map[string]string{
		``:                                      nil,
		`{}`:                                    nil,
		`[1]`:                                   nil,
		`{"a":"b","n":1.50,"t":true,"f":false}`: {"a": "b", "n": "1.50", "t": "true", "f": "false"},
		`{"o":{},"l":[1],"z":null,"":""}`:       {"": ""},
		`{"a":1,"a":2}`:                         {"a": "2"},
		`{"a":"` + long + `"}`:                  {"a": long},
		`{"a":"` + long + `x","b":"\u0000"}`:    nil,
	} {
		if got := LabelsOf(json.RawMessage(metadata)); !maps.Equal(got, want) {
			t.Errorf("%.60s: %v, want %v", metadata, got, want)
		}
	}
}

func TestUserIDsAreBounded(t *testing.T) {
	for _, good := range []string{"", "ada", "ada@example.com", "auth0|42 / Ада", strings.Repeat("x", MaxUserIDBytes)} {
		if err := CheckUserID(good); err != nil {
			t.Errorf("%q: %v", good, err)
		}
	}
	for _, bad := range []string{"a\nb", "\x00", "\u0085", "\xff", strings.Repeat("x", MaxUserIDBytes+1)} {
		if err := CheckUserID(bad); !errors.Is(err, ErrInvalid) {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

func TestAScopeIsAProjectOrAUsersPartOfIt(t *testing.T) {
	adas, bobs, nobodys := Conversation{ProjectID: "p", UserID: "ada"}, Conversation{ProjectID: "p", UserID: "bob"}, Conversation{ProjectID: "p"}
	for scope, want := range map[Scope][3]bool{
		{ProjectID: "p"}:                 {true, true, true},
		{ProjectID: "p", UserID: "ada"}:  {true, false, false},
		{ProjectID: "p", UserID: "none"}: {},
		{ProjectID: "q", UserID: "ada"}:  {},
		{ProjectID: "q"}:                 {},
	} {
		if got := [3]bool{scope.Has(adas), scope.Has(bobs), scope.Has(nobodys)}; got != want {
			t.Errorf("%+v has %v, want %v", scope, got, want)
		}
	}
}

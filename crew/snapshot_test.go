package crew_test

import (
	"encoding/json"
	"errors"
	"testing"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/crew"
)

func TestSnapshotEncoding(t *testing.T) {
	team := &crew.Crew{ID: "team", Roles: []crew.Role{{Name: "a"}, {Name: "b"}}}
	before := &crew.Snapshot{Next: "b", Since: 3, Roles: []crew.RoleState{{Name: "b", Cursor: 5, Answers: 2, Session: "<s>", Notes: 4}}}
	first := team.Begin("run_1", continuo.Text("Go."), nil, before)
	const want = `{"next":"b","roles":[{"name":"a","cursor":0,"answers":0},{"name":"b","cursor":5,"answers":2,"session":"<s>","notes":4}],"since":3}`
	if string(first.RunEvent.Crew) != want {
		t.Errorf("recorded %s\nwant %s", first.RunEvent.Crew, want)
	}
	read, err := crew.ReadSnapshot(first.RunEvent)
	if err != nil || *read.Role("b") != before.Roles[0] || read.Since != 3 {
		t.Errorf("read %+v, %v", read, err)
	}
}

func TestUnreadableSnapshot(t *testing.T) {
	team := &crew.Crew{ID: "team", Roles: []crew.Role{{Name: "a"}}}
	first := team.Begin("run_1", continuo.Text("Go."), nil, nil)
	first.Seq, first.RunEvent.Crew = 1, json.RawMessage(`{"roles":1}`)
	if err := crew.NewState(team, "run_1").Apply(&first); !errors.Is(err, continuo.ErrInvalid) {
		t.Errorf("applied with %v, want ErrInvalid", err)
	}
	if read, err := crew.ReadSnapshot(nil); read != nil || err != nil {
		t.Errorf("no event: %+v, %v", read, err)
	}
}

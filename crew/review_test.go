package crew_test

import (
	"strings"
	"testing"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/crew"
)

// The moderator's end of a cycle does not stand where a person speaks before it is recorded.
func TestAPersonsWordTakesTheModeratorsEndBack(t *testing.T) {
	b := newTable(t)
	c, err := crew.Parse("pair.yaml", []byte(strings.Replace(pair, "display_name: B,", "display_name: B, is_moderator: true,", 1)), crew.Known{Any: true})
	if err != nil {
		t.Fatal(err)
	}
	b.crew = c
	b.begin("r1")
	b.turn("One.")
	b.turn(".....")
	if step := b.state.Next(); step.Kind != crew.StepRecord {
		t.Fatalf("when the moderator has nothing to add, next is %+v", step)
	}
	b.put(b.state.Says(continuo.Text("Wait."), nil))
	if step := b.state.Next(); step.Kind != crew.StepBegin || step.Role.Name != "a" {
		t.Errorf("a person has spoken, and next is %+v", step)
	}
}

package historytest

import (
	"testing"
	"time"
)

// at gives operations their times: each begins when the one before it has ended, unless it says otherwise.
func at(operations ...Operation) []Operation {
	for i := range operations {
		o := &operations[i]
		if o.After == 0 && o.Kind == Append {
			o.After = -1
		}
		if o.Called == 0 {
			o.Called = time.Duration(2*i + 1)
		}
		if o.Answered == 0 {
			o.Answered = time.Duration(2*i + 2)
		}
		if o.Outcome == "" {
			o.Outcome = Done
		}
	}
	return operations
}

// The checker accepts what the rules allow, and nothing else.
func TestVerify(t *testing.T) {
	one := Operation{Kind: Append, Value: "one", Seq: 1}
	unknown := Operation{Kind: Append, Value: "two", Outcome: Unknown}
	begin := Operation{Kind: Begin, Value: "go", Turn: "t1"}
	end := Operation{Kind: AppendEntry, Value: "gone", Turn: "t1", Last: true}
	owned := Operation{Kind: Begin, Value: "go", Turn: "t1", Owner: "a"}
	take := Operation{Kind: Take, Turn: "t1", Owner: "b"}
	for name, test := range map[string]struct {
		history []Operation
		ok      bool
	}{
		"append and read":            {at(one, Operation{Kind: Read, Log: []string{"one"}}), true},
		"a read that misses":         {at(one, Operation{Kind: Read}), false},
		"a read at once may miss":    {at(one, Operation{Kind: Read, Called: 1}), true},
		"a gap":                      {at(one, Operation{Kind: Append, Value: "two", Seq: 3}), false},
		"twice":                      {at(one, one), false},
		"twice with its key":         {at(one, Operation{Kind: Append, Value: "one", Seq: 1, Keyed: true}), true},
		"another seq for its key":    {at(one, Operation{Kind: Append, Value: "one", Seq: 2, Keyed: true}), false},
		"expected":                   {at(one, Operation{Kind: Append, Value: "two", After: 1, Seq: 2}), true},
		"not what was expected":      {at(one, Operation{Kind: Append, Value: "two", After: 2, Seq: 2}), false},
		"refused":                    {at(one, Operation{Kind: Append, Value: "two", After: 2, Outcome: Refused}), true},
		"refused without a reason":   {at(one, Operation{Kind: Append, Value: "two", After: 1, Outcome: Refused}), false},
		"unknown, seen":              {at(one, unknown, Operation{Kind: Read, Log: []string{"one", "two"}}), true},
		"unknown, later":             {at(one, unknown, Operation{Kind: Read, Log: []string{"one"}}, Operation{Kind: Read, Log: []string{"one", "two"}}), true},
		"unknown, never":             {at(one, unknown, Operation{Kind: Read, Log: []string{"one"}}), true},
		"unknown, taken back":        {at(one, unknown, Operation{Kind: Read, Log: []string{"one", "two"}}, Operation{Kind: Read, Log: []string{"one"}}), false},
		"a turn":                     {at(begin, end, Operation{Kind: Begin, Value: "again", Turn: "t2"}), true},
		"two turns at once":          {at(begin, Operation{Kind: Begin, Value: "again", Turn: "t2"}), false},
		"a turn goes on when over":   {at(begin, end, Operation{Kind: AppendEntry, Value: "more", Turn: "t1"}), false},
		"the owner says":             {at(owned, take, Operation{Kind: AppendEntry, Value: "mine", Turn: "t1", Owner: "b"}), true},
		"a former owner says":        {at(owned, take, Operation{Kind: AppendEntry, Value: "mine", Turn: "t1", Owner: "a"}), false},
		"a former owner is refused":  {at(owned, take, Operation{Kind: AppendEntry, Value: "mine", Turn: "t1", Owner: "a", Outcome: Refused}), true},
		"a signal":                   {at(begin, Operation{Kind: Signal, Turn: "t1"}), true},
		"a signal to a turn gone by": {at(begin, end, Operation{Kind: Signal, Turn: "t1"}), false},
	} {
		t.Run(name, func(t *testing.T) {
			if err := Verify(test.history); (err == nil) != test.ok {
				t.Errorf("the history is accepted: %v, want %v (%v)", err == nil, test.ok, err)
			}
		})
	}
}

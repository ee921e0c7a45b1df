package historytest

import (
	"slices"
	"strings"

	"github.com/anishathalye/porcupine"
)

// state is the model's state of a log. Strings make it comparable and cheap to share.
type state struct {
	log     string // each value ends with a line feed
	length  int64
	running string // the running turn
	owner   string // the process that runs it; "" if not recorded
}

// with is the state with one more entry.
func (s state) with(value string) state {
	s.log += value + "\n"
	s.length++
	return s
}

// seqOf is the seq of a value; 0 when it is not there.
func (s state) seqOf(value string) int64 {
	return int64(slices.Index(strings.Split(s.log, "\n"), value)) + 1
}

var model = porcupine.Model{
	Init: func() any { return state{} },
	Step: func(before, input, _ any) (bool, any) {
		ok, after := step(before.(state), input.(Operation)) //nolint:forcetypeassert // of this package
		return ok, after
	},
	DescribeOperation: func(input, _ any) string { return input.(Operation).String() }, //nolint:forcetypeassert // of this package
}

// step executes an operation, and reports whether its answer agrees with the state before it.
func step(s state, o Operation) (bool, state) {
	switch o.Kind {
	case Append:
		return stepAppend(s, o)
	case Read:
		return s.log == joined(o.Log), s
	case Begin:
		return stepBegin(s, o)
	case AppendEntry:
		return stepAppendEntry(s, o)
	case Take:
		return stepTake(s, o)
	case Signal:
		return o.Outcome != Done || s.running == o.Turn, s
	}
	return false, s
}

func joined(log []string) string {
	if len(log) == 0 {
		return ""
	}
	return strings.Join(log, "\n") + "\n"
}

func stepAppend(s state, o Operation) (bool, state) {
	has := s.seqOf(o.Value)
	behind := o.After < 0 || o.After == s.length
	switch {
	case o.Outcome == Refused:
		return has == 0 && !behind, s
	case has > 0:
		return o.Keyed && (o.Seq == has || o.Outcome == Unknown), s
	case o.Outcome == Unknown && !behind:
		return true, s
	}
	return behind && (o.Seq == s.length+1 || o.Outcome == Unknown), s.with(o.Value)
}

// stepBegin begins a turn. A refusal is always allowed: the turn that was running may have ended without an entry.
func stepBegin(s state, o Operation) (bool, state) {
	if o.Outcome == Refused || o.Outcome == Unknown && s.running != "" {
		return true, s
	}
	after := s.with(o.Value)
	after.running, after.owner = o.Turn, o.Owner
	return s.running == "", after
}

func stepTake(s state, o Operation) (bool, state) {
	if o.Outcome != Done {
		return true, s
	}
	after := s
	after.owner = o.Owner
	return s.running == o.Turn, after
}

func stepAppendEntry(s state, o Operation) (bool, state) {
	if o.Outcome != Done {
		return true, s
	}
	after := s.with(o.Value)
	if o.Last {
		after.running, after.owner = "", ""
	}
	return s.running == o.Turn && s.owner == o.Owner, after
}

package historytest

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
)

// checkLimit bounds a check. The tests' histories are so small that a check takes a fraction of a second.
const checkLimit = time.Minute

// Check reports an error to t if a history is not linearizable, or cannot be checked in time.
func Check(t testing.TB, name string, history []Operation) {
	t.Helper()
	if err := Verify(history); err != nil {
		t.Errorf("%s: %v", name, err)
	}
}

// Verify returns an error if a history is not linearizable, or cannot be checked in time.
func Verify(history []Operation) error {
	operations := timed(history)
	switch result := porcupine.CheckOperationsTimeout(model, operations, checkLimit); result {
	case porcupine.Ok:
		return nil
	case porcupine.Unknown:
		return fmt.Errorf("%d operations could not be checked within %v: make the history shorter", len(operations), checkLimit)
	default:
		return fmt.Errorf("no order of these %d operations agrees with a log:\n%s", len(operations), described(operations))
	}
}

// timed gives each operation the interval in which it took effect. An unknown one has no end, unless a read shows its
// value: then it took effect before that read was answered. An unknown one whose value no read shows is left out if the
// history ends with a read, because an order with it at the end agrees with every answer.
func timed(history []Operation) []porcupine.Operation {
	var operations []porcupine.Operation
	for _, o := range history {
		last := int64(math.MaxInt64)
		if o.Outcome != Unknown {
			last = int64(o.Answered)
		} else if seen, ok := FirstRead(history, o); ok {
			last = int64(seen)
		} else {
			continue
		}
		operations = append(operations, porcupine.Operation{ClientId: o.Client, Input: o, Call: int64(o.Called), Return: last})
	}
	return operations
}

// FirstRead is when the first read was answered that shows a value and ended after the operation began.
func FirstRead(history []Operation, of Operation) (at time.Duration, found bool) {
	for _, o := range history {
		if o.Kind == Read && o.Answered > of.Called && (!found || o.Answered < at) && slices.Contains(o.Log, of.Value) {
			at, found = o.Answered, true
		}
	}
	return at, found
}

func described(operations []porcupine.Operation) string {
	slices.SortFunc(operations, func(a, b porcupine.Operation) int { return int(a.Call - b.Call) })
	var text strings.Builder
	for _, o := range operations {
		fmt.Fprintln(&text, o.Input)
	}
	return text.String()
}

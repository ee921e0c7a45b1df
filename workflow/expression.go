package workflow

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"reflect"
	"strings"

	"github.com/continuo-log/continuo/internal/yamlform"
	"github.com/expr-lang/expr/file"
	"github.com/expr-lang/expr/vm"
)

// Expression is a checked expression over Values. It is read-only and pure: the same values give the same result on
// any machine. It is safe for concurrent use, and bounded in time and memory.
//
// A whole number has the same value and type whether it came as 3, as 3.0 or as a json.Number. Missing fields are nil,
// and so are nodes that have not finished, so that nodes.a.b fails where nodes.a?.b is nil.
type Expression struct {
	Text string
	Line int // in the file

	program *vm.Program
	nodes   []string // that it uses
	// needs are the nodes whose outputs it requires; own says that it uses outputs, those of its own node.
	needs []string
	own   bool
}

// Eval computes the value in the types of JSON's decoder: nil, bool, string, float64, []any or map[string]any.
func (e *Expression) Eval(values Values) (any, error) {
	result, err := e.run(values)
	if err == nil {
		result, err = outward(result)
	}
	if err != nil {
		return nil, e.fail(err)
	}
	return result, nil
}

// Holds evaluates a condition.
func (e *Expression) Holds(values Values) (bool, error) {
	result, err := e.run(values)
	if err != nil {
		return false, e.fail(err)
	}
	holds, ok := result.(bool)
	if !ok {
		return false, e.fail(fmt.Errorf("it must be true or false, and is %s", kindOf(result)))
	}
	return holds, nil
}

func (e *Expression) fail(err error) error {
	text := strings.Join(strings.Fields(e.Text), " ")
	return fmt.Errorf("the expression %s in line %d cannot be computed: %w", yamlform.Shorten(text), e.Line, err)
}

const (
	// maxMemory bounds the items of lists that an evaluation creates.
	maxMemory = 1_000_000
	// maxSteps bounds how often an evaluation visits an item of a list (all, filter, map ...). A value that is made from
	// an item also counts, by its size: one step for sizePerStep bytes of text.
	maxSteps    = 100_000
	sizePerStep = 256
)

// stepFunction is the function that counts steps; expressions cannot call it by name.
const stepFunction = "$step"

var errTooLong = errors.New("it takes too long: it looks at more than 100000 items")

// run computes the value in expr's types.
func (e *Expression) run(values Values) (result any, err error) {
	if e.program == nil {
		return nil, errors.New("it was not read by Parse")
	}
	defer func() { // the virtual machine recovers from its own panics
		if panicked := recover(); panicked != nil {
			result, err = nil, fmt.Errorf("%v", panicked)
		}
	}()
	steps := 0
	machine := vm.VM{MemoryBudget: maxMemory}
	result, err = machine.Run(e.program, map[string]any{
		"inputs": object(values.Inputs), "outputs": object(values.Outputs), "nodes": objects(values.Nodes), "visit": values.Visit,
		stepFunction: func(args ...any) any {
			if steps += 1 + sizeOf(args[0]); steps > maxSteps {
				panic(errTooLong)
			}
			return args[0]
		},
	})
	return result, explain(err)
}

// explain removes the excerpt of the expression from the virtual machine's error, and adds a remedy.
func explain(err error) error {
	var syntax *file.Error
	if !errors.As(err, &syntax) {
		return err
	}
	if strings.HasSuffix(syntax.Message, "from <nil>") {
		return fmt.Errorf("%s: a value is not there, or a node has not finished; ask with ?. where that can be", syntax.Message)
	}
	return errors.New(syntax.Message)
}

// sizeOf is the number of steps that a value counts, in addition to the item from which it was made.
func sizeOf(value any) int {
	switch value := value.(type) {
	case string:
		return len(value) / sizePerStep
	case []any:
		return len(value)
	default:
		return 0
	}
}

func object(fields map[string]any) map[string]any {
	to := make(map[string]any, len(fields))
	for name, value := range fields {
		to[name] = inward(value)
	}
	return to
}

func objects(nodes map[string]map[string]any) map[string]any {
	to := make(map[string]any, len(nodes))
	for id, outputs := range nodes {
		to[id] = object(outputs)
	}
	return to
}

// maxExact is the bound of the whole numbers that a float64 holds exactly.
const maxExact = 1 << 53

// inward copies a value so that whole numbers are ints and others float64, whatever their source.
func inward(value any) any {
	switch value := value.(type) {
	case float64:
		if value == math.Trunc(value) && math.Abs(value) <= maxExact {
			return int(value)
		}
		return value
	case json.Number:
		number, err := value.Float64()
		if err != nil {
			return value.String()
		}
		return inward(number)
	case []any:
		to := make([]any, len(value))
		for i, item := range value {
			to[i] = inward(item)
		}
		return to
	case map[string]any:
		return object(value)
	default:
		return value
	}
}

// outward copies a result to the types of JSON's decoder.
func outward(value any) (any, error) {
	switch from := reflect.ValueOf(value); from.Kind() {
	case reflect.Invalid:
		return nil, nil
	case reflect.Bool, reflect.String:
		return value, nil
	case reflect.Int:
		return float64(from.Int()), nil
	case reflect.Float64:
		if math.IsNaN(from.Float()) || math.IsInf(from.Float(), 0) {
			return nil, errors.New("its result is no number: something was divided by zero, or grew beyond all bounds")
		}
		return value, nil
	case reflect.Slice:
		to := make([]any, from.Len())
		for i := range to {
			item, err := outward(from.Index(i).Interface())
			if err != nil {
				return nil, err
			}
			to[i] = item
		}
		return to, nil
	case reflect.Map:
		to := make(map[string]any, from.Len())
		for _, key := range from.MapKeys() {
			item, err := outward(from.MapIndex(key).Interface())
			if err != nil {
				return nil, err
			}
			to[key.String()] = item
		}
		return to, nil
	default:
		return nil, fmt.Errorf("its result is a %s, which JSON cannot hold", from.Type())
	}
}

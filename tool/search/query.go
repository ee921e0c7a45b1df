package search

import (
	"errors"
	"fmt"
	"regexp"
	"regexp/syntax"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/recall/search"
	"github.com/continuo-log/continuo/tool"
)

// arguments are the arguments of a call.
type arguments struct {
	Query  string        `json:"query"`
	Regex  bool          `json:"regex"`
	Role   continuo.Role `json:"role"`
	From   int64         `json:"from"`
	To     int64         `json:"to"`
	Before int64         `json:"before"`
	Skip   int           `json:"skip"`
	Limit  int           `json:"limit"`
}

// query is a checked query: words, or an expression instead.
type query struct {
	words      string
	expression *regexp.Regexp
	role       continuo.Role // "" for all
	stretch
}

// takes reports whether the query includes entries of a role.
func (q *query) takes(role continuo.Role) bool { return q.role == "" || q.role == role }

// stretch is a range of seqs, both ends included.
type stretch struct{ from, to int64 }

// The bounds of a query.
const (
	defaultLimit = 10
	maxLimit     = 50
	maxQuery     = 1000 // bytes of an expression
	maxSteps     = 2000 // of a compiled expression; matching costs at worst the text's length times the steps
)

// decode reads a call's arguments.
func decode(text string) (arguments, error) {
	var a arguments
	err := tool.Decode(text, `{"query": "staging \"release date\"", "role": "user"}`, &a)
	return a, err
}

func (a arguments) limit() int {
	if a.Limit == 0 {
		return defaultLimit
	}
	return a.Limit
}

// query checks the arguments for a conversation with a number of entries.
func (a arguments) query(last int64) (*query, error) {
	if err := a.checkNumbers(last); err != nil {
		return nil, err
	}
	switch a.Role {
	case "", continuo.User, continuo.Assistant, continuo.Tool, continuo.System:
	default:
		return nil, fmt.Errorf("role is %q; allowed are user, assistant, tool and system, or none for all", a.Role)
	}
	q := &query{role: a.Role, stretch: stretch{from: max(a.From, 1), to: last}}
	if err := q.read(a.Query, a.Regex); err != nil {
		return nil, err
	}
	if a.To > 0 {
		q.to = min(q.to, a.To)
	}
	if a.Before > 0 {
		q.to = min(q.to, a.Before-1)
	}
	return q, nil
}

func (a arguments) checkNumbers(last int64) error {
	for _, seq := range []struct {
		name  string
		value int64
	}{{"from", a.From}, {"to", a.To}, {"before", a.Before}} {
		if seq.value < 0 {
			return fmt.Errorf("%s is %d; seqs begin with 1", seq.name, seq.value)
		}
	}
	switch {
	case a.Limit < 0 || a.Limit > maxLimit:
		return fmt.Errorf("limit is %d; allowed is 1 to %d", a.Limit, maxLimit)
	case a.Skip < 0:
		return fmt.Errorf("skip is %d; give how many matches were shown", a.Skip)
	case a.From > last:
		return fmt.Errorf("from is %d, but the conversation has the entries 1 to %d", a.From, last)
	case a.To > 0 && a.To < a.From:
		return fmt.Errorf("from is %d and to is %d: from must not come after to", a.From, a.To)
	}
	return nil
}

// read parses the words or the expression.
func (q *query) read(text string, regex bool) (err error) {
	if regex {
		q.expression, err = expression(text)
	} else {
		q.words, err = text, search.Check(text)
	}
	return err
}

func expression(text string) (*regexp.Regexp, error) {
	switch {
	case text == "":
		return nil, errors.New("query is empty; give what to look for")
	case len(text) > maxQuery:
		return nil, fmt.Errorf("query has %d bytes, more than the limit of %d", len(text), maxQuery)
	}
	parsed, err := syntax.Parse(text, syntax.Perl) // parsed separately: a ")" must not close the group below
	if err != nil {
		return nil, fmt.Errorf("query is no regular expression of RE2 syntax: %w; correct it, or leave regex out to look for the words", err)
	}
	if steps, err := syntax.Compile(parsed.Simplify()); err != nil || len(steps.Inst) > maxSteps {
		return nil, errors.New("query is too large a regular expression: use smaller counts in {} or fewer of them")
	}
	compiled, err := regexp.Compile(`(?im:` + text + `)`)
	if err != nil {
		return nil, fmt.Errorf("query is no regular expression of RE2 syntax: %w", err)
	}
	if compiled.MatchString("") {
		return nil, errors.New("query matches the empty text and so every entry; make it narrower")
	}
	return compiled, nil
}

package search

import (
	"errors"
	"fmt"
	"regexp"
	"regexp/syntax"
	"strings"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/tool"
)

// arguments is what a model asks for.
type arguments struct {
	Query  string        `json:"query"`
	Regex  bool          `json:"regex"`
	Role   continuo.Role `json:"role"`
	From   int64         `json:"from"`
	To     int64         `json:"to"`
	Before int64         `json:"before"`
	Limit  int           `json:"limit"`
}

// query is what is looked for, checked: every term has to match.
type query struct {
	terms []*regexp.Regexp
	role  continuo.Role // "" for all
	stretch
}

// stretch is a part of the log, both ends included.
type stretch struct{ from, to int64 }

// The bounds of a query.
const (
	defaultLimit = 10
	maxLimit     = 50
	maxQuery     = 1000 // bytes
	maxTerms     = 20
	maxSteps     = 2000 // of a compiled expression; matching a text costs its length times them at worst
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

// query checks the arguments for a conversation of so many entries.
func (a arguments) query(last int64) (*query, error) {
	if err := a.checkNumbers(last); err != nil {
		return nil, err
	}
	switch a.Role {
	case "", continuo.User, continuo.Assistant, continuo.Tool, continuo.System:
	default:
		return nil, fmt.Errorf("role is %q; allowed are user, assistant, tool and system, or none for all", a.Role)
	}
	terms, err := a.terms()
	if err != nil {
		return nil, err
	}
	q := &query{terms: terms, role: a.Role, stretch: stretch{from: max(a.From, 1), to: last}}
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
	case a.From > last:
		return fmt.Errorf("from is %d, but the conversation has the entries 1 to %d", a.From, last)
	case a.To > 0 && a.To < a.From:
		return fmt.Errorf("from is %d and to is %d: from must not come after to", a.From, a.To)
	}
	return nil
}

// terms are the expressions that the query stands for.
func (a arguments) terms() ([]*regexp.Regexp, error) {
	if len(a.Query) > maxQuery {
		return nil, fmt.Errorf("query has %d bytes, more than the limit of %d", len(a.Query), maxQuery)
	}
	if a.Regex {
		return expression(a.Query)
	}
	var terms []*regexp.Regexp
	for _, words := range split(a.Query) {
		for i, word := range words {
			words[i] = regexp.QuoteMeta(word)
		}
		terms = append(terms, regexp.MustCompile(`(?i:`+strings.Join(words, `[\s\p{Z}]+`)+`)`))
	}
	switch {
	case len(terms) == 0:
		return nil, errors.New("query has no words; give what to look for")
	case len(terms) > maxTerms:
		return nil, fmt.Errorf("query has %d words, more than the limit of %d; all of them would have to match", len(terms), maxTerms)
	}
	return terms, nil
}

func expression(text string) ([]*regexp.Regexp, error) {
	if text == "" {
		return nil, errors.New("query is empty; give what to look for")
	}
	parsed, err := syntax.Parse(text, syntax.Perl) // alone: a ")" must not close the group below
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
	return []*regexp.Regexp{compiled}, nil
}

// split takes a query apart: each word alone, words in quotes together. A quote that is not closed is a
// character like any other.
func split(text string) [][]string {
	var terms [][]string
	for text = strings.TrimSpace(text); text != ""; text = strings.TrimSpace(text) {
		if strings.HasPrefix(text, `"`) {
			if phrase, after, closed := strings.Cut(text[1:], `"`); closed {
				if words := strings.Fields(phrase); len(words) > 0 {
					terms = append(terms, words)
				}
				text = after
				continue
			}
		}
		word := strings.Fields(text)[0]
		terms = append(terms, []string{word})
		text = text[len(word):]
	}
	return terms
}

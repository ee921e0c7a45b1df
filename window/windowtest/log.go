// Package windowtest has a log in memory for tests of views.
package windowtest

import (
	"fmt"
	"iter"
	"unicode/utf8"

	continuo "github.com/continuo-log/continuo"
)

// Chars counts four characters as a token.
type Chars struct{}

// Name is the counter's.
func (Chars) Name() string { return "test" }

// Count counts the tokens of a text.
func (Chars) Count(text string) int { return (utf8.RuneCountInString(text) + 3) / 4 }

// Log is a log in memory. It is a window.Source that counts the rows that were read.
type Log struct {
	List []continuo.Entry
	Rows int // read
}

// Backward reads entries from a seq on, newest first.
func (l *Log) Backward(seq int64) iter.Seq2[*continuo.Entry, error] {
	return func(yield func(*continuo.Entry, error) bool) {
		for seq = min(seq, int64(len(l.List))); seq >= 1; seq-- {
			l.Rows++
			if !yield(&l.List[seq-1], nil) {
				return
			}
		}
	}
}

// Forward reads entries from a seq on.
func (l *Log) Forward(seq int64) iter.Seq2[*continuo.Entry, error] {
	return func(yield func(*continuo.Entry, error) bool) {
		for ; seq <= int64(len(l.List)); seq++ {
			l.Rows++
			if !yield(&l.List[seq-1], nil) {
				return
			}
		}
	}
}

// LatestUser finds the newest message of the user up to a seq.
func (l *Log) LatestUser(seq int64) (*continuo.Entry, error) {
	l.Rows++
	for ; seq >= 1; seq-- {
		if e := &l.List[seq-1]; e.Role == continuo.User && !e.Hidden {
			return e, nil
		}
	}
	return nil, continuo.ErrNotFound
}

// Add appends an entry the way the log would.
func (l *Log) Add(e continuo.Entry) *continuo.Entry {
	e.Seq = int64(len(l.List)) + 1
	size := continuo.Measure(e.Content, e.ToolCalls, Chars{})
	e.Chars, e.Tokens, e.Tokenizer = size.Chars, size.Tokens, "test"
	if e.Role == continuo.Tool {
		e.OutputRef = "@state/logs/tool-results/" + e.ToolCallID + ".json"
	}
	l.List = append(l.List, e)
	return &l.List[len(l.List)-1]
}

// User appends a message of the user.
func (l *Log) User(text string) {
	l.Add(continuo.Entry{Role: continuo.User, Content: continuo.Text(text)})
}

// Assistant appends an answer.
func (l *Log) Assistant(text string) {
	l.Add(continuo.Entry{Role: continuo.Assistant, Content: continuo.Text(text)})
}

// Call appends an answer with a call for each output, and their results.
func (l *Log) Call(outputs ...string) {
	var calls []continuo.ToolCall
	for i := range outputs {
		calls = append(calls, continuo.FunctionCall(fmt.Sprintf("call_%d_%d", len(l.List), i), "search", `{"q":"x"}`))
	}
	l.Add(continuo.Entry{Role: continuo.Assistant, Content: continuo.Null(), ToolCalls: calls})
	for i, output := range outputs {
		l.Add(continuo.Entry{Role: continuo.Tool, ToolCallID: calls[i].ID, Content: continuo.Text(output)})
	}
}

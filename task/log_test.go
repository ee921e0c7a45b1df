package task_test

import (
	"fmt"
	"iter"
	"unicode/utf8"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/window"
)

// chars counts four characters as a token.
type chars struct{}

func (chars) Name() string          { return "test" }
func (chars) Count(text string) int { return (utf8.RuneCountInString(text) + 3) / 4 }

// entries is a log in memory that counts how many rows were read of it.
type entries struct {
	list []continuo.Entry
	rows int
}

func (l *entries) Backward(seq int64) iter.Seq2[*continuo.Entry, error] {
	return func(yield func(*continuo.Entry, error) bool) {
		for seq = min(seq, int64(len(l.list))); seq >= 1; seq-- {
			l.rows++
			if !yield(&l.list[seq-1], nil) {
				return
			}
		}
	}
}

func (l *entries) Forward(seq int64) iter.Seq2[*continuo.Entry, error] {
	return func(yield func(*continuo.Entry, error) bool) {
		for ; seq <= int64(len(l.list)); seq++ {
			l.rows++
			if !yield(&l.list[seq-1], nil) {
				return
			}
		}
	}
}

func (l *entries) LatestUser(seq int64) (*continuo.Entry, error) {
	l.rows++
	for ; seq >= 1; seq-- {
		if e := &l.list[seq-1]; e.Role == continuo.User && !e.Hidden {
			return e, nil
		}
	}
	return nil, continuo.ErrNotFound
}

// add appends an entry the way the log would.
func (l *entries) add(e continuo.Entry) *continuo.Entry {
	e.Seq = int64(len(l.list)) + 1
	size := continuo.Measure(e.Content, e.ToolCalls, chars{})
	e.Chars, e.Tokens, e.Tokenizer = size.Chars, size.Tokens, "test"
	if e.Role == continuo.Tool {
		e.OutputRef = "@state/logs/tool-results/" + e.ToolCallID + ".json"
	}
	l.list = append(l.list, e)
	return &l.list[len(l.list)-1]
}

func (l *entries) user(text string) {
	l.add(continuo.Entry{Role: continuo.User, Content: continuo.Text(text)})
}

func (l *entries) assistant(text string) {
	l.add(continuo.Entry{Role: continuo.Assistant, Content: continuo.Text(text)})
}

func (l *entries) call(outputs ...string) {
	var calls []continuo.ToolCall
	for i := range outputs {
		calls = append(calls, continuo.FunctionCall(fmt.Sprintf("call_%d_%d", len(l.list), i), "search", `{"q":"x"}`))
	}
	l.add(continuo.Entry{Role: continuo.Assistant, Content: continuo.Null(), ToolCalls: calls})
	for i, output := range outputs {
		l.add(continuo.Entry{Role: continuo.Tool, ToolCallID: calls[i].ID, Content: continuo.Text(output)})
	}
}

func shownTexts(plan *window.Plan) []string {
	var texts []string
	for _, m := range plan.Messages {
		texts = append(texts, m.Content.String())
	}
	return texts
}

func chat(n int) *entries {
	l := &entries{}
	for i := range n {
		if i%2 == 0 {
			l.user(fmt.Sprintf("question %d", i))
		} else {
			l.assistant(fmt.Sprintf("answer %d", i))
		}
	}
	return l
}

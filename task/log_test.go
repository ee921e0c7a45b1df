package task_test

import (
	"fmt"

	"github.com/continuo-log/continuo/window"
	"github.com/continuo-log/continuo/window/windowtest"
)

// chars counts four characters as a token.
type chars = windowtest.Chars

// entries is a log in memory that counts how many rows were read of it.
type entries struct{ windowtest.Log }

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
			l.User(fmt.Sprintf("question %d", i))
		} else {
			l.Assistant(fmt.Sprintf("answer %d", i))
		}
	}
	return l
}

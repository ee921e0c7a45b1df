package view_test

import (
	"strings"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/window"
	"github.com/continuo-log/continuo/window/windowtest"
)

// chars counts four characters as a token.
type chars = windowtest.Chars

// entries is a log in memory that counts how many rows were read of it.
type entries struct{ windowtest.Log }

func texts(plan *window.Plan) []string {
	var texts []string
	for _, m := range plan.Messages {
		texts = append(texts, m.Content.String())
	}
	return texts
}

// large is an entry whose output is an object; its content shows 3 000 and 2 000 bytes of it.
func large(callID string) continuo.Entry {
	p := continuo.Preview{
		Head: strings.Repeat("head 56789\n", 300)[:3000], Tail: strings.Repeat("tail 56789\n", 200)[:2000],
		Chars: 900_000, Bytes: 1_000_000, Lines: 70_000, Full: "@state/logs/tool-results/" + callID + ".json",
	}
	return continuo.Entry{
		Role: continuo.Tool, ToolCallID: callID, Content: continuo.Text(p.String()), OutputRef: p.Full,
		Output: &continuo.Output{ID: "out_1", Bytes: p.Bytes, Chars: p.Chars, Lines: p.Lines, Head: len(p.Head), Tail: len(p.Tail)},
	}
}

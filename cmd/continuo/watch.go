package main

import (
	"bytes"
	"context"
	"iter"
	"strings"
	"sync"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/internal/process"
	"github.com/continuo-log/continuo/internal/rawjson"
)

// step is one of the events that a command follows, or why there are no more.
type step[T any] struct {
	progress T
	err      error
}

// follow reads events in the background, up to the last one or the end of the context. The caller must wait.
func follow[T any](ctx context.Context, events iter.Seq2[T, error]) (steps <-chan step[T], wait func()) {
	passed := make(chan step[T])
	var reading sync.WaitGroup
	reading.Go(func() {
		defer close(passed)
		for progress, err := range events {
			select {
			case passed <- step[T]{progress, err}:
			case <-ctx.Done():
				return
			}
		}
	})
	return passed, reading.Wait
}

// isOurs reports whether this process runs a turn.
func isOurs(t continuo.Turn) bool { return strings.HasPrefix(t.Owner, process.Self()) }

// ownerEnded reports whether the process that runs a turn, or ran it, has ended.
func ownerEnded(t continuo.Turn) bool {
	owner, _, _ := strings.Cut(t.Owner, "#")
	return process.Ended(owner)
}

// jsonLines writes a JSON object per line for what is not nil: {type: entry, entry}, {type: status, status}. The last
// line of a command that follows is {type: end, status}.
func jsonLines[S any](a *app, entry *continuo.Entry, status *S) {
	if entry != nil {
		a.jsonLine("entry", "entry", entry)
	}
	if status != nil {
		a.jsonLine("status", "status", status)
	}
}

func (c *console) jsonLine(kind, name string, value any) {
	data, err := rawjson.Marshal(map[string]any{"type": kind, name: value})
	if err != nil {
		c.note("%s write JSON: %s", c.notePaint.Yellow("note:"), err)
		return
	}
	_, _ = c.out.Write(append(bytes.TrimSpace(data), '\n')) // the console keeps the error
}

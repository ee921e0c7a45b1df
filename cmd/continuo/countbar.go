package main

import (
	"sync/atomic"

	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"
)

// countBar shows a count on standard error. If that is no terminal, it does nothing. It is safe for concurrent use.
type countBar struct {
	bars  *mpb.Progress // nil if standard error is no terminal
	bar   *mpb.Bar
	words atomic.Pointer[string]
}

// newCountBar shows a bar if standard error is a terminal; label names the work.
func newCountBar(c *console, label string) *countBar {
	b := &countBar{}
	b.words.Store(new(string))
	if !c.errTerminal {
		return b
	}
	b.bars = mpb.New(mpb.WithOutput(c.err), mpb.WithWidth(64))
	b.bar = b.bars.New(0,
		mpb.BarStyle().Lbound("").Rbound("").Filler("█").Tip("█").Padding("░"),
		mpb.BarRemoveOnComplete(),
		mpb.PrependDecorators(decor.Name(label+" ")),
		mpb.AppendDecorators(decor.Any(func(decor.Statistics) string { return " " + *b.words.Load() })),
	)
	return b
}

// set sets the count and the total, and a text for them.
func (b *countBar) set(done, total int64, words string) {
	if b.bars == nil {
		return
	}
	b.words.Store(&words)
	b.bar.SetTotal(max(total, done), false) // only close removes it
	b.bar.SetCurrent(done)
}

// close removes the bar.
func (b *countBar) close() {
	if b.bars == nil {
		return
	}
	b.bar.Abort(true)
	b.bars.Wait()
}

package main

import (
	"sync/atomic"

	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"
)

// countBar shows how far a count has come, on standard error. Where nobody sees it, it does nothing. It is safe
// for concurrent use.
type countBar struct {
	bars  *mpb.Progress // nil where nobody sees it
	bar   *mpb.Bar
	words atomic.Pointer[string]
}

// newCountBar shows a bar when standard error is a terminal; label says what is done.
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

// set says how many of how many are done, in words too.
func (b *countBar) set(done, total int64, words string) {
	if b.bars == nil {
		return
	}
	b.words.Store(&words)
	b.bar.SetTotal(max(total, done), false) // it is taken away by close alone
	b.bar.SetCurrent(done)
}

// close takes the bar away.
func (b *countBar) close() {
	if b.bars == nil {
		return
	}
	b.bar.Abort(true)
	b.bars.Wait()
}

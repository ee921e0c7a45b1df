package main

import (
	"fmt"
	"io"
	"sync"

	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"
)

// progress is a bar over the bytes of all sources. If standard error is no terminal, it does nothing.
type progress struct {
	bars *mpb.Progress // nil if standard error is no terminal
	bar  *mpb.Bar
	mu   sync.Mutex
	read map[string]int64 // bytes per source, as reported to the bar
}

// newProgress shows a bar if standard error is a terminal and the size of the work is known.
func newProgress(c *console, sources []importSource) *progress {
	var total int64
	for _, source := range sources {
		total += source.size
	}
	p := &progress{read: map[string]int64{}}
	if !c.errTerminal || total == 0 {
		return p
	}
	p.bars = mpb.New(mpb.WithOutput(c.err), mpb.WithWidth(64))
	p.bar = p.bars.New(total,
		mpb.BarStyle().Lbound("").Rbound("").Filler("█").Tip("█").Padding("░"),
		mpb.BarRemoveOnComplete(),
		mpb.PrependDecorators(decor.Name("importing ")),
		mpb.AppendDecorators(
			decor.Any(func(s decor.Statistics) string {
				return fmt.Sprintf(" %s of %s", byteSize(s.Current), byteSize(s.Total))
			}),
			decor.Percentage(decor.WCSyncSpace),
		),
	)
	return p
}

// reader counts the bytes that are read of a source.
func (p *progress) reader(source importSource, in io.Reader) io.Reader {
	if p.bars == nil || source.size == 0 {
		return in
	}
	return &countedReader{in: in, progress: p, name: source.name}
}

type countedReader struct {
	in       io.Reader
	progress *progress
	name     string
}

func (r *countedReader) Read(buffer []byte) (int, error) {
	n, err := r.in.Read(buffer)
	r.progress.advance(r.name, int64(n))
	return n, err
}

func (p *progress) advance(name string, n int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.read[name] += n
	p.bar.IncrInt64(n)
}

// done completes a source in the bar, even if not all of it was read.
func (p *progress) done(source importSource) {
	if p.bars == nil {
		return
	}
	p.mu.Lock()
	left := source.size - p.read[source.name]
	p.mu.Unlock()
	p.advance(source.name, left)
}

// close removes the bar.
func (p *progress) close() {
	if p.bars == nil {
		return
	}
	p.bar.Abort(true)
	p.bars.Wait()
}

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"sync"
	"sync/atomic"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/engine"
	"github.com/continuo-log/continuo/interchange"
	"github.com/continuo-log/continuo/internal/term"
)

// importRun adds documents, several concurrently so that they share commits.
type importRun struct {
	add      addFunc
	progress *readProgress
	stop     context.CancelCauseFunc // called when all further work is pointless
}

// importWorkers is how many documents are added concurrently; reading continues in the meantime.
const importWorkers = 8

// importReaders is how many files are read concurrently: reading is most of the work.
const importReaders = 4

// all imports every source and returns the reports of those that were started, in order.
func (r *importRun) all(ctx context.Context, sources []importSource) []fileReport {
	reports := make([]fileReport, len(sources))
	slots := make(chan struct{}, min(importReaders, runtime.GOMAXPROCS(0)))
	var running sync.WaitGroup
	begun := 0
	for i, source := range sources {
		slots <- struct{}{}
		if ctx.Err() != nil {
			break
		}
		begun++
		running.Go(func() {
			defer func() { <-slots }()
			reports[i] = r.file(ctx, source)
		})
	}
	running.Wait()
	return reports[:begun]
}

// errNotDone marks a document that was read when the import had to stop.
var errNotDone = errors.New("not done")

// imported is the result for one document.
type imported struct {
	result engine.Imported
	source string
	err    error
}

// file imports one source and returns its part of the report, in the order of the source.
func (r *importRun) file(ctx context.Context, source importSource) fileReport {
	slots := make(chan struct{}, importWorkers)
	var running sync.WaitGroup
	var results []*imported
	counted := &countedReader{progress: r.progress}
	wrap := func(in io.Reader) io.Reader {
		if source.size == 0 {
			return in // standard input
		}
		counted.Reader = in
		return counted
	}
	for document, err := range source.read(wrap) {
		one := &imported{source: document.Source, err: err}
		results = append(results, one)
		if ctx.Err() != nil {
			one.err = errNotDone
			break
		}
		if err != nil {
			continue
		}
		slots <- struct{}{}
		running.Go(func() {
			defer func() { <-slots }()
			one.result, one.err = r.add(ctx, document)
			if is(continuo.ErrFull, continuo.ErrReadOnly, continuo.ErrClosed)(one.err) {
				r.stop(one.err)
			}
		})
	}
	running.Wait()
	r.progress.add(source.size - counted.read) // even if not all of it was read
	return newFileReport(source.name, results)
}

// readProgress shows how many of the bytes of all sources were read.
type readProgress struct {
	bar   *term.Progress
	total int64
	read  atomic.Int64
}

// newReadProgress shows a bar if the sizes of the sources are known.
func newReadProgress(c *console, sources []importSource) *readProgress {
	p := &readProgress{bar: term.NewProgress(nil, nil, "")}
	for _, source := range sources {
		p.total += source.size
	}
	if p.total > 0 {
		p.bar = c.newProgress("importing")
	}
	return p
}

func (p *readProgress) add(n int64) {
	done := p.read.Add(n)
	p.bar.Set(done, p.total, fmt.Sprintf("%s of %s, %d %%", term.Size(done), term.Size(p.total), done*100/max(p.total, 1)))
}

// countedReader counts what is read of a source.
type countedReader struct {
	io.Reader
	progress *readProgress
	read     int64
}

// Read is part of io.Reader.
func (r *countedReader) Read(buffer []byte) (int, error) {
	n, err := r.Reader.Read(buffer)
	r.read += int64(n)
	r.progress.add(int64(n))
	return n, err
}

// repairLine is one repair with its conversation.
type repairLine struct {
	Source string `json:"source"`
	Title  string `json:"title,omitempty"`
	interchange.Repair
}

// errorLine is one conversation that could not be imported.
type errorLine struct {
	Source string `json:"source"`
	Error  string `json:"error"`
}

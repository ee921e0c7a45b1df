package main

import (
	"context"
	"errors"
	"io"
	"runtime"
	"sync"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/engine"
	"github.com/continuo-log/continuo/interchange"
)

// importRun adds documents, several concurrently so that they share commits.
type importRun struct {
	add      addFunc
	progress *progress
	stop     context.CancelCauseFunc // called when all further work is pointless
}

// importWorkers is how many documents are added concurrently; reading continues in the meantime.
const importWorkers = 8

// importReaders is how many files are read concurrently: reading is most of the work.
const importReaders = 4

// all imports every source and returns the reports of those that were begun, in order.
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
	wrap := func(in io.Reader) io.Reader { return r.progress.reader(source, in) }
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
	r.progress.done(source)
	return newFileReport(source.name, results)
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

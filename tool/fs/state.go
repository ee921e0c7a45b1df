package fs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"path"
	"regexp"
	"strconv"
	"strings"

	continuo "github.com/continuo-log/continuo"
)

// state presents the log of one conversation as files. All reads name the calling conversation, so that no
// name leads to another conversation.
type state struct {
	log          *continuo.Log
	conversation continuo.Conversation
	since        int64 // the caller sees only entries after it
}

const (
	callsFolder   = "logs/tool-calls"
	resultsFolder = "logs/tool-results"
	runsFolder    = "runs"
	filesFolder   = "files"
)

// Close has nothing to close.
func (state) Close() error { return nil }

var (
	callName    = regexp.MustCompile(`^logs/tool-calls/(\d{1,18})-(\d{1,4})\.json$`)
	errNotState = errors.New("there is no such file in this conversation; @state/logs/ has the folders tool-results and tool-calls, " +
		"@state/runs/ the outputs of runs' steps, and @state/files/ what fs.write wrote")
)

func (s state) open(ctx context.Context, name string) (*file, error) {
	found, err := s.find(ctx, name)
	if err != nil {
		return nil, err
	}
	if found.folder {
		return nil, errFolder
	}
	return found.open(ctx)
}

// find returns the one item of a name.
func (s state) find(ctx context.Context, name string) (item, error) {
	if name == "" || name == "logs" || name == callsFolder || name == resultsFolder || name == runsFolder || name == filesFolder {
		return item{name: name, folder: true}, nil
	}
	if strings.HasPrefix(name, runsFolder+"/") || strings.HasPrefix(name, filesFolder+"/") {
		return s.findNamed(ctx, name)
	}
	if match := callName.FindStringSubmatch(name); match != nil {
		return s.call(ctx, match)
	}
	if !strings.HasPrefix(name, resultsFolder+"/") {
		return item{}, errNotState
	}
	entry, err := s.log.EntryByOutputRef(ctx, s.conversation, aliasState+"/"+name)
	if errors.Is(err, continuo.ErrNotFound) || err == nil && entry.Seq <= s.since {
		return item{}, errNotState
	}
	return s.result(&entry), err
}

func (s state) call(ctx context.Context, match []string) (item, error) {
	seq, _ := strconv.ParseInt(match[1], 10, 64)
	index, _ := strconv.Atoi(match[2])
	if seq <= s.since || seq > s.conversation.LastSeq {
		return item{}, errNotState
	}
	for entry, err := range s.log.Read(ctx, s.conversation, continuo.Range{From: seq, To: seq}) {
		if err != nil {
			return item{}, err
		}
		if calls := callItems(&entry); index < len(calls) {
			return calls[index], nil
		}
	}
	return item{}, errNotState
}

// callItems returns the files of an entry's calls. An entry that only people are shown has none.
func callItems(entry *continuo.Entry) []item {
	if entry.Hidden {
		return nil
	}
	items := make([]item, len(entry.ToolCalls))
	for i, call := range entry.ToolCalls {
		items[i] = textItem(fmt.Sprintf("%s/%d-%d.json", callsFolder, entry.Seq, i), call.Arguments, call.Name)
	}
	return items
}

// result returns the file of a result. An output that is stored beside the log is read in pieces.
func (s state) result(entry *continuo.Entry) item {
	note := entry.ToolName
	if entry.Outcome != "" {
		note += " · " + entry.Outcome
	}
	return readerItem(strings.TrimPrefix(entry.OutputRef, aliasState+"/"), note, func(ctx context.Context) *io.SectionReader {
		return s.log.Output(ctx, entry)
	})
}

func textItem(name, text, note string) item {
	return readerItem(name, note, func(context.Context) *io.SectionReader {
		return io.NewSectionReader(strings.NewReader(text), 0, int64(len(text)))
	})
}

func readerItem(name, note string, read func(context.Context) *io.SectionReader) item {
	return item{
		name: name, note: note,
		size: func() (int64, error) { return read(context.Background()).Size(), nil },
		open: func(ctx context.Context) (*file, error) {
			content := read(ctx)
			return &file{ReaderAt: content, Closer: io.NopCloser(nil), size: content.Size(), text: true}, nil
		},
	}
}

// walk yields files in the order of the log.
func (s state) walk(ctx context.Context, name string, depth int, after string) iter.Seq2[item, error] {
	return func(yield func(item, error) bool) {
		found, err := s.find(ctx, name)
		if err != nil || !found.folder {
			yield(found, err)
			return
		}
		w := stateWalk{state: s, ctx: ctx, yield: yield, after: path.Join(name, after)}
		if after == "" {
			w.after = ""
		}
		w.folder(name, depth)
	}
}

// stateWalk walks the folders of a conversation.
type stateWalk struct {
	state
	ctx   context.Context
	yield func(item, error) bool
	after string // name of the last yielded item; "" for all items
}

func (w *stateWalk) folder(name string, depth int) bool {
	switch name {
	case callsFolder, resultsFolder:
		return w.entries(name)
	case "logs":
		return w.child(callsFolder, depth) && w.child(resultsFolder, depth)
	case "":
		return w.child(filesFolder, depth) && w.child("logs", depth) && w.child(runsFolder, depth)
	}
	return w.named(name, depth)
}

// child yields a folder, unless it was yielded before, and its content.
func (w *stateWalk) child(name string, depth int) bool {
	switch {
	case w.after == name:
		w.after = ""
	case w.after == "":
		if !w.yield(item{name: name, folder: true}, nil) {
			return false
		}
	case !strings.HasPrefix(w.after, name+"/"):
		return true // all of it was yielded before
	}
	return depth <= 1 || w.folder(name, depth-1)
}

// entries yields the files of calls or of results.
func (w *stateWalk) entries(folder string) bool {
	begin, ok := w.begin()
	if !ok {
		return false
	}
	for entry, err := range w.log.Read(w.ctx, w.conversation, continuo.Range{From: begin}) {
		if err != nil {
			w.yield(item{}, err)
			return false
		}
		for _, found := range w.filesOf(&entry, folder) {
			if w.after != "" {
				if found.name == w.after {
					w.after = ""
				}
				continue
			}
			if !w.yield(found, nil) {
				return false
			}
		}
	}
	return true
}

// begin finds the entry of the file after which the walk continues.
func (w *stateWalk) begin() (int64, bool) {
	if w.after == "" {
		return w.since + 1, true
	}
	if match := callName.FindStringSubmatch(w.after); match != nil {
		seq, _ := strconv.ParseInt(match[1], 10, 64)
		return w.from(seq), true
	}
	entry, err := w.log.EntryByOutputRef(w.ctx, w.conversation, aliasState+"/"+w.after)
	if err != nil {
		w.yield(item{}, fmt.Errorf("after: %w", errNotState))
		return 0, false
	}
	return w.from(entry.Seq), true
}

// from returns where a walk continues after a file of an entry: a file that the caller cannot see does not
// hide later ones.
func (w *stateWalk) from(seq int64) int64 {
	if seq <= w.since {
		w.after = ""
		return w.since + 1
	}
	return max(seq, 1)
}

func (s state) filesOf(entry *continuo.Entry, folder string) []item {
	switch {
	case folder == callsFolder:
		return callItems(entry)
	case strings.HasPrefix(entry.OutputRef, aliasState+"/"+resultsFolder+"/"):
		return []item{s.result(entry)}
	}
	return nil
}

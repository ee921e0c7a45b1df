package fs

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"path"
	"slices"
	"strings"

	continuo "github.com/continuo-log/continuo"
)

// Some entries have names in @state: the inputs of a run, the outputs of its steps, and files that calls
// wrote. If several entries have the same name, the newest counts.

// source is a conversation whose entries have names in @state.
type source struct {
	conversation continuo.Conversation
	from         int64 // only entries after it count
	// joined is the seq in the caller's conversation at which the source's entries became visible; 0: the
	// entries keep their own seqs.
	joined int64
}

// position returns an entry's position in the caller's conversation; ok is false for an entry that the caller
// cannot see.
func (s state) position(of source, entry *continuo.Entry) (at int64, ok bool) {
	at = entry.Seq
	if of.joined > 0 {
		at = of.joined
	}
	return at, entry.Seq > of.from && at > s.since
}

// findNamed returns the file or folder of a name.
func (s state) findNamed(ctx context.Context, name string) (item, error) {
	sources, err := s.sources(ctx, name)
	if err != nil {
		return item{}, err
	}
	var found item
	newest := int64(0)
	for _, source := range sources {
		entry, err := s.log.EntryByOutputRef(ctx, source.conversation, aliasState+"/"+name)
		if err != nil && !errors.Is(err, continuo.ErrNotFound) {
			return item{}, err
		}
		if at, ok := s.position(source, &entry); err == nil && ok && at > newest {
			found, newest = s.namedItem(source.conversation, &entry), at
		}
	}
	if newest > 0 {
		return found, nil
	}
	names, err := s.names(ctx, name)
	if err == nil && len(names) == 0 {
		err = errNotState
	}
	return item{name: name, folder: true}, err
}

// sources returns the conversations in which names are searched, the caller's own first: for runs those that
// it is a branch of, because a run's events are in the run's own conversation, and for files the branches
// that have joined it.
func (s state) sources(ctx context.Context, name string) ([]source, error) {
	sources := []source{{conversation: s.conversation}}
	if folder, _, _ := strings.Cut(name, "/"); folder == filesFolder {
		branches, err := s.log.JoinedBranches(ctx, s.conversation)
		for _, branch := range branches {
			sources = append(sources, source{branch.Conversation, branch.Conversation.ForkSeq, branch.Seq})
		}
		return sources, err
	}
	for at := s.conversation; at.Kind == continuo.KindBranch && at.ParentID != ""; {
		parent, err := s.log.Conversation(ctx, at.ParentID)
		if err != nil {
			return nil, err
		}
		sources, at = append(sources, source{conversation: parent}), parent
	}
	return sources, nil
}

// names finds the files below a folder, at any depth. It holds in memory their names and the newest entry of
// each.
func (s state) names(ctx context.Context, folder string) (map[string]item, error) {
	sources, err := s.sources(ctx, folder)
	if err != nil {
		return nil, err
	}
	found, newest := map[string]item{}, map[string]int64{}
	for _, source := range sources {
		for entry, err := range s.log.Read(ctx, source.conversation, continuo.Range{From: source.from + 1}) {
			if err != nil {
				return nil, err
			}
			name := strings.TrimPrefix(entry.OutputRef, aliasState+"/")
			if at, ok := s.position(source, &entry); ok && at >= newest[name] && strings.HasPrefix(name, folder+"/") {
				found[name], newest[name] = s.namedItem(source.conversation, &entry), at
			}
		}
	}
	return found, nil
}

// namedItem is the file of an entry that has a name.
func (s state) namedItem(home continuo.Conversation, entry *continuo.Entry) item {
	name := strings.TrimPrefix(entry.OutputRef, aliasState+"/")
	if entry.RunEvent == nil {
		return s.written(home, name, *entry)
	}
	values := entry.RunEvent.Outputs
	if kind := entry.RunEvent.Kind; kind == continuo.RunBegan || kind == continuo.RunReplaced {
		values = entry.RunEvent.Inputs
	}
	return textItem(name, indented(values), "")
}

// written returns the file that a call wrote: the content is an argument of the call whose result the entry
// is.
func (s state) written(home continuo.Conversation, name string, result continuo.Entry) item {
	read := func(ctx context.Context) (string, error) {
		for entry, err := range s.log.Read(ctx, home, continuo.Range{To: result.Seq, Backward: true}) {
			if err != nil {
				return "", err
			}
			for _, call := range entry.ToolCalls {
				var arguments writeArguments
				if call.ID != result.ToolCallID {
					continue
				}
				if json.Unmarshal([]byte(call.Arguments), &arguments) != nil || arguments.Content == nil {
					return "", errors.New("the call that wrote this file was redacted")
				}
				return *arguments.Content, nil
			}
		}
		return "", errNotState
	}
	return item{
		name: name,
		size: func() (int64, error) {
			text, err := read(context.Background())
			return int64(len(text)), err
		},
		open: func(ctx context.Context) (*file, error) {
			text, err := read(ctx)
			if err != nil {
				return nil, err
			}
			return &file{ReaderAt: strings.NewReader(text), Closer: io.NopCloser(nil), size: int64(len(text)), text: true}, nil
		},
	}
}

// indented formats a JSON value over several lines, so that parts of it can be read.
func indented(value json.RawMessage) string {
	var text bytes.Buffer
	if json.Indent(&text, value, "", "  ") != nil {
		return string(value)
	}
	return text.String()
}

// named yields the content of a folder of names, sorted, folders before their content.
func (w *stateWalk) named(folder string, depth int) bool {
	found, err := w.names(w.ctx, folder)
	if err != nil {
		w.yield(item{}, err)
		return false
	}
	shown := map[string]item{}
	for name, file := range found {
		below := strings.Split(strings.TrimPrefix(name, folder+"/"), "/")
		for i := range below[:len(below)-1] {
			if i < depth {
				parent := path.Join(folder, path.Join(below[:i+1]...))
				shown[parent] = item{name: parent, folder: true}
			}
		}
		if len(below) <= depth {
			shown[name] = file
		}
	}
	for _, name := range slices.SortedFunc(maps.Keys(shown), comparePaths) {
		if w.after != "" && comparePaths(name, w.after) <= 0 {
			continue
		}
		w.after = ""
		if !w.yield(shown[name], nil) {
			return false
		}
	}
	w.after = ""
	return true
}

// comparePaths orders paths so that a folder precedes its content, which precedes all later names.
func comparePaths(a, b string) int {
	return slices.Compare(strings.Split(a, "/"), strings.Split(b, "/"))
}

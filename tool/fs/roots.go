// Package fs gives models files to read, list and search, under two aliases. @project is the project's
// folder; @state is what Continuo keeps of the calling conversation: a tool's whole output under
// @state/logs/tool-results/, a call's whole arguments under @state/logs/tool-calls/, the inputs and outputs
// of runs under @state/runs/, and the files that fs.write wrote under @state/files/. All are read from the
// log, so that there is no second copy that could differ.
//
// A path is checked as text first (path.go) and then opened through an [os.Root], so that neither "..", a
// link nor a race escapes from the folder. Only regular files are opened. A tool cuts its own output at a
// meaningful position and says how to request the rest.
//
// Pitfalls: links inside the project's folder are followed when a path names them, but never by a listing or
// a search below it. Ranges count bytes from 0 and lines from 1. Paths are never decoded: %2e is three
// characters of a name.
package fs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/tool"
)

// Roots configures what paths refer to. It is safe for concurrent use.
type Roots struct {
	// Log serves @state.
	Log *continuo.Log
	// ProjectDir is the folder of @project. Default none: @project is refused.
	ProjectDir string
	// Project is the project that ProjectDir belongs to: conversations of other projects have no @project.
	// Default "": all have it.
	Project string
	// Secrets are the files of ProjectDir that no tool can access. Default: none.
	Secrets Secrets
}

// files is the files below one alias. Names are relative to it, checked, with "/" between folders; "" is the
// alias itself.
type files interface {
	// open opens a file.
	open(ctx context.Context, name string) (*file, error)
	// walk yields the items below a folder, depth levels deep, each folder before its content, and only those
	// after the name after (relative to the folder; "" for all). For a file it yields the file. An error ends
	// it.
	walk(ctx context.Context, name string, depth int, after string) iter.Seq2[item, error]
	io.Closer
}

// item is a file or folder found by a walk.
type item struct {
	name   string // relative to the alias
	folder bool
	other  string // its type when neither a folder nor a regular file, such as "link"
	note   string // for a listing; may be empty
	// size in bytes and open are set for files; size may access the disk.
	size    func() (int64, error)
	open    func(context.Context) (*file, error)
	problem error // why a folder below could not be read
}

// file is an open file.
type file struct {
	io.ReaderAt
	io.Closer
	size int64 // bytes
	text bool  // known to be text
}

// maxDepth bounds how deep a walk goes, so that concurrent changes of folders cannot make it endless.
const maxDepth = 64

// of returns what paths refer to in a conversation: for one of another project there is no project folder.
func (r Roots) of(conversation continuo.Conversation) Roots {
	if r.Project != "" && conversation.ProjectID != r.Project {
		r.ProjectDir = ""
	}
	return r
}

// Useful is part of tool.Situational: without @project the tools can only show content that a request leaves
// out or shortens.
func (r Roots) Useful(s tool.Situation) bool {
	return s.Partial || r.of(s.Conversation).ProjectDir != ""
}

// find resolves a path to the files of its alias and the name below it. The caller closes the files.
func (r Roots) find(call tool.Call, path string) (files, string, error) {
	r = r.of(call.Conversation)
	alias, name, err := splitPath(path)
	if err != nil {
		return nil, "", fmt.Errorf("%w; %s", err, r.allowed())
	}
	if alias == aliasState {
		return state{log: r.Log, conversation: call.Conversation, since: call.Since}, name, nil
	}
	if r.ProjectDir == "" {
		return nil, "", fmt.Errorf("there is no project folder for this conversation; %s", r.allowed())
	}
	root, err := os.OpenRoot(r.ProjectDir)
	if err != nil {
		return nil, "", fmt.Errorf("the project's folder cannot be opened: %w", reason(err))
	}
	return project{root, r.Secrets}, name, nil
}

// open opens the file of a path.
func (r Roots) open(ctx context.Context, call tool.Call, path string) (*file, string, error) {
	below, name, err := r.find(call, path)
	if err != nil {
		return nil, "", err
	}
	defer below.Close() //nolint:errcheck // nothing was written
	opened, err := below.open(ctx, name)
	return opened, name, err
}

// allowed describes the allowed paths.
func (r Roots) allowed() string {
	if r.ProjectDir == "" {
		return "paths begin with @state/, such as @state/logs/tool-results/"
	}
	return "paths begin with @project/, the project's folder, or @state/, what is kept of this conversation"
}

// describe adds the configuration's specifics to a tool's description.
func (r Roots) describe(description string) string {
	if r.ProjectDir == "" {
		return description + " There is no @project here, only @state."
	}
	return description
}

var (
	errNoFile = errors.New("there is no such file or folder")
	errFolder = errors.New("this is a folder; fs.list shows what is in it")
)

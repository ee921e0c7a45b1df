package main

import (
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/internal/term"
)

type exportCommand struct {
	Conversations []string `arg:"" optional:"" name:"conv" help:"Which ones: ids, keys or @1."`
	All           bool     `help:"All conversations of the project that people had, the oldest change first."`
	Format        string   `default:"continuo" enum:"continuo,openai,openai-jsonl,source" help:"continuo, openai, openai-jsonl or source."`
	Output        string   `short:"o" placeholder:"FILE" help:"Write to this file; a name that ends in .gz is compressed. Default: standard output."`
	Force         bool     `help:"Replace the file when it is there."`
}

func (exportCommand) Help() string {
	return `Writes conversations out. continuo is lossless and can be imported again; openai is a list of messages that an API accepts; openai-jsonl is the same, one conversation a line; source is the form that a conversation was imported from, byte for byte in its content, with repairs undone. A file appears only when it is complete.

Examples:

    continuo export s1 --format openai
    continuo export --all -o backup.jsonl.gz
    continuo export @1 --format source | jq .`
}

func (e *exportCommand) check() error {
	switch {
	case e.All && len(e.Conversations) > 0:
		return usage("--all exports every conversation: leave out --all, or the names")
	case !e.All && len(e.Conversations) == 0:
		return usage("name the conversations to export, or give --all")
	}
	return nil
}

// Run writes the conversations.
func (e *exportCommand) Run(ctx context.Context, a *app, w *services) error {
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	conversations, err := e.conversations(ctx, w)
	if err != nil {
		return err
	}
	write := func(out io.Writer) error { return e.write(ctx, w, out, conversations) }
	if e.Output == "" {
		return write(a.out)
	}
	size, err := writeFile(e.Output, e.Force, write)
	if err == nil {
		a.note("%s with %s, %s", e.Output, term.Count(len(conversations), "conversation"), term.Size(size))
	}
	return err
}

func (e *exportCommand) conversations(ctx context.Context, w *services) ([]continuo.Conversation, error) {
	if !e.All {
		var found []continuo.Conversation
		for _, name := range e.Conversations {
			conversation, err := w.find(ctx, name)
			if err != nil {
				return nil, err
			}
			found = append(found, conversation)
		}
		return found, nil
	}
	all, _, err := w.list(ctx, 0, continuo.ConversationQuery{})
	for i, j := 0, len(all)-1; i < j; i, j = i+1, j-1 {
		all[i], all[j] = all[j], all[i]
	}
	return all, err
}

func (e *exportCommand) write(ctx context.Context, w *services, out io.Writer, conversations []continuo.Conversation) error {
	for _, conversation := range conversations {
		if ctx.Err() != nil {
			return fmt.Errorf("stopped: %w", context.Canceled)
		}
		if err := w.engine.Conversations.Export(ctx, out, e.Format, conversation); err != nil {
			return err
		}
	}
	return nil
}

// writeFile writes a file atomically, and returns its size in bytes. Unless force is set, an existing file is an error
// and stays unchanged.
func writeFile(path string, force bool, write func(io.Writer) error) (size int64, err error) {
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return 0, fmt.Errorf("write: %w", err)
	case !info.Mode().IsRegular():
		return 0, usage("write %s: it is not a regular file; standard output can be redirected to it", path)
	case !force:
		return 0, fmt.Errorf("write %s: the file %w; give --force to replace it", path, continuo.ErrExists)
	}
	temporary, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*")
	if err != nil {
		return 0, fmt.Errorf("write %s: %w", path, err)
	}
	defer os.Remove(temporary.Name()) // nothing to remove after a rename
	size, err = fill(temporary, strings.HasSuffix(path, ".gz"), write)
	if err == nil {
		err = publish(temporary.Name(), path, force)
	}
	if err != nil {
		return 0, fmt.Errorf("write %s: %w", path, err)
	}
	return size, nil
}

// fill writes a file, compressed or not, syncs it, and closes it.
func fill(file *os.File, pack bool, write func(io.Writer) error) (size int64, err error) {
	var out io.Writer = file
	finish := func() error { return nil }
	if pack {
		packed := gzip.NewWriter(file)
		out, finish = packed, packed.Close
	}
	err = write(out)
	if err == nil {
		err = finish()
	}
	if err == nil {
		err = file.Sync()
	}
	if info, statErr := file.Stat(); statErr == nil {
		size = info.Size()
	}
	return size, errors.Join(err, file.Close())
}

// publish gives a finished file its name. A link fails if the name exists, so that a file that was created in the
// meantime is not lost; file systems without links get a rename.
func publish(from, to string, force bool) error {
	if !force {
		switch err := os.Link(from, to); {
		case err == nil:
			return nil
		case errors.Is(err, fs.ErrExist):
			return fmt.Errorf("the file %w; give --force to replace it", continuo.ErrExists)
		}
	}
	return os.Rename(from, to)
}

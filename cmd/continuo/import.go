package main

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"

	"github.com/continuo-log/continuo/engine/conversations"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/engine"
	"github.com/continuo-log/continuo/interchange"
)

type importCommand struct {
	Files   []string `arg:"" name:"file" help:"Files and folders; - is standard input."`
	Format  *string  `enum:"openai,openai-legacy,anthropic,unified,pipeline,continuo" help:"Read every file as openai, openai-legacy, anthropic, unified, pipeline or continuo. Default: recognised for each conversation."`
	Key     string   `placeholder:"KEY" help:"The key of the conversation, by which a later import recognises it. Of a file with several, the second gets KEY-2, and so on. Default: the source's own id."`
	User    string   `placeholder:"USER" help:"The user of the conversations, where the source does not name one."`
	DryRun  bool     `name:"dry-run" help:"Read and report, but add nothing."`
	Repairs bool     `help:"List every repair: conversation, message index, rule, action."`
	JSON    bool     `help:"Write the report as JSON, with every repair and every error."`
}

func (importCommand) Help() string {
	return `Adds conversations from files: OpenAI chat JSON and JSON lines (also gzip-packed, also the older function_call form), Anthropic messages, the pipeline's chat_<id>.json, the unified log's predecessor (a folder with index.json), and Continuo's own export. What a log could not show, such as a tool result without its call, is repaired, and every repair is reported. A conversation that is there already is not added again. What is broken is reported, the rest is imported, and the exit code is 1.

A conversation is recognised by the id in its source (session_id, conversation_id or id; it becomes its key, so that a chat with the old session id continues it), else by its file and its position in it; never by its content. Messages that are new in the source are added, unless the conversation was written to since the last import. chat_ID.json of the pipeline goes on in the Telegram chat ID.

Examples:

    continuo import conversations.jsonl.gz
    continuo import --dry-run --repairs old/
    cat chat.json | continuo import -`
}

// Run imports all files and prints the report.
func (i *importCommand) Run(ctx context.Context, a *app) error {
	ctx, ignore := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer ignore()
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	if err := i.check(); err != nil {
		return err
	}
	sources, err := i.sources(a)
	if err != nil {
		return err
	}
	if i.Key != "" && len(sources) > 1 {
		return usage("--key: name one file, not %d", len(sources))
	}
	add, closeStore, err := i.adder(ctx, a)
	if err != nil {
		return err
	}
	defer closeStore()
	run := &importRun{add: i.named(add), progress: newReadProgress(a.console, sources), stop: stop}
	report := importReport{DryRun: i.DryRun}
	report.Files = run.all(ctx, sources)
	run.progress.bar.Close()
	if err := report.write(a, i); err != nil {
		return err
	}
	switch {
	case ctx.Err() != nil:
		return fmt.Errorf("stopped: %w; what was imported stays, and the same command continues", context.Cause(ctx))
	case report.broken() > 0:
		return errSilent
	}
	return nil
}

// check refuses invalid keys and users.
func (i *importCommand) check() error {
	if i.Key != "" {
		if err := conversations.CheckKey(i.Key); err != nil {
			return usage("--key: %v", err)
		}
	}
	if err := continuo.CheckUserID(i.User); err != nil {
		return usage("--user: %v", err)
	}
	return nil
}

// named gives documents the key and the user that the command names, and those without an id a key from their file and
// their position in it. Standard input has no name: documents from there without an id are new each time.
func (i *importCommand) named(add addFunc) addFunc {
	return func(ctx context.Context, document interchange.Document) (engine.Imported, error) {
		conversation := &document.Conversation
		conversation.UserID = cmp.Or(conversation.UserID, i.User)
		switch {
		case i.Key != "" && document.Position > 1:
			conversation.Key = fmt.Sprintf("%s-%d", i.Key, document.Position)
		case i.Key != "":
			conversation.Key = i.Key
		case conversation.Key == "" && document.File != "":
			path, err := filepath.Abs(document.File)
			if err != nil {
				return engine.Imported{}, fmt.Errorf("import %s: %w", document.File, err)
			}
			sum := sha256.Sum256(fmt.Appendf(nil, "%s\n%d", path, document.Position))
			conversation.Key = "import-" + hex.EncodeToString(sum[:12])
		}
		return add(ctx, document)
	}
}

// adder returns the function for each document: it adds the document, or for a dry run only looks whether it exists.
func (i *importCommand) adder(ctx context.Context, a *app) (add addFunc, closeStore func(), err error) {
	settings, err := a.loadSettings()
	if err != nil {
		return nil, nil, err
	}
	if i.DryRun && settings.Store.URL == "" {
		if _, err := os.Stat(settings.Store.Path); errors.Is(err, fs.ErrNotExist) {
			return lookUp(nil), func() {}, nil // a dry run creates no store
		}
	}
	w, err := a.wireWith(ctx, settings, buildOptions{})
	if err != nil {
		return nil, nil, err
	}
	if i.DryRun {
		return lookUp(w), w.Close, nil
	}
	add = func(ctx context.Context, document interchange.Document) (engine.Imported, error) {
		return w.engine.Conversations.Import(ctx, w.scope(), document)
	}
	return add, w.Close, nil
}

type addFunc func(context.Context, interchange.Document) (engine.Imported, error)

// lookUp returns a function that reports what adding would do; w is nil if there is no store.
func lookUp(w *services) addFunc {
	var mu sync.Mutex
	seen := map[string]bool{}
	return func(ctx context.Context, document interchange.Document) (engine.Imported, error) {
		key := document.Conversation.Key
		mu.Lock()
		existed := seen[key]
		seen[key] = key != ""
		mu.Unlock()
		result := engine.Imported{
			Conversation: document.Conversation, Existed: existed, Entries: len(document.Entries),
			Repairs: document.Repairs, Source: document.Source, Format: document.Format,
		}
		if w == nil || existed || key == "" {
			return result, nil
		}
		found, err := w.engine.Conversations.Find(ctx, w.scope(), key)
		switch {
		case errors.Is(err, continuo.ErrNotFound):
			return result, nil
		case err != nil:
			return engine.Imported{}, err
		}
		result.Conversation, result.Existed = found, true
		return result, nil
	}
}

// importSource is one argument: a file, a folder or standard input.
type importSource struct {
	name string
	size int64 // in bytes, 0 if unknown
	read func(wrap func(io.Reader) io.Reader) iter.Seq2[interchange.Document, error]
}

// sources inspects every argument before anything is read.
func (i *importCommand) sources(a *app) ([]importSource, error) {
	options := interchange.Options{}
	if i.Format != nil {
		options.Format = *i.Format
	}
	var sources []importSource
	for _, name := range i.Files {
		if name == "-" {
			sources = append(sources, importSource{name: "standard input", read: func(wrap func(io.Reader) io.Reader) iter.Seq2[interchange.Document, error] {
				return unnamed(interchange.Read("standard input", wrap(a.in), options))
			}})
			continue
		}
		info, err := os.Stat(name)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil, fmt.Errorf("import %s: %w: there is no such file", name, continuo.ErrNotFound)
		case err != nil:
			return nil, fmt.Errorf("import: %w", err)
		case filepath.Base(name) == "index.json": // the store of the unified log's predecessor: the file's folder
			found, err := folderSources(filepath.Dir(name), options)
			if err != nil {
				return nil, err
			}
			sources = append(sources, found...)
		case info.IsDir():
			found, err := folderSources(name, options)
			if err != nil {
				return nil, err
			}
			sources = append(sources, found...)
		default:
			sources = append(sources, fileSource(name, info.Size(), options))
		}
	}
	return sources, nil
}

func fileSource(name string, size int64, options interchange.Options) importSource {
	return importSource{name: name, size: size, read: func(wrap func(io.Reader) io.Reader) iter.Seq2[interchange.Document, error] {
		return func(yield func(interchange.Document, error) bool) {
			file, err := os.Open(name)
			if err != nil {
				yield(interchange.Document{Source: name}, fmt.Errorf("read: %w", err))
				return
			}
			defer file.Close()
			for document, err := range interchange.Read(name, wrap(file), options) {
				if !yield(document, err) {
					return
				}
			}
		}
	}}
}

// folderSources lists the files of a folder one by one, so that each is reported; a folder that is the store of the
// unified log's predecessor, or has no such files, is passed to interchange as a whole.
func folderSources(folder string, options interchange.Options) ([]importSource, error) {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return nil, fmt.Errorf("import: %w", err)
	}
	var files []importSource
	isIndex := func(entry os.DirEntry) bool { return entry.Name() == "index.json" }
	if !slices.ContainsFunc(entries, isIndex) {
		for _, entry := range entries {
			path, name := filepath.Join(folder, entry.Name()), strings.TrimSuffix(entry.Name(), ".gz")
			info, err := os.Stat(path)
			if err == nil && info.Mode().IsRegular() && (strings.HasSuffix(name, ".json") || strings.HasSuffix(name, ".jsonl")) {
				files = append(files, fileSource(path, info.Size(), options))
			}
		}
	}
	if len(files) > 0 {
		return files, nil
	}
	whole := func(func(io.Reader) io.Reader) iter.Seq2[interchange.Document, error] {
		return interchange.ReadFolder(folder, options)
	}
	return []importSource{{name: folder, read: whole}}, nil
}

// unnamed removes the file's name from documents: standard input has none.
func unnamed(documents iter.Seq2[interchange.Document, error]) iter.Seq2[interchange.Document, error] {
	return func(yield func(interchange.Document, error) bool) {
		for document, err := range documents {
			document.File = ""
			if !yield(document, err) {
				return
			}
		}
	}
}

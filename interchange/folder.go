package interchange

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/continuo-log/continuo/internal/messages"
	"github.com/continuo-log/continuo/internal/rawjson"
)

// ReadFolder yields the conversations of a folder. With an index.json it is the store of the unified log's
// predecessor: the index names the conversations, <id>/messages.json holds each, and folders that the index
// does not name are read last. Without one, every .json and .jsonl file (also with .gz) in the folder itself
// is read in the order of names, such as the pipeline's chat_<id>.json. Nothing outside the folder is read,
// whatever ids the index has.
func ReadFolder(path string, o Options) iter.Seq2[Document, error] {
	return func(yield func(Document, error) bool) {
		fail := func(err error) { yield(Document{Source: path}, fmt.Errorf("read folder %s: %w", path, err)) }
		filled, err := o.filled()
		if err != nil {
			fail(err)
			return
		}
		root, err := os.OpenRoot(path)
		if err != nil {
			fail(err)
			return
		}
		defer root.Close()
		index, err := readFile(root, "index.json", filled.MaxBytes)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			err = eachFile(root, path, o, yield)
		case err == nil:
			err = eachIndexed(root, path, index, filled, yield)
		}
		if err != nil {
			fail(err)
		}
	}
}

// eachFile reads the files of a folder sequentially.
func eachFile(root *os.Root, path string, o Options, yield func(Document, error) bool) error {
	entries, err := fs.ReadDir(root.FS(), ".")
	if err != nil {
		return err
	}
	found := false
	for _, entry := range entries {
		name := strings.TrimSuffix(entry.Name(), ".gz")
		if entry.IsDir() || !strings.HasSuffix(name, ".json") && !strings.HasSuffix(name, ".jsonl") {
			continue
		}
		found = true
		file, err := root.Open(entry.Name())
		if err != nil {
			return err
		}
		for document, err := range Read(filepath.Join(path, entry.Name()), file, o) {
			if !yield(document, err) {
				return file.Close()
			}
		}
		if err := file.Close(); err != nil {
			return err
		}
	}
	if !found {
		return invalid("there is no index.json and no .json or .jsonl file in it")
	}
	return nil
}

// eachIndexed reads the conversations of an index, and then the others.
func eachIndexed(root *os.Root, path string, index []byte, o Options, yield func(Document, error) bool) error {
	listed, err := readIndex(index)
	if err != nil {
		return err
	}
	folders, err := fs.ReadDir(root.FS(), ".")
	if err != nil {
		return err
	}
	for _, folder := range folders {
		id := folder.Name()
		if _, err := root.Stat(filepath.Join(id, "messages.json")); err == nil && folder.IsDir() &&
			!slices.ContainsFunc(listed, func(c indexed) bool { return c.id == id }) {
			listed = append(listed, indexed{id: id})
		}
	}
	for _, conversation := range listed {
		location := filepath.Join(path, conversation.id, "messages.json")
		document, err := conversation.read(root, location, o)
		if err != nil {
			document, err = Document{Source: location}, fmt.Errorf("read %s: %w", location, err)
		}
		if !yield(document, err) {
			return nil
		}
	}
	return nil
}

// indexed is one conversation of an index with its data there.
type indexed struct {
	id     string
	fields rawjson.Object
}

// readIndex reads a list of conversations, an object with such a list, or an object by ids.
func readIndex(raw []byte) ([]indexed, error) {
	var list []json.RawMessage
	if json.Unmarshal(raw, &list) == nil {
		return indexList(list)
	}
	object, err := rawjson.ParseObject(raw)
	if err != nil {
		return nil, invalid("index.json must be a JSON list or object: %v", err)
	}
	if json.Unmarshal(object.Get("conversations"), &list) == nil {
		return indexList(list)
	}
	var found []indexed
	for _, field := range object {
		if fields, err := rawjson.ParseObject(field.Value); err == nil {
			found = append(found, indexed{field.Key, fields})
		}
	}
	if len(found) == 0 && len(object) > 0 {
		return nil, invalid("index.json must hold conversations with ids")
	}
	return found, nil
}

func indexList(list []json.RawMessage) ([]indexed, error) {
	found := make([]indexed, len(list))
	for i, raw := range list {
		fields, err := rawjson.ParseObject(raw)
		if err != nil {
			return nil, invalid("index.json, conversation %d, must be an object, not %s", i, messages.Kind(raw))
		}
		id, _ := rawjson.String(fields.Get("id"))
		if id == "" {
			return nil, invalid("index.json, conversation %d, has no id", i)
		}
		found[i] = indexed{id, fields}
	}
	return found, nil
}

// read reads one conversation of the folder.
func (c indexed) read(root *os.Root, location string, o Options) (Document, error) {
	raw, err := readFile(root, filepath.Join(c.id, "messages.json"), o.MaxBytes)
	if err != nil {
		return Document{}, err
	}
	if err := checkJSON(raw, o.MaxBytes); err != nil {
		return Document{}, err
	}
	s, err := parseSource(raw)
	if err != nil {
		return Document{}, err
	}
	for _, field := range s.fields {
		if c.fields.Get(field.Key) == nil {
			c.fields.Set(field.Key, field.Value)
		}
	}
	s.position, s.list, s.fields = location, "messages", c.fields
	if s.id() == "" {
		s.name = c.id
	}
	if o.Format == "" {
		o.Format = FormatUnified
	}
	return s.document(o)
}

// readFile reads a file of the folder whole.
func readFile(root *os.Root, name string, limit int) ([]byte, error) {
	file, err := root.Open(name)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	raw, err := io.ReadAll(io.LimitReader(file, int64(limit)+1))
	if err == nil && len(raw) > limit {
		err = invalid("%s has more than the limit of %d bytes", name, limit)
	}
	return raw, err
}

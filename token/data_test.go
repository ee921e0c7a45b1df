package token

import (
	"bufio"
	"cmp"
	"compress/gzip"
	"encoding/json"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// TestRealConversations compares the ids of recorded conversations with the oracle's. The data is not part of
// this repository: the folder is CONTINUO_DATA, by default a checkout's neighbour. A short run takes a spread
// of messages from the beginning of every file, a long run (CONTINUO_LONG=1) all of them.
func TestRealConversations(t *testing.T) {
	for _, file := range dataFiles(t) {
		t.Run(filepath.Base(file), func(t *testing.T) {
			var texts []string
			if long() {
				texts = dataTexts(t, file, math.MaxInt)
			} else {
				texts = spread(dataTexts(t, file, 128<<10), 4<<10)
			}
			if len(texts) == 0 {
				t.Errorf("%s holds no text", file)
			}
			eachEncoding(t, func(t *testing.T, enc *Encoding) {
				for _, text := range texts {
					if oracleKnows(text) {
						checkOracle(t, enc, text)
					}
					checkLaws(t, enc, text)
				}
			})
		})
	}
}

// BenchmarkCountData counts whole files of recorded conversations, cache emptied before each round.
func BenchmarkCountData(b *testing.B) {
	for _, file := range dataFiles(b) {
		texts := dataTexts(b, file, math.MaxInt)
		size := int64(0)
		for _, text := range texts {
			size += int64(len(text))
		}
		for _, enc := range []*Encoding{O200k(), CL100k()} {
			b.Run(enc.Name()+"/"+filepath.Base(file), func(b *testing.B) {
				b.SetBytes(size)
				b.ReportAllocs()
				for b.Loop() {
					b.StopTimer()
					*enc.cache = pieceCache{}
					b.StartTimer()
					for _, text := range texts {
						enc.Count(text)
					}
				}
			})
		}
	}
}

func dataFiles(t testing.TB) []string {
	t.Helper()
	folder := cmp.Or(os.Getenv("CONTINUO_DATA"), filepath.Join("..", "..", "shared", "data"))
	files, err := filepath.Glob(filepath.Join(folder, "*.jsonl.gz"))
	if err != nil {
		t.Fatal(err)
	}
	if len(files) == 0 {
		t.Skipf("SKIPPED: no recorded conversations (*.jsonl.gz) in %s; set CONTINUO_DATA to their folder", folder)
	}
	return files
}

// dataTexts returns the strings of the messages in a file, contents, tool calls and names, up to the
// conversation that makes them size bytes.
func dataTexts(t testing.TB, file string, size int) []string {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	gz, err := gzip.NewReader(f)
	if err != nil {
		t.Fatalf("open %s: %v", file, err)
	}
	var texts []string
	read := 0
	decoder := json.NewDecoder(bufio.NewReader(gz))
	for read < size && decoder.More() {
		var conversation struct{ Messages any }
		if err := decoder.Decode(&conversation); err != nil {
			t.Fatalf("read %s: %v", file, err)
		}
		known := len(texts)
		texts = appendStrings(texts, conversation.Messages)
		for _, text := range texts[known:] {
			read += len(text)
		}
	}
	return texts
}

func appendStrings(texts []string, value any) []string {
	switch value := value.(type) {
	case string:
		texts = append(texts, value)
	case []any:
		for _, element := range value {
			texts = appendStrings(texts, element)
		}
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(value)) {
			texts = appendStrings(texts, value[key])
		}
	}
	return texts
}

// spread returns texts from all over the list, together about size bytes.
func spread(texts []string, size int) []string {
	total := 0
	for _, text := range texts {
		total += len(text)
	}
	var out []string
	kept, seen := 0, 0
	for _, text := range texts {
		seen += len(text)
		if len(text) < size && kept*total <= seen*size {
			out = append(out, text)
			kept += len(text)
		}
	}
	return out
}

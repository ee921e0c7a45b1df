package child

import (
	"io"
	"strings"
	"sync"
)

// maxTail is how much of the end of stderr is kept, in bytes.
const maxTail = 2 << 10

// tail keeps the end of what is read.
type tail struct {
	mu   sync.Mutex
	kept []byte
	cut  bool
}

// read reads until the end. It always reads on, so that the program never waits for it.
func (t *tail) read(from io.Reader) {
	buffer := make([]byte, 16<<10)
	for {
		n, err := from.Read(buffer)
		t.add(buffer[:n])
		if err != nil {
			return
		}
	}
}

func (t *tail) add(data []byte) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.kept = append(t.kept, data...)
	if over := len(t.kept) - maxTail; over > 0 {
		t.kept, t.cut = append(t.kept[:0], t.kept[over:]...), true
	}
}

// words is the kept text, readable, behind words that lead to it.
func (t *tail) words() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	var plain Plain
	text := strings.TrimSpace(plain.Text(t.kept) + plain.End())
	switch {
	case text == "":
		return ""
	case t.cut:
		return "; its stderr ended with: …" + text
	}
	return "; its stderr: " + text
}

package child

import (
	"io"
	"strings"
	"sync"

	"github.com/continuo-log/continuo/internal/secret"
)

// maxTail is how much of the end of stderr is kept, in bytes.
const maxTail = 2 << 10

// tail keeps the end of what is read.
type tail struct {
	// secrets are what the words must not repeat: values of the environment that the program was given.
	secrets []string

	mu   sync.Mutex
	kept []byte
	cut  bool
}

// minSecret is from how many bytes on a value is taken for a secret; shorter ones are words of any text.
const minSecret = 6

// hide sets the secrets to the values of NAME=value.
func (t *tail) hide(env []string) {
	for _, variable := range env {
		if _, value, _ := strings.Cut(variable, "="); len(value) >= minSecret {
			t.secrets = append(t.secrets, value)
		}
	}
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
	text := plain.Text(t.kept) + plain.End()
	if t.cut {
		text = t.withoutHalf(text)
	}
	text = strings.TrimSpace(secret.New(t.secrets...).Text(text))
	switch {
	case text == "":
		return ""
	case t.cut:
		return "; its stderr ended with: …" + text
	}
	return "; its stderr: " + text
}

// withoutHalf takes the rest of a secret off the beginning of a text, where the cut fell into it.
func (t *tail) withoutHalf(text string) string {
	for _, secret := range t.secrets {
		for n := len(secret) - 1; n > 0; n-- {
			if rest, ok := strings.CutPrefix(text, secret[len(secret)-n:]); ok {
				text = rest
				break
			}
		}
	}
	return text
}

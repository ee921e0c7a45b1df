package child

import (
	"io"
	"strings"
	"sync"

	"github.com/continuo-log/continuo/internal/secret"
)

// maxTail is how many bytes of the end of stderr are kept.
const maxTail = 2 << 10

// tail keeps the end of a stream.
type tail struct {
	// secrets are removed from the kept text: the values of the environment that the program was given.
	secrets []string
	line    func(line []byte) // receives each line; nil

	mu   sync.Mutex
	kept []byte
	cut  bool
}

// minSecret is the length in bytes from which a value counts as a secret; shorter ones occur in any text.
const minSecret = 6

// hide sets the secrets to the values of NAME=value.
func (t *tail) hide(env []string) {
	for _, variable := range env {
		if _, value, _ := strings.Cut(variable, "="); len(value) >= minSecret {
			t.secrets = append(t.secrets, value)
		}
	}
}

// read reads until the end, without pauses, so that the program never waits for it.
func (t *tail) read(from io.Reader) {
	buffer := make([]byte, 16<<10)
	var line []byte
	for {
		n, err := from.Read(buffer)
		t.add(buffer[:n])
		line = t.pass(line, buffer[:n])
		if err != nil {
			if len(line) > 0 {
				t.line(line)
			}
			return
		}
	}
}

// maxStderrLine is how many bytes of a line are passed on.
const maxStderrLine = 1 << 10

// pass passes the lines on that data completes, and returns the beginning of the next.
func (t *tail) pass(line, data []byte) []byte {
	if t.line == nil {
		return nil
	}
	for _, b := range data {
		switch {
		case b == '\n':
			t.line(line)
			line = line[:0]
		case len(line) < maxStderrLine:
			line = append(line, b)
		}
	}
	return line
}

func (t *tail) add(data []byte) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.kept = append(t.kept, data...)
	if over := len(t.kept) - maxTail; over > 0 {
		t.kept, t.cut = append(t.kept[:0], t.kept[over:]...), true
	}
}

// text returns the kept text in readable form, and whether there was more before it.
func (t *tail) text() (text string, cut bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	var plain Plain
	text = plain.Text(t.kept) + plain.End()
	if t.cut {
		text = t.withoutHalf(text)
	}
	return strings.TrimSpace(secret.New(t.secrets...).Text(text)), t.cut
}

// quoted returns the kept text after introductory text.
func (t *tail) quoted() string {
	text, cut := t.text()
	switch {
	case text == "":
		return ""
	case cut:
		return "; its stderr ended with: …" + text
	}
	return "; its stderr: " + text
}

func (t *tail) lastLine() string {
	text, _ := t.text()
	return text[strings.LastIndexByte(text, '\n')+1:]
}

// withoutHalf removes the rest of a secret from the beginning of a text that was cut inside the secret.
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

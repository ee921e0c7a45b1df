package term

import (
	"sync"
	"time"
)

// Progress shows a bar with a label and a text on a terminal. It is safe for concurrent use.
type Progress struct {
	label string
	width func() int // of the terminal

	mu     sync.Mutex
	screen *Screen // nil shows nothing
	text   string  // what is to be shown
	later  *time.Timer
}

// NewProgress returns a bar on a terminal of a width in columns. A nil screen shows nothing. The caller must close it.
func NewProgress(screen *Screen, width func() int, label string) *Progress {
	return &Progress{screen: screen, width: width, label: label}
}

// The width of a bar, and how often it is drawn at most.
const (
	barWidth = 30
	barEvery = 100 * time.Millisecond
)

// Set shows how much of the whole is done, and a text for it.
func (p *Progress) Set(done, whole int64, text string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.text = p.label + " " + Blocks(done, max(whole, done), barWidth) + " " + text
	if p.screen == nil || p.later != nil {
		return
	}
	p.draw()
	p.later = time.AfterFunc(barEvery, p.drawLater)
}

// drawLater shows the newest text, some of which may have come too soon after another.
func (p *Progress) drawLater() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.draw()
	p.later = nil
}

func (p *Progress) draw() {
	if p.screen != nil {
		width := p.width()
		p.screen.Show([]string{Fit(p.text, max(width-1, 1))}, width)
	}
}

// Close removes the bar. It may be called again.
func (p *Progress) Close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.screen == nil {
		return
	}
	p.screen.Show(nil, p.width())
	p.screen = nil
	if p.later != nil {
		p.later.Stop()
	}
}

package render

import "strings"

// fence is the reader's state of a code fence around the whole answer.
type fence struct {
	opening string // the answer's first line, until the next lines decide
	all     bool   // everything is in a fence
	inner   bool   // a code block within it is open
	closing bool   // the last line may end the fence, and is held back
}

const (
	fenceMark = "```"
	maxFence  = 64 // bytes of a fence line
)

// readFence reads a line of a fence around the whole answer, if it is one. It reports wait when more text is
// needed to decide.
func (r *EventReader) readFence(line string, whole bool, lineEnd string) (taken, wait bool) {
	first := r.kind == "" && r.fence.opening == ""
	if !first && !r.fence.all {
		return false, false
	}
	if !whole {
		return false, len(line) <= maxFence && (strings.HasPrefix(fenceMark, line) || strings.HasPrefix(line, fenceMark))
	}
	info, isFence := strings.CutPrefix(line, fenceMark)
	if !isFence || len(line) > maxFence || strings.Contains(info, "`") {
		return false, false
	}
	if first {
		if lineBreak(lineEnd) == "" {
			return false, false
		}
		r.fence.opening = line + lineEnd
		r.buffer = r.buffer[len(r.fence.opening):]
		return true, false
	}
	return r.readInnerFence(line, info, lineEnd), false
}

// readInnerFence reads a fence line within the fence: that of a code block, or the end of the outer fence.
func (r *EventReader) readInnerFence(line, info, lineEnd string) bool {
	switch {
	case r.fence.inner:
		r.fence.inner = false
	case r.fence.closing: // the line before opened a code block, and this one closes it
		r.fence.closing = false
	case strings.TrimSpace(info) != "":
		r.fence.inner = true
	default:
		r.fence.closing = true
		r.hold(line + lineEnd)
		r.buffer = r.buffer[len(line)+len(lineEnd):]
		return true
	}
	return false
}

package render

import "strings"

// fence is what a reader knows of a code fence around everything.
type fence struct {
	opening string // the line that the answer begins with, while it is not known what follows
	all     bool   // everything is in a fence
	inner   bool   // a code block within it is open
	closing bool   // the last line may be the fence's end: it is held back
}

const (
	fenceMark = "```"
	maxFence  = 64 // bytes of a fence line
)

// readFence reads a line of a fence around everything, if it is one. It reports wait when more must come
// before that is known.
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

// readInnerFence reads a fence line within the fence: a code block's, or the end of all.
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

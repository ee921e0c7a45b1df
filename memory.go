package continuo

import (
	"context"
	"sync/atomic"
)

// Memory is what the work of one request may take for entries. It is safe for concurrent use.
type Memory interface {
	// Take asks for so many more bytes of stored entries, or refuses with an error; less than 0 gives back.
	Take(bytes int64) error
}

// WithMemory returns a context under which a [Log] asks for memory before it hands out entries: for those that a reader
// keeps until the request is over (Range.Keeps), and else for one page at a time. A refusal ends the reading with the
// error. Nil takes the memory out of a context, for work that goes on when the request is over.
func WithMemory(ctx context.Context, memory Memory) context.Context {
	if memory == nil && memoryOf(ctx).Memory == nil {
		return ctx
	}
	return context.WithValue(ctx, memoryKey{}, optionalMemory{memory})
}

// TakeMemory takes bytes of the memory of a context, if that has any, for something besides entries.
func TakeMemory(ctx context.Context, bytes int64) error { return memoryOf(ctx).take(bytes) }

// HoldMemory returns a context under which all that is taken counts until it is released, rather than until the request
// is over.
func HoldMemory(ctx context.Context) (holding context.Context, release func()) {
	memory := memoryOf(ctx)
	if memory.Memory == nil {
		return ctx, func() {}
	}
	held := &heldMemory{memory: memory}
	return WithMemory(ctx, held), func() { memory.give(held.taken.Swap(0)) }
}

// heldMemory counts what it passes on.
type heldMemory struct {
	memory optionalMemory
	taken  atomic.Int64
}

// Take is part of [Memory].
func (h *heldMemory) Take(bytes int64) error {
	err := h.memory.take(bytes)
	if err == nil {
		h.taken.Add(bytes)
	}
	return err
}

type memoryKey struct{}

// optionalMemory is a Memory, or none.
type optionalMemory struct{ Memory }

func memoryOf(ctx context.Context) optionalMemory {
	memory, _ := ctx.Value(memoryKey{}).(optionalMemory)
	return memory
}

func (m optionalMemory) take(bytes int64) error {
	if m.Memory == nil || bytes == 0 {
		return nil
	}
	return m.Take(bytes)
}

func (m optionalMemory) give(bytes int64) { _ = m.take(-bytes) } // to give is never refused

// bytes is about how much memory an entry takes.
func (e *Entry) bytes() int64 {
	const rest = 1 << 10
	sum := rest + len(e.Content.text) + len(e.Widget) + len(e.Extra)
	for _, part := range e.Content.parts {
		sum += len(part.Text) + len(part.Raw)
	}
	for _, call := range e.ToolCalls {
		sum += len(call.Arguments) + len(call.Extra)
	}
	for _, data := range e.Vendor {
		sum += len(data)
	}
	if e.Reasoning != nil {
		sum += len(e.Reasoning.Text) + len(e.Reasoning.Signature)
	}
	return int64(sum)
}

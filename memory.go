package continuo

import (
	"context"
	"sync/atomic"
)

// Memory is one request's memory budget for entries. It is safe for concurrent use.
type Memory interface {
	// Take reserves so many more bytes for stored entries, or refuses with an error; a negative number releases them.
	Take(bytes int64) error
}

// WithMemory returns a context under which a [Log] reserves memory before it yields entries: until the end of the
// request for entries that the reader keeps (Range.Keeps), otherwise for one page at a time. A refusal ends the read
// with the error. A nil memory removes the budget from a context, for work that continues after the request.
func WithMemory(ctx context.Context, memory Memory) context.Context {
	if memory == nil && memoryOf(ctx).Memory == nil {
		return ctx
	}
	return context.WithValue(ctx, memoryKey{}, optionalMemory{memory})
}

// TakeMemory reserves bytes of the context's memory budget, if it has one, for data other than entries.
func TakeMemory(ctx context.Context, bytes int64) error { return memoryOf(ctx).take(bytes) }

// HoldMemory returns a context whose reservations are released by release rather than at the end of the request.
func HoldMemory(ctx context.Context) (holding context.Context, release func()) {
	memory := memoryOf(ctx)
	if memory.Memory == nil {
		return ctx, func() {}
	}
	held := &heldMemory{memory: memory}
	return WithMemory(ctx, held), func() { memory.give(held.taken.Swap(0)) }
}

// heldMemory counts the reservations that it forwards.
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

// optionalMemory is a Memory that may be nil.
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

// takeEntries reserves the memory of entries.
func (m optionalMemory) takeEntries(entries []Entry) (taken int64, err error) {
	if m.Memory == nil {
		return 0, nil
	}
	for i := range entries {
		taken += entries[i].bytes()
	}
	if err := m.take(taken); err != nil {
		return 0, err
	}
	return taken, nil
}

func (m optionalMemory) give(bytes int64) { _ = m.take(-bytes) } // releasing is never refused

// bytes estimates the memory that an entry takes.
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

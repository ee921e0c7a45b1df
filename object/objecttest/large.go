package objecttest

import (
	"bytes"
	"crypto/sha256"
	"io"
	"math/rand/v2"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"testing"

	continuo "github.com/continuo-log/continuo"
)

const largeBytes = 64 << 20

// pattern yields an endless sequence of bytes derived from a seed.
func pattern(seed byte) io.Reader { return rand.NewChaCha8([32]byte{seed}) }

func testLarge(t *testing.T, store continuo.ObjectStore) { passLarge(t, store) }

// Bounded checks that 64 MiB go in and out in less memory than limit bytes above what is used before. It is
// for stores that do not hold their objects in the process's memory.
func Bounded(t *testing.T, store continuo.ObjectStore, limit uint64) {
	defer debug.SetGCPercent(debug.SetGCPercent(10)) // so that free memory is not counted
	runtime.GC()
	before := heapBytes()
	if peak := passLarge(t, store); peak > before+limit {
		t.Errorf("64 MiB took %d MiB of memory, want at most %d", (peak-before)>>20, limit>>20)
	} else {
		t.Logf("64 MiB took %d MiB of memory", (max(peak, before)-before)>>20)
	}
}

// passLarge puts 64 MiB and reads them again, and returns the highest memory use that it observed.
func passLarge(t *testing.T, store continuo.ObjectStore) (peak uint64) {
	t.Helper()
	sent, received := sha256.New(), sha256.New()
	watched := func(p []byte) (int, error) { peak = max(peak, heapBytes()); return len(p), nil }
	data := io.TeeReader(io.LimitReader(pattern(7), largeBytes), io.MultiWriter(sent, writerFunc(watched)))
	noError(t, store.PutObject(t.Context(), "large/object", data))
	body, err := store.ReadObject(t.Context(), "large/object", 0, -1)
	noError(t, err)
	// Without WriteTo and ReadFrom, so that it goes through in small blocks.
	n, err := io.CopyBuffer(io.MultiWriter(received, writerFunc(watched)), struct{ io.Reader }{body}, make([]byte, 1<<16))
	noError(t, err)
	noError(t, body.Close())
	if n != largeBytes || !bytes.Equal(received.Sum(nil), sent.Sum(nil)) {
		t.Errorf("%d bytes came back of %d, or others", n, largeBytes)
	}
	want := make([]byte, 1000)
	whole := pattern(7)
	_, _ = io.CopyN(io.Discard, whole, largeBytes-1000)
	_, _ = io.ReadFull(whole, want)
	if tail, err := get(t.Context(), store, "large/object", largeBytes-1000, -1); err != nil || tail != string(want) {
		t.Errorf("its last 1000 bytes are others (%v)", err)
	}
	return peak
}

type writerFunc func(p []byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

func heapBytes() uint64 {
	sample := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}

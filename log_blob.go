package continuo

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"

	"github.com/continuo-log/continuo/internal/rawjson"
)

// PutEnvelope stores an envelope and returns its hash; Envelope reads it back.
func (l *Log) PutEnvelope(ctx context.Context, envelope Envelope) (string, error) {
	blob, err := l.EnvelopeBlob(envelope)
	if err != nil || blob.Data == nil {
		return blob.Hash, err
	}
	return l.PutText(ctx, blob.Data)
}

// EnvelopeBlob returns the blob that PutEnvelope stores, for a write that stores it in its commit. Its Data is nil where the
// log knows that it is stored.
func (l *Log) EnvelopeBlob(envelope Envelope) (Blob, error) {
	data, err := rawjson.Marshal(envelope)
	if err != nil {
		return Blob{}, fmt.Errorf("envelope: %w", err)
	}
	blob := Blob{Hash: hashOf(data), Data: data}
	if l.knowsBlob(blob.Hash) {
		blob.Data = nil
	}
	return blob, nil
}

// KnowBlobs remembers that blobs are stored, so that they are not written again.
func (l *Log) KnowBlobs(blobs []Blob) {
	for _, blob := range blobs {
		l.cacheBlob(blob.Hash)
	}
}

func hashOf(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// PutText stores a text and returns its SHA-256 in hex, by which entries refer to it; Text reads it back.
func (l *Log) PutText(ctx context.Context, text []byte) (string, error) {
	hash := hashOf(text)
	if l.knowsBlob(hash) {
		return hash, nil
	}
	if err := l.store.PutBlob(ctx, hash, text); err != nil {
		return "", fmt.Errorf("keep text %s: %w", hash, err)
	}
	l.cacheBlob(hash)
	return hash, nil
}

// Text reads a text that PutText stored; ErrNotFound.
func (l *Log) Text(ctx context.Context, hash string) ([]byte, error) {
	text, err := l.store.Blob(ctx, hash)
	if err != nil {
		return nil, fmt.Errorf("text %s: %w", hash, err)
	}
	return text, nil
}

// maxKnownBlobs bounds the cache of stored hashes, which saves writing them again.
const maxKnownBlobs = 1024

func (l *Log) knowsBlob(hash string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.blobs[hash]
}

func (l *Log) cacheBlob(hash string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.blobs) >= maxKnownBlobs {
		clear(l.blobs)
	}
	l.blobs[hash] = true
}

// Envelope reads an envelope that PutEnvelope stored.
func (l *Log) Envelope(ctx context.Context, hash string) (Envelope, error) {
	data, err := l.store.Blob(ctx, hash)
	if err != nil {
		return Envelope{}, fmt.Errorf("envelope %s: %w", hash, err)
	}
	var envelope Envelope
	if err := json.Unmarshal(data, &envelope); err != nil {
		return Envelope{}, fmt.Errorf("envelope %s: %w", hash, err)
	}
	return envelope, nil
}

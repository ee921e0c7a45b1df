package continuo

// CachedBytes is how many bytes the log's cache of entries uses.
func (l *Log) CachedBytes() int64 { return l.cache.bytes }

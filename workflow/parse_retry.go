package workflow

import (
	"cmp"
	"time"

	"github.com/continuo-log/continuo/internal/yamltree"
)

const (
	defaultRetryFor = 24 * time.Hour
	maxRetryFor     = 30 * 24 * time.Hour
	defaultRetryMax = 200
	maxRetryMax     = 10_000
)

// readRetry reads for how long attempts that broke off are retried; missing values are taken from others.
func (r *reader) readRetry(v *yamltree.Node, others Retry) Retry {
	if v == nil {
		return others
	}
	keys := r.Mapping(v, "retry", "for", "max")
	return Retry{
		For: cmp.Or(r.readDuration(keys["for"], "for"), others.For),
		Max: cmp.Or(r.Between(keys["max"], "max", 1, maxRetryMax), others.Max),
	}
}

func (r *reader) readDuration(v *yamltree.Node, key string) time.Duration {
	if v == nil {
		return 0
	}
	length, err := time.ParseDuration(v.Text)
	if v.Kind != yamltree.Text || err != nil || length < time.Second || length > maxRetryFor {
		r.Complain(v.At, "%s must be a time with its unit, such as 30m or 24h, from 1s to 720h", key)
		return 0
	}
	return length
}

package workflow

import (
	"cmp"
	"time"

	"github.com/continuo-log/continuo/internal/duration"
	"github.com/continuo-log/continuo/internal/yamlform"
	"github.com/continuo-log/continuo/internal/yamltree"
)

const (
	defaultRetryFor = 24 * time.Hour
	maxRetryFor     = 30 * 24 * time.Hour
	defaultRetryMax = 200
)

// retryFile is the key retry of a workflow or a step.
type retryFile struct {
	For *yamltree.Node      `key:"for" form:"duration" help:"How long, since the first failure in a row: a time with its unit, such as 30m or 24h, at most 720h."`
	Max yamlform.Value[int] `key:"max" min:"1" max:"10000" help:"How many attempts in a row."`
}

// readRetry reads for how long attempts that broke off are retried; missing values are taken from others.
func (r *reader) readRetry(v *yamltree.Node, others Retry) Retry {
	if v == nil {
		return others
	}
	var file retryFile
	r.Object(v, "retry", &file)
	return Retry{For: cmp.Or(r.readDuration(file.For, "for"), others.For), Max: cmp.Or(file.Max.Is, others.Max)}
}

func (r *reader) readDuration(v *yamltree.Node, key string) time.Duration {
	if v == nil {
		return 0
	}
	length, err := duration.Parse(v.Text)
	if v.Kind != yamltree.Text || err != nil || length < time.Second || length > maxRetryFor {
		r.Complain(v.At, "%s must be a time with its unit, such as 30m or 24h, from 1s to 720h", key)
		return 0
	}
	return length
}

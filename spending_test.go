package continuo_test

import (
	"strings"
	"testing"

	continuo "github.com/continuo-log/continuo"
)

func TestEstimateUsage(t *testing.T) {
	image := `{"type":"image_url","image_url":{"url":"data:image/png;base64,` + strings.Repeat("A", 1<<20) + `"}}`
	for name, test := range map[string]struct {
		body   string
		answer int
		want   continuo.Usage
	}{
		"text":               {`{"content":"12345678"}`, 9, continuo.Usage{InputTokens: 5, OutputTokens: 2}},
		"nothing":            {"", 0, continuo.Usage{}},
		"an image":           {image, 0, continuo.Usage{InputTokens: 1016}},
		"two images":         {image + image, 0, continuo.Usage{InputTokens: 2032}},
		"an image that ends": {`;base64,AAAA`, 0, continuo.Usage{InputTokens: 3}},
	} {
		if got := continuo.EstimateUsage([]byte(test.body), test.answer); got != test.want {
			t.Errorf("%s: %+v, want %+v", name, got, test.want)
		}
	}
}

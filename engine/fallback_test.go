package engine_test

import (
	"errors"
	"strings"
	"testing"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/engine"
	"github.com/continuo-log/continuo/model/demo"
	"github.com/continuo-log/continuo/store/storetest"
)

func TestAFallbackMustBeThere(t *testing.T) {
	log := continuo.NewLog(storetest.NewMemory(), continuo.LogOptions{})
	models := map[string]engine.Upstream{"main": {Model: demo.New(demo.Options{}), Fallback: "spare"}}
	if _, err := engine.New(log, engine.Options{Models: models, Default: "main"}, nil); !errors.Is(err, continuo.ErrInvalid) || !strings.Contains(err.Error(), `the fallback of the model main: there is no model "spare"`) {
		t.Errorf("got %v", err)
	}
	models["spare"] = engine.Upstream{Model: demo.New(demo.Options{})}
	if _, err := engine.New(log, engine.Options{Models: models, Default: "main"}, nil); err != nil {
		t.Errorf("got %v", err)
	}
}

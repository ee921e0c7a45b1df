package server

import (
	"context"
	"testing"

	"github.com/continuo-log/continuo/api"
	"github.com/continuo-log/continuo/engine"
)

// The checks are made once for callers that come within some seconds, and one that failed makes the report not OK.
func TestHealthReport(t *testing.T) {
	made := 0
	handler := New(newEngine(t, engine.Options{}), Options{Version: "1", Checks: func(context.Context) ([]api.HealthCheck, *api.StoreSize) {
		made++
		return []api.HealthCheck{{Name: "store", Status: api.HealthFailed, Detail: "full"}, {Name: "model", Status: api.HealthOK, Detail: "demo"}},
			&api.StoreSize{Engine: "sqlite", Bytes: 12}
	}})
	for range 2 {
		var got api.HealthReport
		ask(t, handler, "GET", "/api/health", "").into(200, &got)
		if got.OK || got.Version != "1" || len(got.Checks) != 2 || got.Checks[0].Detail != "full" || got.Store == nil || got.Store.Bytes != 12 {
			t.Errorf("got %+v", got)
		}
	}
	if made != 1 {
		t.Errorf("the checks were made %d times for two requests", made)
	}
}

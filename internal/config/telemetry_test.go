package config

import (
	"strings"
	"testing"
)

func TestTelemetry(t *testing.T) {
	got := mustLoad(t, "telemetry:\n  otlp_endpoint: http://127.0.0.1:4318/\n  otlp_headers_env: MY_HEADERS\n  sample: 0\n  message_text: true\n", Options{}).Telemetry
	if want := (TelemetryConfig{OTLPEndpoint: "http://127.0.0.1:4318", OTLPHeadersEnv: "MY_HEADERS", MessageText: true}); got != want {
		t.Errorf("got %+v", got)
	}
	if got := mustLoad(t, "telemetry:\n  otlp_endpoint: \"\"\n", Options{}).Telemetry; got != (TelemetryConfig{OTLPHeadersEnv: "OTEL_EXPORTER_OTLP_HEADERS", Sample: 1}) {
		t.Errorf("the defaults are %+v", got)
	}
}

func TestTelemetryRefusesAndRepeatsNoSecret(t *testing.T) {
	for _, line := range []string{
		"otlp_endpoint: https://user:hunter2@host", "otlp_endpoint: host:4318", "otlp_endpoint: https://host/?key=hunter2",
		"otlp_headers_env: authorization=hunter2", "sample: 1.5", "sample: -0.1", "sample: .nan",
	} {
		_, err := load(t, "telemetry:\n  "+line+"\n", Options{})
		if err == nil || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: %v", line, err)
		}
	}
}

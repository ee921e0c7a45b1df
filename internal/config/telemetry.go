package config

import (
	"strconv"
	"strings"

	"github.com/continuo-log/continuo/internal/yamltree"
)

// TelemetryConfig is the section telemetry.
type TelemetryConfig struct {
	OTLPEndpoint   string  // without a slash at its end; "": from OTEL_EXPORTER_OTLP_ENDPOINT, or none
	OTLPHeadersEnv string  // the name of a variable; "" sends no headers
	Sample         float64 // from 0 to 1
	MessageText    bool
}

func (c *Config) telemetryRows() []*setting {
	return []*setting{{
		key: "telemetry.otlp_endpoint", value: collector(&c.Telemetry.OTLPEndpoint), def: "",
		doc: "Where an OpenTelemetry collector takes traces and metrics as OTLP over HTTP (protobuf), such as http://127.0.0.1:4318; /v1/traces and /v1/metrics are put behind it. Empty: what the variable OTEL_EXPORTER_OTLP_ENDPOINT says, and nothing is sent when that is not set.",
	}, {
		key: "telemetry.otlp_headers_env", value: variable(&c.Telemetry.OTLPHeadersEnv), def: "OTEL_EXPORTER_OTLP_HEADERS",
		doc: "The environment variable that holds headers for the collector, as name=value pairs between commas. Keys belong there.",
	}, {
		key: "telemetry.sample", value: fraction(&c.Telemetry.Sample), def: "1",
		doc: "The share of turns that are traced. Metrics count all of them.",
	}, {
		key: "telemetry.message_text", value: boolean(&c.Telemetry.MessageText), def: "false",
		doc: "Whether spans may hold the text of requests, answers, tool arguments and results, up to 32 KiB each. Conversations are private: leave it off unless you are looking for a fault.",
	}}
}

// fraction is a number from 0 to 1.
func fraction(place *float64) value {
	return value{
		allowed: "a number from 0 to 1",
		takes:   []yamltree.Kind{yamltree.Whole, yamltree.Number},
		set: func(text string) error {
			number, err := strconv.ParseFloat(text, 64)
			if err != nil || !(number >= 0 && number <= 1) {
				return errNotAllowed
			}
			*place = number
			return nil
		},
		show: func() string { return strconv.FormatFloat(*place, 'g', -1, 64) },
	}
}

// collector is a base URL or empty.
func collector(place *string) value {
	v := baseURL(place)
	v.allowed = strings.Replace(v.allowed, "such as "+openAIURL, `such as http://127.0.0.1:4318, or "" for none`, 1)
	set := v.set
	v.set = func(text string) error {
		if text == "" {
			*place = ""
			return nil
		}
		return set(text)
	}
	return v
}

// Package metrics has the Prometheus metrics of turns, requests, runs, roles and agents.
package metrics

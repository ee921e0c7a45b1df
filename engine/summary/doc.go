// Package summary makes the summaries that views and roles of crews need: by a model, or by picking sentences.
package summary

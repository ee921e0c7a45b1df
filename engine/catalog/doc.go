// Package catalog has the models, agents, views and tools that turns can use, and resolves the names that a request
// gives: which model answers, with which view, tools and system messages.
package catalog

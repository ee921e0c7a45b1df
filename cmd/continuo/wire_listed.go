package main

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/continuo-log/continuo/internal/config"
	modellist "github.com/continuo-log/continuo/model/listing"
	"github.com/continuo-log/continuo/tool"
)

// How long an upstream may take to list its models, and how long its list is used.
const (
	listTime    = 3 * time.Second
	listedUntil = 5 * time.Minute
)

// listedModels finds the names of the models that the upstreams of the settings serve.
type listedModels struct {
	modelWiring
	upstreams []config.UpstreamConfig

	mu    sync.Mutex
	known map[string]knownList // of upstreams with the server's own key, by their names
}

// knownList is the list of an upstream, as it was at a time; nil where it did not give one.
type knownList struct {
	names []string
	at    time.Time
}

// listing returns a function that lists the names of the models that clients can ask for besides those of the settings:
// those that upstreams name without a pattern, and of their own lists what a pattern matches.
func (w modelWiring) listing(settings *config.Config) func(ctx context.Context, credentials http.Header) []string {
	l := &listedModels{modelWiring: w, upstreams: servedUpstreams(settings, w.env), known: map[string]knownList{}}
	return l.list
}

func (l *listedModels) list(ctx context.Context, credentials http.Header) []string {
	ctx, cancel := context.WithTimeout(ctx, listTime)
	defer cancel()
	lists := make([][]string, len(l.upstreams))
	var asked sync.WaitGroup
	for i, upstream := range l.upstreams {
		asked.Go(func() { lists[i] = l.of(ctx, upstream, credentials) })
	}
	asked.Wait()
	var all []string
	for _, names := range lists {
		for _, name := range names {
			if !slices.Contains(all, name) {
				all = append(all, name)
			}
		}
	}
	return all
}

// of lists the names of an upstream.
func (l *listedModels) of(ctx context.Context, u config.UpstreamConfig, credentials http.Header) []string {
	var names []string
	patterns := false
	for _, name := range u.Models {
		if strings.Contains(name, "*") {
			patterns = true
		} else {
			names = append(names, name)
		}
	}
	if !patterns {
		return names
	}
	for _, name := range l.ask(ctx, u, credentials) {
		if tool.MatchesAny(u.Models, name) && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// ask asks an upstream for its list.
func (l *listedModels) ask(ctx context.Context, u config.UpstreamConfig, credentials http.Header) []string {
	forwards := u.Credentials == config.CredentialsForward
	l.mu.Lock()
	known, ok := l.known[u.Name+" "+u.Protocol]
	l.mu.Unlock()
	if ok && !forwards && time.Since(known.at) < listedUntil {
		return known.names
	}
	header := modellist.Credentials(u.Protocol, envValue(l.env, u.APIKeyEnv))
	if forwards {
		header = credentials.Clone()
	}
	for name, value := range u.Headers {
		header.Set(name, value)
	}
	names, err := modellist.Models(ctx, modellist.Upstream{Protocol: u.Protocol, BaseURL: u.BaseURL, Header: header})
	if err != nil {
		l.logger.Warn("models_not_listed", "upstream", u.Name, "error", err.Error())
	}
	if !forwards && !errors.Is(ctx.Err(), context.Canceled) {
		l.mu.Lock()
		l.known[u.Name+" "+u.Protocol] = knownList{names, time.Now()}
		l.mu.Unlock()
	}
	return names
}

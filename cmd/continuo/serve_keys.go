package main

import (
	"context"
	"net"
	"net/netip"

	"github.com/continuo-log/continuo/internal/config"
	"github.com/continuo-log/continuo/server"
)

// keyPolicy says when the server requires keys: on a loopback address as the settings say, on one that other machines
// can reach always. There a valid key must exist, so that nobody starts a server that refuses everything without knowing,
// unless the settings ask for keys by name: a container starts before anybody can make its first key.
func (w *services) keyPolicy(ctx context.Context) (server.KeyPolicy, error) {
	address, policy := w.settings.Listen, w.settings.Server.Keys
	reachable, err := isReachable(ctx, address)
	if err != nil {
		return 0, err
	}
	switch {
	case reachable && policy == config.KeysNever:
		return 0, usage("listen on %s: other machines could reach it, and with server.keys=never it would be open to them: listen on 127.0.0.1 or [::1], or leave the setting out", address)
	case policy == config.KeysNever:
		return server.KeysNever, nil
	case policy == config.KeysAlways:
		return server.KeysAlways, nil
	case !reachable:
		return server.KeysOnceMade, nil
	}
	usable, err := w.usableKeys(ctx)
	if err != nil {
		return 0, err
	}
	if usable[""] == 0 {
		return 0, usage("listen on %s: other machines could reach it, and there is no usable API key: make one with continuo keys create, start with server.keys=always and make one then, or listen on 127.0.0.1 or [::1]", address)
	}
	return server.KeysAlways, nil
}

// isReachable reports whether other machines can reach an address to listen on.
func isReachable(ctx context.Context, address string) (bool, error) {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return false, usage("listen on %s: %w", address, err)
	}
	addresses, err := net.DefaultResolver.LookupNetIP(ctx, "ip", host)
	if err != nil && host != "" {
		return false, usage("listen on %s: %w", address, err)
	}
	if len(addresses) == 0 {
		addresses = []netip.Addr{netip.IPv6Unspecified()}
	}
	for _, found := range addresses {
		if !found.Unmap().IsLoopback() {
			return true, nil
		}
	}
	return false, nil
}

// keyPolicyText says which callers are admitted.
func (w *services) keyPolicyText(ctx context.Context, policy server.KeyPolicy) (words string, demanded bool) {
	keys, err := w.store.Keys(ctx, "")
	switch {
	case policy == server.KeysNever:
		return "none needed (server.keys): every client that reaches this address has access", false
	case err == nil && policy == server.KeysOnceMade && len(keys) == 0:
		return "none yet: every client that reaches this address has access (continuo keys create)", false
	case err == nil && len(keys) == 0:
		return "needed by every caller, and there is none yet: every request is refused (continuo keys create)", true
	}
	return "needed by every caller (continuo keys list)", true
}

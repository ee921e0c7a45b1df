package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"strings"
	"time"
)

type healthCommand struct {
	URL     string        `placeholder:"URL" help:"The server's base URL. Default: the address of the setting listen, on this machine."`
	Timeout time.Duration `default:"5s" help:"How long the server may take to answer."`
}

func (healthCommand) Help() string {
	return `Asks the running server whether it is ready: whether its store answers (GET /readyz). The exit code is 0 if it is, and 1 if it is not or cannot be reached. It is the health check of containers, which have no curl; continuo doctor checks settings and models too.

Examples:

    continuo health
    continuo health --url http://10.0.0.7:8787`
}

// Run asks the server.
func (h *healthCommand) Run(ctx context.Context, a *app) error {
	base := h.URL
	if base == "" {
		settings, err := a.loadSettings()
		if err != nil {
			return err
		}
		if base, err = localURL(settings.Listen); err != nil {
			return err
		}
	}
	if h.Timeout <= 0 {
		return usage("--timeout: given %q; allowed: a positive duration, such as 5s", h.Timeout)
	}
	ctx, cancel := context.WithTimeout(ctx, h.Timeout)
	defer cancel()
	target := strings.TrimSuffix(base, "/") + "/readyz"
	if !isServerURL(base) {
		return usage("--url: given %q; allowed: a URL such as http://127.0.0.1:8787", base)
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, target, nil)
	if err != nil {
		return fmt.Errorf("ask the server: %w", err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		if errors.Is(ctx.Err(), context.DeadlineExceeded) {
			return fmt.Errorf("the server at %s did not answer within %s", base, h.Timeout)
		}
		if system := (*os.SyscallError)(nil); errors.As(err, &system) {
			err = system.Err
		}
		return fmt.Errorf("no server can be reached at %s (%w): start it with continuo serve, or name another with --url", base, err)
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(io.LimitReader(response.Body, 4096))
	if err != nil {
		return fmt.Errorf("read the answer of %s: %w", target, err)
	}
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("the server at %s is not ready: status %d: %s", base, response.StatusCode, strings.TrimSpace(string(body)))
	}
	a.text("ready\n")
	return nil
}

// isServerURL reports whether text is the base URL of an HTTP server.
func isServerURL(text string) bool {
	parsed, err := url.Parse(text)
	return err == nil && parsed.Host != "" && (parsed.Scheme == "http" || parsed.Scheme == "https")
}

// localURL is the URL at which this machine reaches a server that listens on an address.
func localURL(address string) (string, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return "", usage("listen %s: %v", address, err)
	}
	if ip, err := netip.ParseAddr(host); host == "" || err == nil && ip.IsUnspecified() {
		host = "127.0.0.1"
		if ip.Is6() {
			host = "::1"
		}
	}
	return "http://" + net.JoinHostPort(host, port), nil
}

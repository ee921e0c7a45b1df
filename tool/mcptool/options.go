package mcptool

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"regexp"
	"time"
)

// Options names a server and bounds what it may do. Name and exactly one of Command and URL must be set.
type Options struct {
	// Name begins the names of the server's tools: a small letter, then at most 31 small letters, digits,
	// "_" and "-".
	Name string

	// Command starts the server as a child process that speaks over stdin and stdout; the first item is
	// the program, which is looked for in this process's PATH.
	Command []string
	// Dir is the folder that the child starts in. Default this process's own.
	Dir string
	// Env is what the child gets as NAME=value besides PATH, HOME, LANG and TMPDIR, which it inherits
	// where they are set. It gets nothing else of this process's environment.
	Env []string

	// URL is where the server speaks streamable HTTP.
	URL string
	// Headers go with every request to the server. They are never logged and never follow a redirect to
	// another host.
	Headers map[string]string

	// StartTimeout bounds a start: the process, the handshake, the list of tools. Default 20 s.
	StartTimeout time.Duration
	// CallTimeout bounds one call, in place of the limit that a turn has for tools. Default: the turn's limit,
	// and 10 min for a caller without one.
	CallTimeout time.Duration
	// CallWait bounds how long a call waits for a server that is down. Default 15 s.
	CallWait time.Duration
	// MaxMessageBytes bounds one message of the server; a larger one ends the session. Default 64 MiB.
	MaxMessageBytes int
	// Grace is how long a child has to exit after its stdin was closed, and again after SIGTERM. Default 2 s.
	Grace time.Duration

	// RestartWait is the wait before a server that died or did not start is tried again; it doubles with
	// each try up to RestartMaxWait, and begins anew once the server has been well for RestartWell.
	// Defaults 500 ms, 30 s and 1 min.
	RestartWait, RestartMaxWait, RestartWell time.Duration

	// Logger is told of starts, deaths, tools that are left out (warn, info) and of the child's stderr
	// (debug, because it may hold what was said in conversations). Default none.
	Logger *slog.Logger
	// Now and After are the clock of the restarts. Default the system's.
	Now   func() time.Time
	After func(time.Duration) <-chan time.Time
	// Version is how this program calls its version towards the server. Default "dev".
	Version string
}

var serverName = regexp.MustCompile(`^[a-z][a-z0-9_-]{0,31}$`)

// checked fills in the defaults, or says what cannot work.
func (o Options) checked() (Options, error) {
	switch {
	case !serverName.MatchString(o.Name):
		return o, fmt.Errorf("the name of an MCP server is a small letter and up to 31 small letters, digits, _ and -: given %.40q", o.Name)
	case len(o.Command) == 0 && o.URL == "":
		return o, errors.New("an MCP server needs a command or a URL")
	case len(o.Command) > 0 && o.URL != "":
		return o, errors.New("an MCP server has a command or a URL, not both")
	case len(o.Command) > 0 && o.Command[0] == "":
		return o, errors.New("the command of an MCP server begins with the name of a program")
	}
	if o.URL != "" {
		if at, err := url.Parse(o.URL); err != nil || at.Scheme != "http" && at.Scheme != "https" || at.Host == "" {
			return o, errors.New("the URL of an MCP server must be an http or https URL with a host")
		}
	}
	o.StartTimeout = cmp.Or(o.StartTimeout, 20*time.Second)
	o.CallWait = cmp.Or(o.CallWait, 15*time.Second)
	o.MaxMessageBytes = cmp.Or(o.MaxMessageBytes, 64<<20)
	o.Grace = cmp.Or(o.Grace, 2*time.Second)
	o.RestartWait = cmp.Or(o.RestartWait, 500*time.Millisecond)
	o.RestartMaxWait = cmp.Or(o.RestartMaxWait, 30*time.Second)
	o.RestartWell = cmp.Or(o.RestartWell, time.Minute)
	o.Version = cmp.Or(o.Version, "dev")
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	o.Logger = o.Logger.With("mcp_server", o.Name)
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.After == nil {
		o.After = time.After
	}
	return o, nil
}

// backoff counts the waits between starts.
type backoff struct {
	first, most, well time.Duration
	next              time.Duration
}

// wait returns how long to wait after a server that had been up for a time, 0 for one that did not start.
func (b *backoff) wait(up time.Duration) time.Duration {
	if up >= b.well || b.next == 0 {
		b.next = b.first
	}
	now := b.next
	b.next = min(2*b.next, b.most)
	return now
}

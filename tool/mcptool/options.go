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

// Options configures a server and its limits. Name and exactly one of Command and URL must be set.
type Options struct {
	// Name is the prefix of the names of the server's tools: a small letter, then at most 31 small letters,
	// digits, "_" and "-".
	Name string

	// Command starts the server as a child process that communicates over stdin and stdout; the first item is
	// the program, which is looked up in this process's PATH.
	Command []string
	// Dir is the child's working directory. Default that of this process.
	Dir string
	// Env is the child's environment as NAME=value, besides PATH, HOME, LANG and TMPDIR, which it inherits if
	// they are set. It inherits no other variable of this process.
	Env []string

	// URL is the server's address for streamable HTTP.
	URL string
	// Headers are sent with every request to the server. They are never logged and never sent to another host
	// after a redirect.
	Headers map[string]string

	// StartTimeout bounds a start: the process, the handshake, the list of tools. Default 20 s.
	StartTimeout time.Duration
	// CallTimeout bounds one call, instead of the turn's limit for tools. Default: the turn's limit, and 10
	// min for a caller without one.
	CallTimeout time.Duration
	// CallWait bounds how long a call waits for a server that is down. Default 15 s.
	CallWait time.Duration
	// MaxMessageBytes bounds one message of the server; a larger one ends the session. Default 64 MiB.
	MaxMessageBytes int
	// Grace is how long a child has to exit after its stdin was closed, and again after SIGTERM. Default 2 s.
	Grace time.Duration

	// RestartWait is the wait before the restart of a server that died or did not start; it doubles with each
	// attempt up to RestartMaxWait, and is reset once the server has run for RestartWell. Defaults 500 ms, 30
	// s and 1 min.
	RestartWait, RestartMaxWait, RestartWell time.Duration

	// Logger logs starts, exits and omitted tools (warn, info), and the child's stderr (debug, because it may
	// contain text of conversations). Default none.
	Logger *slog.Logger
	// Now and After are the clock of the restarts. Default the system's.
	Now   func() time.Time
	After func(time.Duration) <-chan time.Time
	// Version is this program's version, sent to the server. Default "dev".
	Version string
}

var serverName = regexp.MustCompile(`^[a-z][a-z0-9_-]{0,31}$`)

// checked fills in the defaults, or returns an error for options that cannot work.
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

// backoff computes the waits between starts.
type backoff struct {
	first, most, well time.Duration
	next              time.Duration
}

// wait returns how long to wait before the restart of a server that was up for a time, 0 for one that did not
// start.
func (b *backoff) wait(up time.Duration) time.Duration {
	if up >= b.well || b.next == 0 {
		b.next = b.first
	}
	now := b.next
	b.next = min(2*b.next, b.most)
	return now
}

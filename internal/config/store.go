package config

import (
	"errors"
	"net/url"
	"strings"
	"time"
)

// StoreConfig is the section store.
type StoreConfig struct {
	// Path is that of the SQLite file, never empty.
	Path string `key:"path" kind:"path" unset:"<data dir>/continuo.db" example:"~/.local/share/continuo/continuo.db" help:"The SQLite file that holds the logs, unless store.url is given in the same source of settings or a later one. The data dir is $XDG_DATA_HOME/continuo, or ~/.local/share/continuo when XDG_DATA_HOME is not set to an absolute path."`
	// URL is that of a PostgreSQL database, which is used instead of the file; it may contain a password. "": none.
	URL              string        `key:"url" kind:"database" empty:"for the SQLite file" help:"A PostgreSQL database that holds the logs instead of the SQLite file, for more than one machine: postgres://user@host:5432/database. Several hosts with target_session_attrs=read-write name a primary and its standbys. The password belongs into CONTINUO_STORE_URL, PGPASSWORD or ~/.pgpass, not into the file."`
	MaxConnections   int           `key:"max_connections" min:"4" default:"16" help:"How many connections to PostgreSQL one program opens at most. All replicas together must stay below the server's max_connections."`
	StatementTimeout time.Duration `key:"statement_timeout" default:"10s" help:"How long PostgreSQL works on one statement before it gives up."`
	RetryTimeout     time.Duration `key:"retry_timeout" default:"15s" help:"How long reads and writes are tried again while PostgreSQL cannot be reached, such as during a restart or a failover, before they fail."`
	CacheMiB         int64         `key:"cache_mib" max:"1048576" default:"64" help:"How much memory, in MiB, the newest entries of conversations in use may take, so that they are not read from the database again. With a memory limit (GOMEMLIMIT) it takes at most a sixteenth of that, and less while the process is near the limit. 0: none."`
	Partitions       int           `key:"partitions" default:"0" help:"Into how many hash partitions the tables are divided when a PostgreSQL database is set up. 0: none. It cannot be changed later but by a copy."`
}

// ObjectsConfig is the section objects.
type ObjectsConfig struct {
	// Location is a folder or a URL, never empty.
	Location string `key:"location" kind:"location" unset:"store.path with .objects behind it" example:"~/.local/share/continuo/continuo.db.objects" help:"Where large outputs, attachments and archives are kept: a folder, or an S3-compatible bucket as s3://bucket?endpoint=https://host&region=name&prefix=folder (its keys come from AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY). Programs that share a database share it."`
	// An output's text and a part's JSON up to these sizes are stored in their entry.
	InlineOutputBytes int `key:"inline_output_bytes" min:"1" max:"4194304" default:"262144" help:"Up to how many bytes (UTF-8) a tool's output is stored in its entry in the database. A larger one is an object, and its entry has a preview. It counts for what is appended from then on."`
	InlinePartBytes   int `key:"inline_part_bytes" min:"1" max:"4194304" default:"65536" help:"Up to how many bytes of JSON a content part that is no text, such as an image, is stored in its entry in the database. A larger one is an object, and its entry has a placeholder. It counts for what is appended from then on."`
}

// databaseURL reads a postgres URL.
func databaseURL(text string) (string, error) {
	location, err := url.Parse(text)
	if err != nil || location.Scheme != "postgres" && location.Scheme != "postgresql" || !isLine(text) {
		return "", errNotAllowed
	}
	if strings.Contains(text, "@") && location.User == nil || location.Fragment != "" {
		return "", errors.New("the part before @ cannot be parsed: write special characters of the password as %XX")
	}
	return text, nil
}

// WithoutPassword is a database URL in the form for display.
func WithoutPassword(text string) string {
	location, err := url.Parse(text)
	if err != nil {
		return "(not a URL)"
	}
	query := location.Query()
	for _, name := range []string{"password", "sslpassword"} {
		if query.Has(name) {
			query.Set(name, "xxxxx")
			location.RawQuery = query.Encode()
		}
	}
	return location.Redacted()
}

// WithoutKeys is the location of an object store in the form for display.
func WithoutKeys(text string) string {
	location, err := url.Parse(text)
	if err != nil || location.Host == "" && location.RawQuery == "" {
		return text
	}
	query := location.Query()
	if endpoint, err := url.Parse(query.Get("endpoint")); err == nil && endpoint.User != nil {
		endpoint.User = nil
		query.Set("endpoint", endpoint.String())
		location.RawQuery = query.Encode()
	}
	location.User = nil
	return location.String()
}

// checkStore refuses a missing default path and a password in the file, and sets the default of objects.location.
func (l *loader) checkStore() {
	c := l.config
	if c.Store.Path == "" {
		l.problems.addError(errors.New("store.path: no default, because neither XDG_DATA_HOME nor HOME is set to an absolute path: set one of them, or store.path (CONTINUO_STORE_PATH)"))
	}
	// Both name the store: the one from the later layer takes precedence, and within one layer the database.
	if l.row("store.path").origin.Kind > l.row("store.url").origin.Kind {
		c.Store.URL = ""
	}
	if c.Store.Path != "" {
		l.row("objects.location").setDefault(c.Store.Path + ".objects")
	}
	if origin := l.row("store.url").origin; origin.Kind == FromFile && strings.Contains(WithoutPassword(c.Store.URL), "xxxxx") {
		l.problems.add(origin, "store.url: it holds a password, and secrets are never written in the file: set CONTINUO_STORE_URL, PGPASSWORD or ~/.pgpass instead")
	}
}

package config

import (
	"errors"
	"net/url"
	"strings"
	"time"

	"github.com/continuo-log/continuo/internal/yamltree"
)

// StoreConfig is the section store.
type StoreConfig struct {
	Path string // of the SQLite file, never empty
	// URL is that of a PostgreSQL database, which is used instead of the file; it may contain a password. "": none.
	URL              string
	MaxConnections   int
	StatementTimeout time.Duration
	RetryTimeout     time.Duration
	Partitions       int // 0: unpartitioned tables
}

// ObjectsConfig is the section objects.
type ObjectsConfig struct {
	Location string // a folder or a URL, never empty
	// An output's text and a part's JSON up to these sizes are stored in their entry.
	InlineOutputBytes, InlinePartBytes int
}

// maxInlineBytes is the largest valid value of these settings. As JSON, a text may be six times as long, and an entry
// may have 32 MiB.
const maxInlineBytes = 4 << 20

func (c *Config) storeRows(home string) []*setting {
	return []*setting{{
		key: "store.path", value: path(&c.Store.Path, home, false),
		phrase: "<data dir>/continuo.db", example: "~/.local/share/continuo/continuo.db",
		doc: "The SQLite file that holds the logs, unless store.url is given in the same place or a later one. The data dir is $XDG_DATA_HOME/continuo, or ~/.local/share/continuo when XDG_DATA_HOME is not set to an absolute path.",
	}, {
		key: "store.url", value: databaseURL(&c.Store.URL), def: "",
		doc: "A PostgreSQL database that holds the logs instead of the SQLite file, for more than one machine: postgres://user@host:5432/database. Several hosts with target_session_attrs=read-write name a primary and its standbys. The password belongs into CONTINUO_STORE_URL, PGPASSWORD or ~/.pgpass, not into the file.",
	}, {
		key: "store.max_connections", value: whole(&c.Store.MaxConnections, 4), def: "16",
		doc: "How many connections to PostgreSQL one program opens at most. All replicas together must stay below the server's max_connections.",
	}, {
		key: "store.statement_timeout", value: duration(&c.Store.StatementTimeout), def: "10s",
		doc: "How long PostgreSQL works on one statement before it gives up.",
	}, {
		key: "store.retry_timeout", value: duration(&c.Store.RetryTimeout), def: "15s",
		doc: "How long reads and writes are tried again while PostgreSQL cannot be reached, such as during a restart or a failover, before they fail.",
	}, {
		key: "store.partitions", value: whole(&c.Store.Partitions, 0), def: "0",
		doc: "Into how many hash partitions the tables are divided when a PostgreSQL database is set up. 0: none. It cannot be changed later but by a copy.",
	}, {
		key: "objects.location", value: place(&c.Objects.Location, home),
		phrase: "store.path with .objects behind it", example: "~/.local/share/continuo/continuo.db.objects",
		doc: "Where large outputs, attachments and archives are kept: a folder, or an S3-compatible bucket as s3://bucket?endpoint=https://host&region=name&prefix=folder (its keys come from AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY). Programs that share a database share it.",
	}, {
		key: "objects.inline_output_bytes", value: between(&c.Objects.InlineOutputBytes, 1, maxInlineBytes), def: "262144",
		doc: "Up to how many bytes (UTF-8) a tool's output stands in its entry in the database. A larger one is an object, and its entry has a preview. It counts for what is appended from then on.",
	}, {
		key: "objects.inline_part_bytes", value: between(&c.Objects.InlinePartBytes, 1, maxInlineBytes), def: "65536",
		doc: "Up to how many bytes of JSON a content part that is no text, such as an image, stands in its entry in the database. A larger one is an object, and its entry has a placeholder. It counts for what is appended from then on.",
	}}
}

// databaseURL is a postgres URL or empty. It is shown without its password.
func databaseURL(place *string) value {
	return value{
		allowed: `a URL such as postgres://user@host:5432/database, or "" for the SQLite file`,
		takes:   []yamltree.Kind{yamltree.Text},
		hidden:  true,
		set: func(text string) error {
			if text == "" {
				*place = ""
				return nil
			}
			location, err := url.Parse(text)
			if err != nil || location.Scheme != "postgres" && location.Scheme != "postgresql" || !isLine(text) {
				return errNotAllowed
			}
			if strings.Contains(text, "@") && location.User == nil || location.Fragment != "" {
				return errors.New("what stands before @ cannot be read: write special characters of the password as %XX")
			}
			*place = text
			return nil
		},
		show: func() string { return WithoutPassword(*place) },
	}
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

// place is a folder or a bucket. A bucket is shown without its keys.
func place(location *string, home string) value {
	v := path(location, home, false)
	v.hidden = true
	v.show = func() string { return WithoutKeys(*location) }
	return v
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
		l.problems.add(origin, "store.url: it holds a password, and secrets do not stand in the file: set CONTINUO_STORE_URL, PGPASSWORD or ~/.pgpass instead")
	}
}

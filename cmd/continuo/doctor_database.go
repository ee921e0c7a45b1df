package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/continuo-log/continuo/internal/config"
	"github.com/continuo-log/continuo/internal/term"
	"github.com/continuo-log/continuo/store/postgres"
)

// maxClockOff is the tolerated difference between the clocks of the server and of this machine.
const maxClockOff = 2 * time.Second

// database checks the PostgreSQL database of the logs.
func (d *diagnosis) database(ctx context.Context, settings config.StoreConfig) {
	found, err := postgres.Inspect(ctx, settings.URL)
	if err != nil {
		d.add("store", bad, "%s", strings.Join(strings.Fields(err.Error()), " "))
		return
	}
	d.facts(&found, settings)
	if !found.Made || found.Standby {
		return
	}
	if err := use(ctx, settings); err != nil {
		d.add("store", bad, "it cannot be used: %s", err)
	} else {
		d.add("store", good, "it can be written")
	}
}

// facts reports what is known of a database and its server.
func (d *diagnosis) facts(found *postgres.Facts, settings config.StoreConfig) {
	d.add("store", good, "%s, version %s, %s, %s of %s connections in use", found.Location, found.Server, term.Size(found.Bytes), term.Number(int64(found.Connections)), term.Number(int64(found.MaxConnections)))
	d.schema(found, settings.Partitions)
	d.service(found, settings)
	d.standbys(found)
}

// schema describes the contents of the database.
func (d *diagnosis) schema(found *postgres.Facts, wanted int) {
	if !found.Made {
		d.add("store", good, "it has no tables yet; the first use makes them")
		return
	}
	tables := "plain tables"
	if found.Partitions > 0 {
		tables = term.Count(found.Partitions, "partition")
	}
	d.add("store", good, "schema version %d, %s, about %s with %s", found.Schema, tables, term.Count(found.Conversations, "conversation"), term.Count(found.Entries, "entry"))
	if wanted > 0 && wanted != found.Partitions {
		d.add("store", bad, "store.partitions is %d, and a database keeps the number that it was made with: leave the setting out, or copy everything into an empty database (continuo store copy)", wanted)
	}
}

// service reports properties of the server that affect its use.
func (d *diagnosis) service(found *postgres.Facts, settings config.StoreConfig) {
	switch {
	case found.Standby:
		d.add("store", bad, "this server is a standby and takes no writes: name the primary, or all servers with target_session_attrs=read-write")
	case found.Listens:
		d.add("store", good, "what other replicas write is notified at once (LISTEN)")
	default:
		d.add("store", warning, "LISTEN does not work, as behind a pooler of transactions: what other replicas write is seen later; connect to the server itself, or pool by session")
	}
	if off := found.Clock.Abs(); off > maxClockOff {
		d.add("store", warning, "the server's clock is %s off this machine's: times in the log jump, and keys expire at other times; set both by NTP", off.Round(time.Millisecond))
	}
	if !found.Fsync || !found.Durable {
		d.add("store", warning, "the server may lose what it has acknowledged when it crashes: set fsync = on and synchronous_commit = on")
	}
	if found.Encoding != "UTF8" {
		d.add("store", bad, "the database's encoding is %s, which cannot keep every text: make one with ENCODING 'UTF8'", found.Encoding)
	}
	if found.Connections+settings.MaxConnections > found.MaxConnections {
		d.add("store", warning, "%d connections are in use, and this program may open %d more, but the server takes %d: lower store.max_connections or raise max_connections", found.Connections, settings.MaxConnections, found.MaxConnections)
	}
}

// standbys lists the servers that replicate.
func (d *diagnosis) standbys(found *postgres.Facts) {
	var words []string
	for _, standby := range found.Standbys {
		if standby.State == "" {
			words = append(words, "one that only a member of pg_monitor sees more of")
			continue
		}
		words = append(words, fmt.Sprintf("%s (%s, %s, %s behind)", term.OneLine(standby.Name, 60), standby.State, standby.Sync, standby.Lag.Round(time.Millisecond)))
	}
	if len(words) > 0 {
		d.add("store", good, "standbys: %s", strings.Join(words, ", "))
	}
}

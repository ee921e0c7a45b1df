package postgres

import (
	"fmt"
	"strings"
)

// maxPartitions bounds Options.Partitions: each is a table of its own with its indexes, and lists over all
// conversations look at every one.
const maxPartitions = 256

// partition rewrites a migration so that each table whose definition ends with "); -- by COLUMN" is
// partitioned by the hash of that column. With 0 partitions it returns the text unchanged.
func partition(migration string, partitions int) string {
	if partitions == 0 {
		return migration
	}
	var out strings.Builder
	table := ""
	for line := range strings.Lines(migration) {
		if rest, ok := strings.CutPrefix(line, "CREATE TABLE "); ok {
			table, _, _ = strings.Cut(rest, " ")
		}
		column, ok := strings.CutPrefix(line, "); -- by ")
		if !ok {
			out.WriteString(line)
			continue
		}
		fmt.Fprintf(&out, ") PARTITION BY HASH (%s);\n", strings.TrimSpace(column))
		for i := range partitions {
			fmt.Fprintf(&out, "\nCREATE TABLE %s_p%d PARTITION OF %s FOR VALUES WITH (MODULUS %d, REMAINDER %d);\n", table, i, table, partitions, i)
		}
	}
	return out.String()
}

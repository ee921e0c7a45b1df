package pgtest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"github.com/continuo-log/continuo/internal/process"
)

const (
	superuser = "postgres"
	// socketPort is in the name of the socket of a server without TCP.
	socketPort = 5432
	// folderPrefix begins the name of every cluster's folder.
	folderPrefix = "continuo-pg-"
	// maxFolder keeps the path of the socket below the system's limit: 107 bytes, on some systems 103.
	maxFolder = 103 - len("/.s.PGSQL.12345")
)

// The files in a cluster's folder, besides the socket.
const (
	dataName     = "data"
	logName      = "server.log"
	settingsName = "settings.conf"
	accessName   = "access.conf"
	ownerName    = "owner" // contains the process that the cluster belongs to
	portName     = "port"  // contains the TCP port that the cluster has claimed
)

// makeFolder makes the folder of a cluster: owned by the account, closed to others.
func makeFolder(account *account, durable bool) (string, error) {
	removeLeftovers()
	parent, err := parentFolder(durable)
	if err != nil {
		return "", err
	}
	folder, err := os.MkdirTemp(parent, folderPrefix)
	if err != nil {
		return "", fmt.Errorf("make a folder for PostgreSQL: %w", err)
	}
	err = errors.Join(os.WriteFile(filepath.Join(folder, ownerName), []byte(process.Self()), 0o600), account.own(folder))
	if err != nil {
		return "", errors.Join(fmt.Errorf("make a folder for PostgreSQL: %w", err), os.RemoveAll(folder))
	}
	return folder, nil
}

// parentFolder returns the first folder with a short name that other users can access; a test's own is not.
func parentFolder(durable bool) (string, error) {
	for _, folder := range parentFolders(durable) {
		if len(folder)+len("/"+folderPrefix+"1234567890") <= maxFolder && open(folder) {
			return folder, nil
		}
	}
	return "", fmt.Errorf("make a folder for PostgreSQL: neither %s nor /tmp has a short name and is open to all: set TMPDIR to one that is", os.TempDir())
}

// parentFolders are the folders in which clusters are made: in memory for those that need not be durable, unless TMPDIR
// names another folder than /tmp, which some machines set for everybody.
func parentFolders(durable bool) []string {
	temporary := filepath.Clean(os.TempDir())
	folders := []string{temporary, "/tmp"}
	if memory := memoryFolder(); memory != "" && !durable && temporary == "/tmp" {
		return append([]string{memory}, folders...)
	}
	return folders
}

// open reports whether all users can access the files in a folder.
func open(folder string) bool {
	for {
		info, err := os.Stat(folder)
		if err != nil || info.Mode()&0o001 == 0 && os.Geteuid() == 0 {
			return false
		}
		if parent := filepath.Dir(folder); parent != folder {
			folder = parent
			continue
		}
		return true
	}
}

// removeLeftovers removes the clusters of killed processes. Those of other users, and those that cannot be removed, stay.
func removeLeftovers() {
	for _, parent := range parentFolders(false) {
		owners, _ := filepath.Glob(filepath.Join(parent, folderPrefix+"*", ownerName))
		for _, file := range owners {
			if owner, err := os.ReadFile(file); err == nil && process.Ended(string(owner)) {
				_ = os.RemoveAll(filepath.Dir(file))
			}
		}
	}
}

// claimPort returns a port that is not in use and that no other cluster of this machine has claimed, and claims it for the
// cluster of a folder: its server takes it only later, and again after each restart. The ports are outside of the range from
// which systems take those of outgoing connections, and below those that package e2e gives to other programs.
func claimPort(folder string) (int, error) {
	const first, count, attempts = 15000, 5000, 100
	for range attempts {
		port := first + rand.IntN(count)
		// Of two that claim a port at once, at least one finds the other's claim: each writes before it reads.
		if err := os.WriteFile(filepath.Join(folder, portName), []byte(strconv.Itoa(port)), 0o600); err != nil {
			return 0, fmt.Errorf("claim a port for PostgreSQL: %w", err)
		}
		if isClaimed(port, folder) {
			continue
		}
		listener, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
		if err != nil {
			continue
		}
		return port, listener.Close()
	}
	return 0, fmt.Errorf("find a free port for PostgreSQL: %d ports from %d on are taken", attempts, first)
}

// isClaimed reports whether a cluster with another folder has claimed a port.
func isClaimed(port int, folder string) bool {
	for _, parent := range parentFolders(false) {
		claims, _ := filepath.Glob(filepath.Join(parent, folderPrefix+"*", portName))
		for _, file := range claims {
			claimed, err := os.ReadFile(file)
			if err == nil && filepath.Dir(file) != folder && string(claimed) == strconv.Itoa(port) {
				return true
			}
		}
	}
	return false
}

// initialize makes an empty cluster.
func (s *Server) initialize() error {
	ctx, cancel := context.WithTimeout(context.Background(), programTimeout)
	defer cancel()
	_, err := s.run(ctx, "initdb", "--pgdata", s.path(dataName), "--username", superuser, "--auth", "trust",
		"--encoding", "UTF8", "--locale", locale(), "--no-sync")
	return err
}

// locale is a locale with letters beyond ASCII, as real servers have.
func locale() string {
	if runtime.GOOS == "linux" {
		return "C.UTF-8"
	}
	return "en_US.UTF-8"
}

// writeSettings writes the files that the server reads at its start and at a reload. They are beside the data, so that
// no standby copies them with the data.
func (s *Server) writeSettings() error {
	settings := s.settings()
	var text strings.Builder
	fmt.Fprintf(&text, "include %s\n", quoted(filepath.Join(s.path(dataName), "postgresql.conf")))
	for _, name := range slices.Sorted(maps.Keys(settings)) {
		fmt.Fprintf(&text, "%s = %s\n", name, quoted(settings[name]))
	}
	access := "local all,replication all trust\nhost all,replication all 127.0.0.1/32 trust\n"
	err := errors.Join(s.replace(settingsName, text.String()), s.replace(accessName, access))
	if err != nil {
		return fmt.Errorf("write the settings of the PostgreSQL server: %w", err)
	}
	return nil
}

// replace writes a file atomically.
func (s *Server) replace(name, text string) error {
	if err := os.WriteFile(s.path(name+".new"), []byte(text), 0o644); err != nil { //nolint:gosec // another account reads it; the folder is closed
		return err
	}
	return os.Rename(s.path(name+".new"), s.path(name))
}

func (s *Server) settings() map[string]string {
	settings := map[string]string{
		"unix_socket_directories": s.folder,
		"port":                    strconv.Itoa(s.port),
		"hba_file":                s.path(accessName),
		"listen_addresses":        "",
		"cluster_name":            s.name, // the standby's name at the primary
		"max_connections":         "200",
		// Other types leave a segment in the system when a process is killed while it makes one.
		"dynamic_shared_memory_type": "mmap",
		"timezone":                   "UTC",
		"log_timezone":               "UTC",
		"wal_level":                  "replica",
		"max_wal_senders":            "10",
		"synchronous_standby_names":  standbyNames(s.waitsFor),
	}
	if s.options.ListenTCP {
		settings["listen_addresses"] = "127.0.0.1"
	}
	if !s.options.Durable {
		maps.Copy(settings, map[string]string{"fsync": "off", "full_page_writes": "off", "max_wal_size": "256MB"})
	}
	if !s.options.Durable && !s.options.Replication {
		settings["synchronous_commit"] = "off"
	}
	maps.Copy(settings, s.options.Settings)
	return settings
}

func quoted(text string) string { return "'" + strings.ReplaceAll(text, "'", "''") + "'" }

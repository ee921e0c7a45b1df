package pgtest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

const (
	// folderEnv names the folder of PostgreSQL's programs; if it is set, no other is searched.
	folderEnv = "CONTINUO_PG_BIN"
	// requiredEnv makes tests fail, not skip, without PostgreSQL.
	requiredEnv = "CONTINUO_PG_REQUIRED"
	// programTimeout bounds one run of a program that is expected to end soon.
	programTimeout = 5 * time.Minute
)

var errAbsent = errors.New("no PostgreSQL here")

// installDirs are the folders in which packages put the programs, apart from PATH; of one pattern the newest counts.
func installDirs() []string {
	return []string{
		"/usr/lib/postgresql/*/bin",          // Debian, Ubuntu
		"/usr/pgsql-*/bin",                   // PostgreSQL's own packages for Red Hat and its kin
		"/opt/homebrew/opt/postgresql*/bin",  // Homebrew
		"/usr/local/opt/postgresql*/bin",     // Homebrew on Intel
		"/usr/local/pgsql/bin",               // built from source
		"/Applications/Postgres.app/*/*/bin", // Postgres.app
	}
}

// programs is the folder of one version's programs.
type programs string

func (p programs) path(name string) string { return filepath.Join(string(p), name) }

func (p programs) has(name string) bool {
	info, err := os.Stat(p.path(name))
	return err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0
}

func (p programs) complete() bool { return p.has("initdb") && p.has("postgres") }

// findPrograms returns an error that is errAbsent where there are none.
func findPrograms() (programs, error) {
	if !supported {
		return "", fmt.Errorf("%w: these tests do not start one on %s", errAbsent, runtime.GOOS)
	}
	if named := os.Getenv(folderEnv); named != "" {
		if found := programs(named); found.complete() {
			return found, nil
		}
		return "", fmt.Errorf("%w: there are no programs initdb and postgres in the folder that %s names (%s)", errAbsent, folderEnv, named)
	}
	for _, folder := range append(inPath(), installed()...) {
		if found := programs(folder); found.complete() {
			return found, nil
		}
	}
	return "", fmt.Errorf("%w: there are no programs initdb and postgres in PATH, nor in %s: install PostgreSQL (Debian's package postgresql), or name the folder of its programs in %s",
		errAbsent, strings.Join(installDirs(), ", "), folderEnv)
}

func inPath() []string {
	initdb, err := exec.LookPath("initdb")
	if err != nil {
		return nil
	}
	if target, err := filepath.EvalSymlinks(initdb); err == nil {
		initdb = target
	}
	return []string{filepath.Dir(initdb)}
}

func installed() []string {
	var folders []string
	for _, dir := range installDirs() {
		found, _ := filepath.Glob(dir)
		slices.SortFunc(found, func(a, b string) int { return cmp.Compare(versionIn(b), versionIn(a)) })
		folders = append(folders, found...)
	}
	return folders
}

// numbers matches a version in the name of a folder: 15, 9.6.
var numbers = regexp.MustCompile(`\d+(\.\d+)?`)

// versionIn returns the version in a folder's name, 0 if none.
func versionIn(folder string) float64 {
	version, _ := strconv.ParseFloat(numbers.FindString(folder), 64)
	return version
}

// run runs a program of PostgreSQL to its end as the cluster's account and returns its output. It ends with the
// context, and with this process.
func (s *Server) run(ctx context.Context, program string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, s.programs.path(program), args...)
	cmd.Dir, cmd.Env = s.folder, environment()
	cmd.SysProcAttr = attributes(s.account, syscall.SIGTERM)
	runtime.LockOSThread() // the forking thread must live as long as the child: see attributes
	defer runtime.UnlockOSThread()
	output, err := cmd.CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("run %s %s: %w\n%s", program, strings.Join(args, " "), err, output)
	}
	return string(output), nil
}

// environment is this process's environment without the variables that change the behaviour of PostgreSQL's programs.
func environment() []string {
	kept := slices.DeleteFunc(os.Environ(), func(variable string) bool {
		return strings.HasPrefix(variable, "PG") || strings.HasPrefix(variable, "LC_") || strings.HasPrefix(variable, "LANG")
	})
	return append(kept, "LC_ALL=C")
}

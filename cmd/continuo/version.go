package main

import (
	"runtime"
	"runtime/debug"
)

type versionCommand struct {
	JSON bool `help:"Write JSON."`
}

func (versionCommand) Help() string {
	return `The version is the module's, as the Go toolchain recorded it; a build from a checkout says its commit.

Examples:

    continuo version
    continuo version --json`
}

// versionInfo describes the program's version.
type versionInfo struct {
	Version  string `json:"version"`
	Commit   string `json:"commit,omitempty"`
	Time     string `json:"time,omitempty"` // of the commit
	Modified bool   `json:"modified,omitempty"`
	Go       string `json:"go"`
	Platform string `json:"platform"`
}

func readVersion() versionInfo {
	info := versionInfo{Version: "devel", Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
	build, ok := debug.ReadBuildInfo()
	if !ok {
		return info
	}
	if version := build.Main.Version; version != "" && version != "(devel)" {
		info.Version = version
	}
	for _, setting := range build.Settings {
		switch setting.Key {
		case "vcs.revision":
			info.Commit = setting.Value
		case "vcs.time":
			info.Time = setting.Value
		case "vcs.modified":
			info.Modified = setting.Value == "true"
		}
	}
	return info
}

// Run prints the version.
func (v *versionCommand) Run(a *app) error {
	info := readVersion()
	return a.show(v.JSON, info, func() {
		a.print("continuo %s (%s, %s)", info.Version, info.Go, info.Platform)
		if info.Commit != "" {
			changed := ""
			if info.Modified {
				changed = ", with changes"
			}
			a.print("commit %s of %s%s", info.Commit, info.Time, changed)
		}
	})
}

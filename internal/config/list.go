package config

import (
	"fmt"
	"net/netip"
	"net/url"
	"slices"
	"strings"

	"github.com/continuo-log/continuo/auth"

	"github.com/continuo-log/continuo/internal/yamltree"
)

// list is a list of texts of the kind "tools", "models", "files", "origins", "urls", "addresses", "texts" or "command". As one text, the items are
// separated by commas.
func (b binder) list(target *[]string, kind string) value {
	v := value{takes: []yamltree.Kind{yamltree.List}, show: func() string { return strings.Join(*target, ", ") }}
	ok := arePatterns
	v.names = slices.Contains([]string{"tools", "models", "origins", "addresses", "projects"}, kind) // URLs may have an IPv6 address
	switch kind {
	case "tools": // names of tools, in which "*" matches any run of characters
		v.allowed = "a list of tools' names, each once, in which * matches any characters, such as fs.*"
	case "models": // names of models, as above
		v.allowed = "a list of models' names, each once, in which * matches any characters, such as gpt-*"
	case "files":
		v.allowed = "a list of patterns of files' names, each once, such as *.key or !.env.example"
	case "origins":
		v.allowed = "a list of origins, each once, as browsers send them, such as https://app.example or http://localhost:5173"
		ok = areOrigins
	case "urls":
		v.allowed = "a list of http or https URLs without user, query and fragment, each once, such as https://mcp.example.org/"
		ok = func(items []string) bool {
			return arePatterns(items) && !slices.ContainsFunc(items, func(item string) bool { return !isEndpoint(item) || strings.ContainsAny(item, "?#") })
		}
	case "addresses":
		v.allowed = "a list of addresses or networks, each once, such as 127.0.0.1 or 10.0.0.0/8"
		ok = func(items []string) bool {
			return arePatterns(items) && !slices.ContainsFunc(items, func(item string) bool { _, err := ParseNetwork(item); return err != nil })
		}
	case "projects":
		v.allowed = "a list of projects, each once"
		ok = func(items []string) bool {
			return arePatterns(items) && !slices.ContainsFunc(items, func(item string) bool { return auth.CheckProject(item) != nil })
		}
	case "texts":
		v.allowed = "a list of texts that are not blank, at most 16"
		ok = func(items []string) bool {
			return len(items) <= 16 && !slices.ContainsFunc(items, func(item string) bool { return strings.TrimSpace(item) == "" })
		}
	case "command": // a program and its arguments, which may contain secrets, so that only their number is shown
		v.allowed = "a list of a program and its arguments, such as [npx, -y, some-server]"
		v.hidden, ok = true, isCommand
		v.show = func() string { return commandText(*target) }
	default:
		panic(fmt.Sprintf("config: no kind of list is called %q", kind))
	}
	if !b.fileOnly {
		v.allowed += " (in the environment and in flags: separated by commas)"
	}
	v.setList = func(items []string) error {
		if !ok(items) {
			return errNotAllowed
		}
		*target = items
		if kind == "texts" && len(items) == 0 {
			*target = nil
		}
		return nil
	}
	return v
}

// areOrigins reports whether the items are origins in the form that browsers send, each once: a scheme and a host in lower
// case, and a port unless it is the scheme's own.
func areOrigins(items []string) bool {
	for i, item := range items {
		u, err := url.Parse(item)
		if err != nil || slices.Contains(items[:i], item) || u.Hostname() == "" || item != strings.ToLower(u.Scheme+"://"+u.Host) || strings.ContainsAny(item, "*, ") {
			return false
		}
		own, known := map[string]string{"http": "80", "https": "443"}[u.Scheme]
		if !known || u.Port() == own || strings.HasSuffix(item, ":") {
			return false
		}
	}
	return true
}

// ParseNetwork reads an address or a network of addresses.
func ParseNetwork(text string) (netip.Prefix, error) {
	if address, err := netip.ParseAddr(text); err == nil {
		return netip.PrefixFrom(address, address.BitLen()), nil
	}
	network, err := netip.ParsePrefix(text)
	if err != nil {
		return netip.Prefix{}, fmt.Errorf("read a network: %w", err)
	}
	return network.Masked(), nil
}

// arePatterns reports whether the items are patterns of names, each once.
func arePatterns(items []string) bool {
	for i, item := range items {
		if !isName(item) || strings.Contains(item, ",") || slices.Contains(items[:i], item) {
			return false
		}
	}
	return true
}

func isCommand(items []string) bool {
	return len(items) > 0 && isName(items[0]) && !slices.ContainsFunc(items, func(item string) bool { return strings.ContainsRune(item, 0) })
}

func commandText(command []string) string {
	switch arguments := len(command) - 1; {
	case arguments < 0:
		return ""
	case arguments == 0:
		return command[0]
	case arguments == 1:
		return command[0] + " and 1 argument"
	default:
		return fmt.Sprintf("%s and %d arguments", command[0], arguments)
	}
}

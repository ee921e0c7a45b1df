package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/alecthomas/kong"
)

// manCommand writes the manual pages of packages: one for the program, and one for each command.
type manCommand struct {
	Folder string `arg:"" type:"path" help:"Where the pages are written: continuo.1, continuo-serve.1 and so on."`
}

// Run writes the pages.
func (m *manCommand) Run(a *app) error {
	if err := os.MkdirAll(m.Folder, 0o755); err != nil { //nolint:gosec // manual pages are for everybody
		return fmt.Errorf("write manual pages: %w", err)
	}
	return eachCommand(a.parser.Model.Node, func(node *kong.Node) error {
		page := &manPage{}
		page.write(node)
		name := filepath.Join(m.Folder, manName(node)+".1")
		if err := os.WriteFile(name, []byte(page.text.String()), 0o644); err != nil { //nolint:gosec // as above
			return fmt.Errorf("write manual pages: %w", err)
		}
		return nil
	})
}

func eachCommand(node *kong.Node, do func(*kong.Node) error) error {
	if node.Hidden {
		return nil
	}
	if err := do(node); err != nil {
		return err
	}
	for _, child := range node.Children {
		if err := eachCommand(child, do); err != nil {
			return err
		}
	}
	return nil
}

// manName is the name of a command's page: its words, joined.
func manName(node *kong.Node) string {
	name := node.Name
	for parent := node.Parent; parent != nil; parent = parent.Parent {
		name = parent.Name + "-" + name
	}
	return name
}

// manPage is a manual page in the macros of man(7).
type manPage struct{ text strings.Builder }

func (p *manPage) write(node *kong.Node) {
	name := manName(node)
	p.macro("TH", strings.ToUpper(name), "1", "", "continuo "+readVersion().Version, "Continuo")
	p.macro("SH", "NAME")
	summary, _, _ := strings.Cut(node.Help, "\n")
	p.line(name + " \\- " + escape(strings.TrimSuffix(summary, ".")))
	p.macro("SH", "SYNOPSIS")
	p.line(escape(synopsis(node)))
	p.macro("SH", "DESCRIPTION")
	p.paragraphs(node.Help)
	p.paragraphs(node.Detail)
	if len(node.Positional) > 0 {
		p.macro("SH", "ARGUMENTS")
		for _, argument := range node.Positional {
			p.item(argument.Summary(), argument.Help)
		}
	}
	p.flags(node)
	if len(node.Children) > 0 {
		p.macro("SH", "COMMANDS")
		for _, child := range node.Children {
			if !child.Hidden {
				p.item(child.Summary(), child.Help)
			}
		}
	}
	p.macro("SH", "SEE ALSO")
	p.line(escape(strings.Join(related(node), ", ")))
}

// flags lists a command's own flags; those of every command are on the program's page.
func (p *manPage) flags(node *kong.Node) {
	began := false
	for _, flag := range node.Flags {
		if flag.Hidden {
			continue
		}
		if !began {
			p.macro("SH", "OPTIONS")
			began = true
		}
		p.item(flag.String(), flag.Help)
	}
}

func (p *manPage) macro(name string, arguments ...string) {
	p.text.WriteString("." + name)
	for _, argument := range arguments {
		p.text.WriteString(` "` + strings.ReplaceAll(argument, `"`, `\(dq`) + `"`)
	}
	p.text.WriteString("\n")
}

func (p *manPage) line(text string) { _, _ = io.WriteString(&p.text, text+"\n") }

func (p *manPage) item(term, text string) {
	p.macro("TP")
	p.line(`\fB` + escape(term) + `\fR`)
	p.line(escape(text))
}

// paragraphs writes text; indented lines, which are examples, as they are.
func (p *manPage) paragraphs(text string) {
	for paragraph := range strings.SplitSeq(strings.TrimSpace(text), "\n\n") {
		switch {
		case paragraph == "":
		case strings.HasPrefix(paragraph, "    "):
			p.macro("PP")
			p.macro("EX")
			p.line(escape(paragraph))
			p.macro("EE")
		default:
			p.macro("PP")
			p.line(escape(paragraph))
		}
	}
}

// escape makes text safe for roff: backslashes and hyphens are printed as they are, and no line is read as a macro.
func escape(text string) string {
	text = strings.NewReplacer(`\`, `\(rs`, "-", `\-`).Replace(text)
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		if strings.HasPrefix(line, ".") || strings.HasPrefix(line, "'") {
			lines[i] = `\&` + line
		}
	}
	return strings.Join(lines, "\n")
}

func synopsis(node *kong.Node) string {
	if node.Parent == nil {
		return "continuo COMMAND [flags]"
	}
	return "continuo " + node.Summary()
}

// related are the pages of the parent and of the commands below.
func related(node *kong.Node) []string {
	var pages []string
	if node.Parent != nil {
		pages = append(pages, manName(node.Parent)+"(1)")
	}
	for _, child := range node.Children {
		if !child.Hidden {
			pages = append(pages, manName(child)+"(1)")
		}
	}
	return pages
}

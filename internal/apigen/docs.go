package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
)

// module is the path of this module, whose packages have their sources below the root folder.
const module = "github.com/continuo-log/continuo"

// docs reads doc comments and constants of the packages of this module.
type docs struct {
	root     string
	packages map[string]*packageDocs // by import path
}

// packageDocs is what the sources of a package say.
type packageDocs struct {
	types   map[string]string   // doc comments of types
	fields  map[string]string   // of fields, by "Type.Field", and of methods, by "Type.Method"
	members map[string][]string // the names of each type's fields and their JSON names, alternately
	values  map[string][]string // the constants of each named string type, in order
}

// of returns what the sources of a package say; nothing for packages of other modules.
func (d *docs) of(path string) (*packageDocs, error) {
	if path == "main" { // a type of this package
		path = module + "/internal/apigen"
	}
	if found := d.packages[path]; found != nil {
		return found, nil
	}
	p := &packageDocs{types: map[string]string{}, fields: map[string]string{}, members: map[string][]string{}, values: map[string][]string{}}
	d.packages[path] = p
	below, ok := strings.CutPrefix(path, module)
	if !ok {
		return p, nil
	}
	folder := filepath.Join(d.root, filepath.FromSlash(below))
	files, err := os.ReadDir(folder)
	if err != nil {
		return nil, err
	}
	for _, file := range files {
		if name := file.Name(); !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") {
			continue
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), filepath.Join(folder, file.Name()), nil, parser.ParseComments)
		if err != nil {
			return nil, err
		}
		for _, declaration := range parsed.Decls {
			p.read(declaration)
		}
	}
	return p, nil
}

func (p *packageDocs) read(declaration ast.Decl) {
	switch declaration := declaration.(type) {
	case *ast.FuncDecl:
		if declaration.Recv != nil {
			p.fields[receiver(declaration)+"."+declaration.Name.Name] = declaration.Doc.Text()
		}
	case *ast.GenDecl:
		for _, spec := range declaration.Specs {
			switch spec := spec.(type) {
			case *ast.TypeSpec:
				p.types[spec.Name.Name] = firstText(spec.Doc, declaration.Doc)
				p.readFields(spec.Name.Name, spec.Type)
			case *ast.ValueSpec:
				p.readConstants(spec)
			}
		}
	}
}

func receiver(f *ast.FuncDecl) string {
	of := f.Recv.List[0].Type
	if star, ok := of.(*ast.StarExpr); ok {
		of = star.X
	}
	if name, ok := of.(*ast.Ident); ok {
		return name.Name
	}
	return ""
}

func (p *packageDocs) readFields(name string, of ast.Expr) {
	structure, ok := of.(*ast.StructType)
	if !ok {
		return
	}
	for _, field := range structure.Fields.List {
		text := firstText(field.Doc, field.Comment)
		for _, f := range field.Names {
			p.fields[name+"."+f.Name] = text
			if field.Tag != nil {
				p.members[name] = append(p.members[name], f.Name, tagName(field.Tag.Value))
			}
		}
	}
}

var namePattern = regexp.MustCompile(`\b(?:json|query|path|header):"([^",]+)`)

func tagName(tag string) string {
	if found := namePattern.FindStringSubmatch(tag); found != nil {
		return found[1]
	}
	return ""
}

func (p *packageDocs) readConstants(spec *ast.ValueSpec) {
	named, ok := spec.Type.(*ast.Ident)
	if !ok {
		return
	}
	for _, value := range spec.Values {
		literal, ok := value.(*ast.BasicLit)
		if !ok || literal.Kind != token.STRING {
			continue
		}
		if text, err := strconv.Unquote(literal.Value); err == nil && text != "" {
			p.values[named.Name] = append(p.values[named.Name], text)
		}
	}
}

func firstText(groups ...*ast.CommentGroup) string {
	for _, group := range groups {
		if text := group.Text(); text != "" {
			return text
		}
	}
	return ""
}

var (
	linkPattern = regexp.MustCompile(`\[([A-Za-z.]+)\]`)
	wordPattern = regexp.MustCompile(`[A-Za-z][A-Za-z0-9]*`)
)

// description converts a doc comment to Markdown: names of fields become the names that clients see, and the lines of a
// paragraph become one.
func (p *packageDocs) description(owner, comment string) string {
	names := map[string]string{}
	for members := p.members[owner]; len(members) > 0; members = members[2:] {
		if members[1] != "" && members[1] != "-" {
			names[members[0]] = "`" + members[1] + "`"
		}
	}
	var paragraphs []string
	for paragraph := range strings.SplitSeq(strings.TrimSpace(comment), "\n\n") {
		paragraphs = append(paragraphs, strings.Join(strings.Fields(paragraph), " "))
	}
	text := linkPattern.ReplaceAllString(strings.Join(paragraphs, "\n\n"), "$1")
	return wordPattern.ReplaceAllStringFunc(text, func(word string) string {
		if shown, ok := names[word]; ok && word != strings.ToLower(word) {
			return shown
		}
		return word
	})
}

// afterFirst is a text without its first paragraph.
func afterFirst(comment string) string {
	_, rest, _ := strings.Cut(comment, "\n\n")
	return rest
}

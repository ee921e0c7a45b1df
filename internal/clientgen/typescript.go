package main

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// typescriptTypes writes the types of requests, answers and events.
func typescriptTypes(d *document) string {
	var b strings.Builder
	b.WriteString("// " + generated + "\n\nimport type { ServerEvent } from \"./transport.js\";\n")
	for _, c := range d.schemas {
		if len(c.schema.Events) > 0 {
			continue
		}
		b.WriteString("\n" + tsComment(c.schema.Description, ""))
		if isObject(c.schema) {
			fmt.Fprintf(&b, "export interface %s %s\n", c.name, tsObject(c.schema, ""))
			continue
		}
		fmt.Fprintf(&b, "export type %s = %s;\n", c.name, tsType(c.schema, ""))
	}
	for _, c := range d.streams() {
		names, own := d.events(c)
		for _, event := range own {
			fmt.Fprintf(&b, "\n%sexport type %s%s = ServerEvent<%q, %s>;\n", tsComment(event.schema.Description, ""), c.name, pascal(event.name), event.name, tsType(event.schema, ""))
		}
		intro, _, _ := strings.Cut(c.schema.Description, "\n\nThe server-sent")
		fmt.Fprintf(&b, "\n%sexport type %sEvent =\n  | %s;\n", tsComment(intro, ""), c.name, strings.Join(names, "\n  | "))
	}
	return b.String()
}

func isObject(s schema) bool {
	return len(s.Type) == 1 && s.Type[0] == "object" && (len(s.Properties) > 0 || s.Additional == nil)
}

func tsType(s schema, indent string) string {
	switch {
	case s.Ref != "":
		return s.name()
	case len(s.AnyOf) > 0 || len(s.OneOf) > 0:
		var options []string
		for _, option := range append(slices.Clone(s.AnyOf), s.OneOf...) {
			options = append(options, tsType(option, indent))
		}
		return strings.Join(options, " | ")
	case s.Const != nil:
		return string(s.Const)
	case len(s.Enum) > 0:
		var options []string
		for _, value := range s.Enum {
			options = append(options, strconv.Quote(value))
		}
		return strings.Join(options, " | ")
	}
	var options []string
	for _, name := range s.Type {
		options = append(options, tsSimple(s, name, indent))
	}
	if len(options) == 0 {
		return "unknown"
	}
	return strings.Join(options, " | ")
}

func tsSimple(s schema, name, indent string) string {
	switch name {
	case "integer", "number":
		return "number"
	case "array":
		items := "unknown"
		if s.Items != nil {
			items = tsType(*s.Items, indent)
		}
		if strings.Contains(items, " ") && !strings.HasPrefix(items, "{") {
			items = "(" + items + ")"
		}
		return items + "[]"
	case "object":
		return tsObject(s, indent)
	default:
		return name // string, boolean, null
	}
}

func tsObject(s schema, indent string) string {
	others := "unknown"
	if s.Additional != nil && s.Additional.schema.Type != nil || s.Additional != nil && s.Additional.schema.Ref != "" {
		others = tsType(s.Additional.schema, indent)
	}
	if len(s.Properties) == 0 {
		if s.Additional == nil {
			return "{}"
		}
		return "Record<string, " + others + ">"
	}
	var b strings.Builder
	b.WriteString("{\n")
	for _, p := range s.Properties {
		optional := "?"
		if slices.Contains(s.Required, p.name) {
			optional = ""
		}
		fmt.Fprintf(&b, "%s%s  %s%s: %s;\n", tsComment(p.schema.Description, indent+"  "), indent, tsName(p.name), optional, tsType(p.schema, indent+"  "))
	}
	if s.Additional != nil && s.Additional.allowed {
		b.WriteString(indent + "  [name: string]: unknown;\n")
	}
	b.WriteString(indent + "}")
	return b.String()
}

var plainName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

func tsName(name string) string {
	if plainName.MatchString(name) {
		return name
	}
	return strconv.Quote(name)
}

func tsComment(text, indent string) string {
	if text == "" {
		return ""
	}
	text = strings.ReplaceAll(text, "*/", "*\u200b/")
	lines := wrapped(text, 110-len(indent))
	if len(lines) == 1 {
		return indent + "/** " + lines[0] + " */\n"
	}
	var b strings.Builder
	b.WriteString(indent + "/**\n")
	for _, line := range lines {
		b.WriteString(strings.TrimRight(indent+" * "+line, " ") + "\n")
	}
	return b.String() + indent + " */\n"
}

// typescriptClient writes the class with the methods.
func typescriptClient(d *document) string {
	var b strings.Builder
	b.WriteString("// " + generated + "\n\nimport { Transport, type CallOptions } from \"./transport.js\";\nimport type * as api from \"./types.gen.js\";\n")
	b.WriteString("\n/** A server of Continuo, with a method for each call of its API. */\nexport class Continuo extends Transport {")
	for _, o := range d.operations {
		if o.answer != nil || o.text || !o.stream {
			tsMethod(&b, d, o, false)
		}
		if o.stream {
			tsMethod(&b, d, o, true)
		}
	}
	b.WriteString("}\n")
	return b.String()
}

func tsMethod(b *strings.Builder, d *document, o operation, stream bool) {
	name, returns, call := o.id, "Promise<"+tsAnswer(o)+">", "call"
	if stream {
		returns, call = "AsyncGenerator<api."+o.events+"Event>", "stream"
		if o.answer != nil {
			name += "Stream"
		}
	}
	path, query, options := o.split()
	var arguments, queries, headers, typed []string
	url := o.path
	for _, p := range path {
		arguments = append(arguments, p.option()+": "+tsType(p.Schema, ""))
		url = strings.ReplaceAll(url, "{"+p.Name+"}", "${encodeURIComponent("+p.option()+")}")
	}
	for _, p := range query {
		arguments = append(arguments, p.option()+": "+qualified(d, tsType(p.Schema, "")))
		queries = append(queries, p.Name)
	}
	var members []string
	if len(queries) > 0 {
		members = append(members, "query: { "+strings.Join(queries, ", ")+" }")
	}
	if o.body != nil {
		kind := qualified(d, tsType(*o.body, ""))
		if o.bodyRequired {
			arguments = append(arguments, "body: "+kind)
		} else {
			arguments = append(arguments, "body: "+kind+" = {}")
		}
		members = append(members, "body")
	}
	for _, p := range options {
		comment := strings.Join(wrapped(p.Description, 1<<20), " ")
		typed = append(typed, fmt.Sprintf("\n%s    %s?: %s;", tsComment(comment, "    "), tsName(p.option()), qualified(d, tsType(p.Schema, "    "))))
		if p.In == "header" {
			headers = append(headers, fmt.Sprintf("%q: options.%s", p.Name, p.option()))
		}
	}
	kind := "CallOptions"
	if len(typed) > 0 {
		kind += " & {" + strings.Join(typed, "") + "\n  }"
	}
	arguments = append(arguments, "options: "+kind+" = {}")
	var optionQueries []string
	for _, p := range options {
		if p.In == "query" {
			optionQueries = append(optionQueries, fmt.Sprintf("%q: options.%s", p.Name, p.option()))
		}
	}
	if len(optionQueries) > 0 {
		members = slices.DeleteFunc(members, func(m string) bool { return strings.HasPrefix(m, "query:") })
		members = append(members, "query: { "+strings.Join(append(queries, optionQueries...), ", ")+" }")
	}
	if len(headers) > 0 {
		members = append(members, "headers: { "+strings.Join(headers, ", ")+" }")
	}
	members = append(members, "signal: options.signal")
	quote := `"`
	if strings.Contains(url, "${") {
		quote = "`"
	}
	fmt.Fprintf(b, "\n%s  %s(%s): %s {\n", tsComment(documentation(o), "  "), name, strings.Join(arguments, ", "), returns)
	fmt.Fprintf(b, "    return this.%s(%q, %s%s%s, { %s });\n  }\n", call, o.method, quote, url, quote, strings.Join(members, ", "))
}

func documentation(o operation) string {
	text := o.summary + "."
	if o.description != "" {
		text += "\n\n" + o.description
	}
	return text
}

func tsAnswer(o operation) string {
	var options []string
	if o.answer != nil {
		if kind := tsType(*o.answer, ""); kind == "unknown" {
			return kind
		} else if plainName.MatchString(kind) {
			options = append(options, "api."+kind)
		} else {
			options = append(options, qualifiedAnswer(*o.answer))
		}
	}
	if o.text {
		options = append(options, "string")
	}
	if len(options) == 0 {
		return "void"
	}
	return strings.Join(options, " | ")
}

func qualifiedAnswer(s schema) string {
	var options []string
	for _, option := range s.AnyOf {
		options = append(options, "api."+option.name())
	}
	if len(options) == 0 {
		return tsType(s, "")
	}
	return strings.Join(options, " | ")
}

var word = regexp.MustCompile(`"[^"]*"|[A-Za-z_][A-Za-z0-9_]*`)

// qualified names the components in a type by their module.
func qualified(d *document, kind string) string {
	return word.ReplaceAllStringFunc(kind, func(name string) string {
		if slices.ContainsFunc(d.schemas, func(c component) bool { return c.name == name }) {
			return "api." + name
		}
		return name
	})
}

package main

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// keywords are names that Python does not allow for members of a class.
var keywords = []string{"from", "class", "import", "global", "pass", "in", "is", "not", "or", "and", "if", "else", "None", "True", "False", "def", "del", "try", "with", "as", "async", "await", "lambda", "return", "raise", "yield", "while", "for", "break", "continue", "finally", "except", "elif", "assert", "nonlocal"}

// pythonTypes writes the types of requests, answers and events.
func pythonTypes(d *document) string {
	var b strings.Builder
	b.WriteString("\"\"\"The types of requests, answers and events: dicts as JSON has them.\"\"\"\n\n# " + generated + "\n")
	b.WriteString("# ruff: noqa: E501\n\nfrom __future__ import annotations\n\nfrom typing import Any, Literal, NotRequired, TypeAlias, TypedDict\n")
	for _, c := range d.schemas {
		switch {
		case len(c.schema.Events) > 0:
		case isObject(c.schema):
			pythonObject(&b, c.name, c.schema)
		default:
			b.WriteString("\n\n" + pythonComment(c.schema.Description, ""))
			fmt.Fprintf(&b, "%s: TypeAlias = %s\n", c.name, strconv.Quote(strings.ReplaceAll(pythonType(c.schema), `"`, `'`)))
		}
	}
	for _, c := range d.streams() {
		names, own := d.events(c)
		for _, event := range own {
			fmt.Fprintf(&b, "\n\nclass %s%s(TypedDict):\n", c.name, pascal(event.name))
			if event.schema.Description != "" {
				b.WriteString(pythonDoc(event.schema.Description, "    "))
			}
			fmt.Fprintf(&b, "    event: Literal[%q]\n    data: %s\n    id: NotRequired[str]\n", event.name, pythonType(event.schema))
		}
		intro, _, _ := strings.Cut(c.schema.Description, "\n\nThe server-sent")
		fmt.Fprintf(&b, "\n\n%s%sEvent: TypeAlias = \"\"\"(\n    %s\n)\"\"\"\n", pythonComment(intro, ""), c.name, strings.Join(names, "\n    | "))
	}
	return b.String()
}

// pythonObject writes a TypedDict, and before it those of its members that are objects without a name.
func pythonObject(b *strings.Builder, name string, s schema) {
	functional := slices.ContainsFunc(s.Properties, func(p property) bool { return slices.Contains(keywords, p.name) })
	for i, p := range s.Properties {
		if isObject(p.schema) && len(p.schema.Properties) > 0 {
			inner := name + pascal(p.name)
			pythonObject(b, inner, p.schema)
			s.Properties[i].schema = schema{Ref: "#/components/schemas/" + inner, Description: p.schema.Description}
		}
	}
	if functional {
		b.WriteString("\n\n" + pythonComment(s.Description, ""))
		fmt.Fprintf(b, "%s = TypedDict(\n    %q,\n    {\n", name, name)
		for _, p := range s.Properties {
			b.WriteString(pythonComment(p.schema.Description, "        "))
			fmt.Fprintf(b, "        %q: %s,\n", p.name, strconv.Quote(strings.ReplaceAll(pythonMember(s, p), `"`, `'`)))
		}
		b.WriteString("    },\n)\n")
		return
	}
	fmt.Fprintf(b, "\n\nclass %s(TypedDict):\n", name)
	if s.Description != "" {
		b.WriteString(pythonDoc(s.Description, "    "))
	}
	for _, p := range s.Properties {
		b.WriteString(pythonComment(p.schema.Description, "    "))
		fmt.Fprintf(b, "    %s: %s\n", p.name, pythonMember(s, p))
	}
	if len(s.Properties) == 0 && s.Description == "" {
		b.WriteString("    pass\n")
	}
}

func pythonMember(s schema, p property) string {
	if slices.Contains(s.Required, p.name) {
		return pythonType(p.schema)
	}
	return "NotRequired[" + pythonType(p.schema) + "]"
}

func pythonType(s schema) string {
	switch {
	case s.Ref != "":
		return s.name()
	case len(s.AnyOf) > 0 || len(s.OneOf) > 0:
		var options []string
		for _, option := range append(slices.Clone(s.AnyOf), s.OneOf...) {
			options = append(options, pythonType(option))
		}
		return strings.Join(options, " | ")
	case s.Const != nil:
		return map[string]string{"false": "Literal[False]", "true": "Literal[True]", "null": "None"}[string(s.Const)]
	case len(s.Enum) > 0:
		var options []string
		for _, value := range s.Enum {
			options = append(options, strconv.Quote(value))
		}
		return "Literal[" + strings.Join(options, ", ") + "]"
	}
	var options []string
	for _, name := range s.Type {
		options = append(options, pythonSimple(s, name))
	}
	if len(options) == 0 {
		return "Any"
	}
	return strings.Join(options, " | ")
}

func pythonSimple(s schema, name string) string {
	switch name {
	case "string":
		return "str"
	case "integer":
		return "int"
	case "number":
		return "float"
	case "boolean":
		return "bool"
	case "null":
		return "None"
	case "array":
		if s.Items == nil {
			return "list[Any]"
		}
		return "list[" + pythonType(*s.Items) + "]"
	default:
		others := "Any"
		if s.Additional != nil && (s.Additional.schema.Type != nil || s.Additional.schema.Ref != "") {
			others = pythonType(s.Additional.schema)
		}
		return "dict[str, " + others + "]"
	}
}

func pythonComment(text, indent string) string {
	if text == "" {
		return ""
	}
	var b strings.Builder
	for _, line := range wrapped(text, 110-len(indent)) {
		b.WriteString(strings.TrimRight(indent+"# "+line, " ") + "\n")
	}
	return b.String()
}

func pythonDoc(text, indent string) string {
	text = strings.ReplaceAll(strings.ReplaceAll(text, `\`, `\\`), `"""`, `\"\"\"`)
	if strings.HasSuffix(text, `"`) {
		text += " "
	}
	lines := wrapped(text, 110-len(indent))
	if len(lines) == 1 {
		return indent + `"""` + lines[0] + "\"\"\"\n"
	}
	var b strings.Builder
	for i, line := range lines {
		if i == 0 {
			line = `"""` + line
		}
		b.WriteString(strings.TrimRight(indent+line, " ") + "\n")
	}
	return b.String() + indent + "\"\"\"\n"
}

// pythonClient writes the class with the methods.
func pythonClient(d *document) string {
	var b strings.Builder
	b.WriteString("\"\"\"A client of a server of Continuo, with a method for each call of its API.\"\"\"\n\n# " + generated + "\n")
	b.WriteString("# ruff: noqa: E501\n\nfrom __future__ import annotations\n\nfrom collections.abc import Iterator\nfrom typing import Any, Literal\n\n" +
		"from . import types as api\nfrom .transport import Transport, quoted\n\n\nclass Continuo(Transport):\n    \"\"\"A server of Continuo.\"\"\"\n")
	for _, o := range d.operations {
		if o.answer != nil || o.text || !o.stream {
			pythonMethod(&b, d, o, false)
		}
		if o.stream {
			pythonMethod(&b, d, o, true)
		}
	}
	return b.String()
}

func pythonMethod(b *strings.Builder, d *document, o operation, stream bool) {
	name, returns, call := snake(o.id), pythonAnswer(o), "_call"
	if stream {
		returns, call = "Iterator["+o.events+"Event]", "_stream"
		if o.answer != nil {
			name += "_stream"
		}
	}
	path, query, options := o.split()
	arguments, members := []string{"self"}, []string{}
	url, prefix := o.path, ""
	for _, p := range path {
		arguments = append(arguments, argument(p)+": "+qualifiedPython(d, pythonType(p.Schema)))
		url, prefix = strings.ReplaceAll(url, "{"+p.Name+"}", "{quoted("+argument(p)+")}"), "f"
	}
	var queries, headers []string
	for _, p := range query {
		arguments = append(arguments, argument(p)+": "+qualifiedPython(d, pythonType(p.Schema)))
		queries = append(queries, fmt.Sprintf("%q: %s", p.Name, argument(p)))
	}
	if o.body != nil {
		kind := qualifiedPython(d, pythonType(*o.body))
		if o.bodyRequired {
			arguments, members = append(arguments, "body: "+kind), append(members, "body=body")
		} else {
			arguments, members = append(arguments, "body: "+kind+" | None = None"), append(members, "body=body or {}")
		}
	}
	text := documentation(o)
	if len(options) > 0 {
		arguments = append(arguments, "*")
		text += "\n"
	}
	for _, p := range options {
		arguments = append(arguments, argument(p)+": "+qualifiedPython(d, pythonType(p.Schema))+" | None = None")
		text += "\n" + argument(p) + ": " + p.Description
		if p.In == "header" {
			headers = append(headers, fmt.Sprintf("%q: %s", p.Name, argument(p)))
		} else {
			queries = append(queries, fmt.Sprintf("%q: %s", p.Name, argument(p)))
		}
	}
	if len(queries) > 0 {
		members = append(members, "query={"+strings.Join(queries, ", ")+"}")
	}
	if len(headers) > 0 {
		members = append(members, "headers={"+strings.Join(headers, ", ")+"}")
	}
	fmt.Fprintf(b, "\n    def %s(\n        %s,\n    ) -> %s:\n%s", name, strings.Join(arguments, ",\n        "), qualifiedPython(d, returns), pythonDoc(text, "        "))
	fmt.Fprintf(b, "        return self.%s(%s)\n", call, strings.Join(append([]string{strconv.Quote(o.method), prefix + strconv.Quote(url)}, members...), ", "))
}

// argument is the name under which a method takes a parameter.
func argument(p parameter) string {
	if slices.Contains(keywords, p.option()) {
		return p.option() + "_"
	}
	return p.option()
}

func pythonAnswer(o operation) string {
	var options []string
	if o.answer != nil {
		options = append(options, pythonType(*o.answer))
	}
	if o.text {
		options = append(options, "str")
	}
	if len(options) == 0 {
		return "None"
	}
	return strings.Join(options, " | ")
}

// qualifiedPython names the components in a type by their module.
func qualifiedPython(d *document, kind string) string {
	return word.ReplaceAllStringFunc(kind, func(name string) string {
		known := slices.ContainsFunc(d.schemas, func(c component) bool {
			return c.name == name || len(c.schema.Events) > 0 && c.name+"Event" == name
		})
		if known {
			return "api." + name
		}
		return name
	})
}

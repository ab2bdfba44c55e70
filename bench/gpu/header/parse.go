package main

import (
	"bytes"
	"fmt"
	"regexp"
	"strings"
)

// A header's contents, in its order.
type contents struct {
	constants []string
	structs   []structure
	functions []function
}

type structure struct {
	name   string
	fields []string
}

type function struct {
	symbol string // as a driver exports it
	args   string // of its prototype
}

var (
	comment    = regexp.MustCompile(`(?s)/\*.*?\*/|//[^\n]*`)
	enumerator = regexp.MustCompile(`\b(CU[A-Z0-9_]*)\s*=\s*(?:0x)?[0-9a-fA-F]+`)
	defined    = regexp.MustCompile(`(?m)^#define (CU[A-Z0-9_]+) 0x[0-9a-f]+$`)
	enumName   = regexp.MustCompile(`(?s)typedef enum \w+ \{[^}]*\} (\w+);`)
	structBody = regexp.MustCompile(`(?s)typedef struct \w+ \{([^}]*)\} (\w+);`)
	fieldName  = regexp.MustCompile(`(\w+)(?:\[\d+\])?$`)
	prototype  = regexp.MustCompile(`(?s)\bCUresult (cu\w+)\(([^;]*)\);`)
	renamed    = regexp.MustCompile(`(?m)^#define (cu\w+) (cu\w+)$`)
)

func parse(header string) contents {
	header = comment.ReplaceAllString(header, "")
	var c contents
	for _, m := range enumerator.FindAllStringSubmatch(header, -1) {
		c.constants = append(c.constants, m[1])
	}
	for _, m := range defined.FindAllStringSubmatch(header, -1) {
		c.constants = append(c.constants, m[1])
	}
	for _, m := range enumName.FindAllStringSubmatch(header, -1) {
		c.structs = append(c.structs, structure{name: m[1]}) // of which only the size counts
	}
	for _, m := range structBody.FindAllStringSubmatch(header, -1) {
		s := structure{name: m[2]}
		for _, line := range strings.Split(m[1], ";") {
			for _, declarator := range strings.Split(strings.TrimSpace(line), ",") {
				if f := fieldName.FindStringSubmatch(strings.TrimSpace(declarator)); f != nil {
					s.fields = append(s.fields, f[1])
				}
			}
		}
		c.structs = append(c.structs, s)
	}
	exported := map[string]string{}
	for _, m := range renamed.FindAllStringSubmatch(header, -1) {
		exported[m[1]] = m[2]
	}
	for _, m := range prototype.FindAllStringSubmatch(header, -1) {
		symbol := m[1]
		if to := exported[symbol]; to != "" {
			symbol = to
		}
		c.functions = append(c.functions, function{symbol, strings.Join(strings.Fields(m[2]), " ")})
	}
	return c
}

// top begins the assertions. A toolkit declares what it has replaced, by its old name,
// only under the first line; the compiler is to go on behind what is not there.
const top = `#define __CUDA_API_VERSION_INTERNAL
#include <stddef.h>
#include <cuda.h>
`

// program is the C program that prints the assertions.
func (c contents) program(header string) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "#include <stdio.h>\n#include %q\nint main(void) {\n", header)
	line := func(text string) { fmt.Fprintf(&b, "  puts(%q);\n", text) }
	line("// Written by bench/gpu/header. Each line is one assertion about a toolkit's cuda.h.\n" + strings.TrimSuffix(top, "\n"))
	for _, name := range c.constants {
		fmt.Fprintf(&b, "  printf(\"_Static_assert(%s == %%lld, \\\"%s is %%lld in ours\\\");\\n\", (long long)%s, (long long)%s);\n", name, name, name, name)
	}
	for _, s := range c.structs {
		fmt.Fprintf(&b, "  printf(\"_Static_assert(sizeof(%s) == %%zu, \\\"%s has %%zu bytes in ours\\\");\\n\", sizeof(%s), sizeof(%s));\n", s.name, s.name, s.name, s.name)
		for _, f := range s.fields {
			fmt.Fprintf(&b, "  printf(\"_Static_assert(offsetof(%s, %s) == %%zu, \\\"%s.%s is at %%zu in ours\\\");\\n\", offsetof(%s, %s), offsetof(%s, %s));\n",
				s.name, f, s.name, f, s.name, f, s.name, f)
		}
	}
	for _, f := range c.functions {
		line("#undef " + f.symbol)
		line(fmt.Sprintf("_Static_assert(__builtin_types_compatible_p(__typeof__(&%s), CUresult (*)(%s)), \"%s takes (%s) in ours\");", f.symbol, f.args, f.symbol, f.args))
	}
	b.WriteString("  return 0;\n}\n")
	return b.Bytes()
}

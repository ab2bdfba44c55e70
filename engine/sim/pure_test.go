package sim

import (
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// The simulator looks at nothing but its arguments.
func TestPure(t *testing.T) {
	files, err := filepath.Glob("*.go")
	if err != nil || len(files) == 0 {
		t.Fatalf("no files: %v", err)
	}
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ImportsOnly)
		if err != nil {
			t.Fatal(err)
		}
		for _, x := range f.Imports {
			path, _ := strconv.Unquote(x.Path.Value)
			if slices.Contains([]string{"time", "sync", "context", "os", "net", "math/rand", "math/rand/v2"}, path) {
				t.Errorf("%s imports %s", name, path)
			}
		}
	}
}

// Package arch enforces the dependency rule. It opens and parses every Go file
// itself, whatever its build tags: a check that asks the go command sees one
// configuration only, and go test would answer it from its cache, since it does
// not know which files a subprocess has read.
package arch

import (
	"fmt"
	"go/ast"
	"go/build/constraint"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// module is the path of ours in go.mod.
const module = "dorylus"

// A file is what the rule needs to know of a Go file.
type file struct {
	name    string // from the top folder, with slashes
	folder  string
	test    bool
	imports []use
	tags    []constraint.Expr
}

type use struct {
	path string
	line int
}

// Check returns what breaks the rule in the tree below root, one line each:
// "engine/sched/machine.go:12: imports time: the scheduler has no clock".
func Check(root string) ([]string, error) {
	files, err := read(root)
	if err != nil {
		return nil, fmt.Errorf("check imports: %w", err)
	}
	var found []string
	for _, f := range files {
		found = append(found, f.check()...)
	}
	found = append(found, reach(files)...)
	slices.Sort(found)
	return slices.Compact(found), nil
}

// read parses all Go files below root, except in testdata, hidden folders and
// nested modules.
func read(root string) ([]*file, error) {
	var files []*file
	err := filepath.WalkDir(root, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := d.Name()
		if d.IsDir() {
			if p == root {
				return nil
			}
			if name == "testdata" || name == "vendor" || strings.HasPrefix(name, ".") || strings.HasPrefix(name, "_") {
				return filepath.SkipDir
			}
			if _, err := os.Stat(filepath.Join(p, "go.mod")); err == nil {
				return filepath.SkipDir
			}
			return nil
		}
		if filepath.Ext(name) != ".go" || strings.HasPrefix(name, ".") || strings.HasPrefix(name, "_") {
			return nil
		}
		rel, err := filepath.Rel(root, p)
		if err != nil {
			return err
		}
		f, err := parse(p, filepath.ToSlash(rel))
		if err != nil {
			return err
		}
		files = append(files, f)
		return nil
	})
	return files, err
}

func parse(p, rel string) (*file, error) {
	src, err := os.ReadFile(p)
	if err != nil {
		return nil, err
	}
	set := token.NewFileSet()
	tree, err := parser.ParseFile(set, rel, src, parser.ImportsOnly|parser.ParseComments)
	if err != nil {
		return nil, err
	}
	f := &file{name: rel, folder: path.Dir(rel), test: strings.HasSuffix(rel, "_test.go")}
	for _, i := range tree.Imports {
		name, err := strconv.Unquote(i.Path.Value)
		if err != nil {
			return nil, fmt.Errorf("%s: import %s: %w", rel, i.Path.Value, err)
		}
		f.imports = append(f.imports, use{name, set.Position(i.Pos()).Line})
	}
	f.tags = tags(tree)
	return f, nil
}

// tags are the //go:build lines above the package clause.
func tags(tree *ast.File) []constraint.Expr {
	var all []constraint.Expr
	for _, group := range tree.Comments {
		if group.Pos() > tree.Package {
			break
		}
		for _, c := range group.List {
			if x, err := constraint.Parse(c.Text); err == nil && constraint.IsGoBuild(c.Text) {
				all = append(all, x)
			}
		}
	}
	return all
}

// needs says whether the file is compiled only with the tag.
func (f *file) needs(tag string) bool {
	for _, x := range f.tags {
		if !x.Eval(func(t string) bool { return t != tag }) {
			return true
		}
	}
	return false
}

// ours is the folder of an imported package of ours.
func (u use) ours() (string, bool) { return strings.CutPrefix(u.path, module+"/") }

// below says whether p is the package of a pattern, or one below "pattern/...".
func below(p, pattern string) bool {
	if dir, ok := strings.CutSuffix(pattern, "/..."); ok {
		return p == dir || strings.HasPrefix(p, dir+"/")
	}
	return p == pattern
}

func anyBelow(p string, patterns []string) bool {
	return slices.ContainsFunc(patterns, func(pattern string) bool { return below(p, pattern) })
}

// ruleOf is the rule with the longest folder that holds p; nil where the layout
// has no place for p.
func ruleOf(p string) *rule {
	var best *rule
	for i := range rules {
		r := &rules[i]
		if below(p, r.folder+"/...") && (best == nil || len(r.folder) > len(best.folder)) {
			best = r
		}
	}
	return best
}

// check holds a file's own imports against the rule of its folder.
func (f *file) check() []string {
	r := ruleOf(f.folder)
	if r == nil {
		return []string{fmt.Sprintf("%s: no rule for this folder; Go code lives in cmd, engine, kernels, csrc, lambda, cluster and bench", f.name)}
	}
	var found []string
	bad := func(u use, format string, args ...any) {
		found = append(found, fmt.Sprintf("%s:%d: imports %s: %s", f.name, u.line, u.path, fmt.Sprintf(format, args...)))
	}
	for _, u := range f.imports {
		if dir, ok := u.ours(); ok {
			switch {
			case f.test && anyBelow(dir, r.tests):
			case rootOnly[f.folder] && !f.test:
				bad(u, "the root of %s imports no package of ours", f.folder)
			case anyBelow(dir, r.except) || !anyBelow(dir, r.ours) && dir != f.folder:
				bad(u, "%s may import, of ours, %s", r.folder, listed(r))
			}
			continue
		}
		switch {
		case u.path == "C" && !bindings(f):
			bad(u, "cgo lives in csrc/*/bind.go only")
		case r.folder == "csrc" && u.path != "C" && strings.Contains(strings.SplitN(u.path, "/", 2)[0], "."):
			bad(u, "csrc needs the standard library only")
		case below(u.path, "gorgonia.org/cu/...") && !f.needs("cuda"):
			bad(u, "only files with //go:build cuda may")
		}
	}
	return found
}

func bindings(f *file) bool {
	ok, err := path.Match("csrc/*/bind.go", f.name)
	return err == nil && ok
}

func listed(r *rule) string {
	if len(r.ours) == 0 {
		return "nothing"
	}
	s := strings.Join(r.ours, ", ")
	if len(r.except) > 0 {
		s += " except " + strings.Join(r.except, ", ")
	}
	return s
}

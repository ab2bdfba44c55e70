package arch

import (
	"fmt"
	"slices"
	"strings"
)

// reach finds banned imports, direct ones and those that a package depends on
// through others of ours. Test files are not followed: what a test needs is not
// in the binary.
func reach(files []*file) []string {
	byFolder := make(map[string][]*file)
	for _, f := range files {
		if !f.test {
			byFolder[f.folder] = append(byFolder[f.folder], f)
		}
	}
	var found []string
	for folder := range byFolder {
		r := ruleOf(folder)
		if r == nil || len(r.never) == 0 {
			continue
		}
		w := walk{byFolder: byFolder, never: r.never, seen: make(map[string]bool)}
		w.from(folder, nil)
		found = append(found, w.found...)
	}
	slices.Sort(found)
	return found
}

// A walk follows the imports of one package.
type walk struct {
	byFolder map[string][]*file
	never    []ban
	seen     map[string]bool
	found    []string
}

func (w *walk) from(folder string, via []string) {
	if w.seen[folder] {
		return
	}
	w.seen[folder] = true
	via = append(slices.Clone(via), folder)
	for _, f := range w.byFolder[folder] {
		for _, u := range f.imports {
			for _, b := range w.never {
				if below(u.path, b.path+"/...") {
					w.report(f, u, b, via)
				}
			}
			if dir, ok := u.ours(); ok {
				w.from(dir, via)
			}
		}
	}
}

func (w *walk) report(f *file, u use, b ban, via []string) {
	text := fmt.Sprintf("%s:%d: imports %s: %s", f.name, u.line, u.path, b.because)
	if len(via) > 1 {
		text += fmt.Sprintf(" (%s)", strings.Join(via, " → "))
	}
	w.found = append(w.found, text)
}

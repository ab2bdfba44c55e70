// Package dd runs data-driven tests: text files of commands and what they print.
//
// A file is a run of blocks between empty lines:
//
//	# comments, before a block
//	command key=value key=value word
//	more lines of input
//	----
//	what the command prints
//
// With -rewrite the printed text is put in place of what the file says.
package dd

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

var rewrite = flag.Bool("rewrite", false, "write what data-driven tests print into their files")

// Block is one command of a file.
type Block struct {
	Pos   string // "file.txt:12"
	Cmd   string
	Words []string          // arguments without "="
	Args  map[string]string // arguments key=value
	Input []string          // the lines between the command and "----"
	t     testing.TB
}

// Int is the number that follows key=, or the fallback where the key is absent.
func (b *Block) Int(key string, fallback int) int {
	b.t.Helper()
	text, ok := b.Args[key]
	if !ok {
		return fallback
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		b.t.Fatalf("%s: %s=%s is no number", b.Pos, key, text)
	}
	return n
}

// Files runs each file that matches the pattern as a subtest. Begin is called for
// each file and returns the function that carries out its commands.
func Files(t *testing.T, pattern string, begin func(t *testing.T) func(*Block) string) {
	t.Helper()
	paths, err := filepath.Glob(pattern)
	if err != nil || len(paths) == 0 {
		t.Fatalf("no test files match %s (%v)", pattern, err)
	}
	for _, path := range paths {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".txt"), func(t *testing.T) {
			file(t, path, begin(t))
		})
	}
}

func file(t *testing.T, path string, run func(*Block) string) {
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	lines := strings.Split(strings.TrimRight(string(data), "\n"), "\n")
	for n := 0; n < len(lines); {
		if lines[n] == "" || strings.HasPrefix(lines[n], "#") {
			out.WriteString(lines[n] + "\n")
			n++
			continue
		}
		b := &Block{Pos: fmt.Sprintf("%s:%d", filepath.Base(path), n+1), Args: map[string]string{}, t: t}
		for i, word := range strings.Fields(lines[n]) {
			if key, value, ok := strings.Cut(word, "="); ok {
				b.Args[key] = value
			} else if i == 0 {
				b.Cmd = word
			} else {
				b.Words = append(b.Words, word)
			}
		}
		out.WriteString(lines[n] + "\n")
		for n++; n < len(lines) && lines[n] != "----" && lines[n] != ""; n++ {
			b.Input = append(b.Input, lines[n])
			out.WriteString(lines[n] + "\n")
		}
		var want []string
		if n < len(lines) && lines[n] == "----" {
			for n++; n < len(lines) && lines[n] != ""; n++ {
				want = append(want, lines[n])
			}
		}
		got := strings.TrimRight(run(b), "\n")
		if w := strings.Join(want, "\n"); got != w && !*rewrite {
			t.Errorf("%s: %s printed\n%s\nwant\n%s", b.Pos, b.Cmd, got, w)
		}
		out.WriteString("----\n" + got + "\n")
	}
	if *rewrite && out.String() != string(data) {
		if err := os.WriteFile(path, []byte(out.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

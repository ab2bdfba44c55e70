package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"dorylus/engine"
	"dorylus/engine/dataset"
)

func readme(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// blocks are the README's pieces of code in a language.
func blocks(text, language string) []string {
	var found []string
	for _, m := range regexp.MustCompile("(?s)\n```"+language+"\n(.*?)```").FindAllStringSubmatch(text, -1) {
		found = append(found, m[1])
	}
	return found
}

// The Python lines of the README are those that make parity runs.
func TestReadmeHasTheSnippet(t *testing.T) {
	snippet, err := os.ReadFile(filepath.Join("..", "..", "bench", "peers", "snippet.py"))
	if err != nil {
		t.Fatal(err)
	}
	if got := blocks(readme(t), "python"); len(got) != 1 || got[0] != string(snippet) {
		t.Errorf("README.md has %q, bench/peers/snippet.py is\n%s", got, snippet)
	}
}

// The commands of the README work as they are written, one after the other.
func TestReadmeCommands(t *testing.T) {
	dir := t.TempDir()
	ring(t, dir)
	if err := os.Rename(filepath.Join(dir, "g"), filepath.Join(dir, "mygraph")); err != nil {
		t.Fatal(err)
	}
	run := 0
	for _, block := range blocks(readme(t), "sh") {
		for line := range strings.Lines(block) {
			line, _, _ = strings.Cut(line, "#")
			if args, ok := strings.CutPrefix(strings.TrimSpace(line), "bin/dorylus-engine "); ok {
				mustRun(t, dir, strings.Fields(args)...)
				run++
			}
		}
	}
	if run < 7 {
		t.Errorf("%d commands were found", run)
	}
	mustRun(t, dir, "check", "mygraph/")
	mustRun(t, dir, "prepare", "mygraph/", "-o", "chunks", "--as=distdgl", "--chunks=4")
}

func TestReadmeNamesWhatThereIs(t *testing.T) {
	text := readme(t)
	for _, name := range append(append(dataset.Formats(), engine.Models...), append(engine.Metrics, engine.LRSchedules[1:]...)...) {
		if !regexp.MustCompile(`\b` + name + `\b`).MatchString(text) {
			t.Errorf("%s is not in README.md", name)
		}
	}
	help := ""
	for _, c := range []string{"", "prepare ", "predict ", "check ", "report ", "compare ", "launch local ", "launch ssh ", "launch k8s ", "serve auto ", "certs dev ", "devices "} {
		help += mustRun(t, t.TempDir(), strings.Fields(c+"--help")...)
	}
	for _, flag := range regexp.MustCompile(`--[a-z][a-z-]*`).FindAllString(text, -1) {
		if flag != "--logdir" && flag != "--help" && !strings.Contains(help, flag+" ") && !strings.Contains(help, flag+"\n") {
			t.Errorf("README.md names %s, which no help does", flag)
		}
	}
	if lines := strings.Count(text, "\n"); lines > 150 {
		t.Errorf("README.md has %d lines: at most 150 are read", lines)
	}
}

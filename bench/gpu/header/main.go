// Command header writes a C file of static assertions from our cuda.h: every constant,
// every structure's size and offsets, every function's type. Compiled against a
// toolkit's cuda.h by bench/gpu/header.sh it says where the two differ.
//
//	go run ./bench/gpu/header -o asserts.c csrc/include/cuda.h
//
// The values are not parsed: a program compiled against our header prints them.
package main

import (
	"flag"
	"fmt"
	"log"
	"os"
	"os/exec"
	"path/filepath"
)

func main() {
	log.SetFlags(0)
	out := flag.String("o", "asserts.c", "file to write")
	flag.Parse()
	if flag.NArg() != 1 {
		log.Fatal("usage: header [-o asserts.c] cuda.h")
	}
	text, err := assertions(flag.Arg(0))
	if err == nil {
		err = os.WriteFile(*out, text, 0o644)
	}
	if err != nil {
		log.Fatalf("write the assertions of %s: %v", flag.Arg(0), err)
	}
}

// assertions are the file's text.
func assertions(header string) ([]byte, error) {
	path, err := filepath.Abs(header)
	if err != nil {
		return nil, err
	}
	source, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	found := parse(string(source))
	if len(found.constants) < 200 || len(found.structs) < 8 || len(found.functions) < 150 {
		return nil, fmt.Errorf("found only %d constants, %d structures, %d functions: has the header's form changed?",
			len(found.constants), len(found.structs), len(found.functions))
	}
	dir, err := os.MkdirTemp("", "header")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	program := filepath.Join(dir, "values.c")
	if err := os.WriteFile(program, found.program(path), 0o644); err != nil {
		return nil, err
	}
	exe := filepath.Join(dir, "values")
	cc := os.Getenv("CC")
	if cc == "" {
		cc = "gcc"
	}
	if text, err := exec.Command(cc, "-std=gnu11", "-o", exe, program).CombinedOutput(); err != nil {
		return nil, fmt.Errorf("compile the program that prints the values: %w\n%s", err, text)
	}
	return exec.Command(exe).Output()
}

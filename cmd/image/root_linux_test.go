package image

import (
	"bytes"
	"debug/elf"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/moby/buildkit/frontend/dockerfile/instructions"

	"dorylus/engine/testkit"
)

// imagesEnv names a folder of images that replay.sh has built: NAME, a root, and
// NAME.json, what buildah inspect says of it.
const imagesEnv = "DORYLUS_IMAGES"

// An image is a root folder and what its config says of it.
type image struct {
	config
	root string
}

// newImage gives an image of the Dockerfile: the one that replay.sh has built, or else
// one whose stage the test carries out on a base.
func newImage(t *testing.T, stage string, base func(t *testing.T, root string)) *image {
	t.Helper()
	s := stageOf{read(t).stage(t, stage)}
	if dir := os.Getenv(imagesEnv); dir != "" {
		return builtImage(t, dir, stage, s.config())
	}
	if testing.Short() {
		t.Skip("SKIPPED: builds the programs; run without -short")
	}
	canEnter(t)
	if out, err := exec.Command("go", "env", "CGO_ENABLED").Output(); err != nil || strings.TrimSpace(string(out)) != "1" {
		t.Skipf("SKIPPED: the image's programs have C: CGO_ENABLED=%s, %v", out, err)
	}
	img := &image{s.config(), t.TempDir()}
	base(t, img.root)
	files := stageFiles(t)
	for _, i := range s.Commands {
		switch i := i.(type) {
		case *instructions.CopyCommand:
			for _, src := range i.SourcePaths {
				from, ok := files[src]
				if i.From != "build" || !ok {
					t.Fatalf("%s: the test knows no %s of the build stage", i, src)
				}
				if from == "" { // this machine has none
					continue
				}
				dst := filepath.Join(img.root, target(i, src))
				if err := errors.Join(os.MkdirAll(filepath.Dir(dst), 0o755), copyAny(from, dst)); err != nil {
					t.Fatalf("%s: %v", i, err)
				}
			}
		case *instructions.RunCommand:
			args := append([]string{"/bin/sh", "-c"}, i.CmdLine...)
			cmd := order{Root: img.root, Dir: "/", Args: args, Env: []string{"PATH=/usr/sbin:/usr/bin:/sbin:/bin"}}.command(t)
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Fatalf("%s: %v\n%s", i, err, out)
			}
		}
	}
	return img
}

// builtImage is an image of replay.sh, whose config has to be the Dockerfile's.
func builtImage(t *testing.T, dir, stage string, want config) *image {
	t.Helper()
	canEnter(t)
	text, err := os.ReadFile(filepath.Join(dir, stage+".json"))
	if err != nil {
		t.Fatal(err)
	}
	var inspected struct {
		OCIv1 struct {
			Config config
		}
	}
	if err := json.Unmarshal(text, &inspected); err != nil {
		t.Fatalf("%s.json: %v", stage, err)
	}
	got := inspected.OCIv1.Config
	if got.WorkingDir == "" { // an image that does not say starts in its root
		got.WorkingDir = "/"
	}
	if got.User != want.User || got.WorkingDir != want.WorkingDir || !slices.Equal(got.Entrypoint, want.Entrypoint) {
		t.Errorf("the image of %s has %+v, the Dockerfile %+v", stage, got, want)
	}
	for _, env := range want.Env {
		if !slices.Contains(got.Env, env) {
			t.Errorf("the image of %s lacks %s: %q", stage, env, got.Env)
		}
	}
	root, err := filepath.EvalSymlinks(filepath.Join(dir, stage))
	if err != nil {
		t.Fatal(err)
	}
	return &image{got, root}
}

// stageFiles is what the build stage makes, made here, by its path there: the programs
// as make builds them, and what it copies from packages, "" where this machine lacks it.
func stageFiles(t *testing.T) map[string]string {
	t.Helper()
	bin, err := programs()
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{
		"/src/bin/dorylus-engine":            filepath.Join(bin, "dorylus-engine"),
		"/src/bin/dorylus-lambda":            filepath.Join(bin, "dorylus-lambda"),
		"/libmetis.so.5":                     "",
		"/etc/ssl/certs/ca-certificates.crt": "",
		"/licenses":                          filepath.Join(testkit.Root(t), "engine", "dataset", "cora.NOTICE"),
	}
	if found, _ := filepath.Glob("/usr/lib/*-linux-gnu/libmetis.so.5"); len(found) == 1 {
		files["/libmetis.so.5"] = found[0]
	}
	if certs := "/etc/ssl/certs/ca-certificates.crt"; readable(certs) {
		files[certs] = certs
	}
	return files
}

func readable(name string) bool {
	_, err := os.Stat(name)
	return err == nil
}

// built is the folder of programs, which TestMain removes.
var built string

// programs builds the commands once.
var programs = sync.OnceValues(func() (string, error) {
	var err error
	if built, err = os.MkdirTemp("", "dorylus-image"); err != nil {
		return "", err
	}
	cmd := exec.Command("make", "--no-print-directory", "-C", filepath.Join("..", ".."), "build", "BIN="+built, "VERSION=test", "TRIMPATH=")
	// Nothing of a make that runs the tests.
	cmd.Env = slices.DeleteFunc(os.Environ(), func(kv string) bool {
		name, _, _ := strings.Cut(kv, "=")
		return slices.Contains([]string{"MAKEFLAGS", "MAKELEVEL", "MFLAGS", "CGO_CFLAGS", "CGO_LDFLAGS"}, name)
	})
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%v: %w\n%s", cmd, err, out)
	}
	return built, nil
})

// scratch is an empty base.
func scratch(*testing.T, string) {}

// debian is a base with this machine's C library, shell and the few commands that the
// Dockerfile runs, and with no other library that these do not need themselves.
func debian(t *testing.T, root string) {
	t.Helper()
	for _, dir := range []string{"bin", "sbin", "lib", "lib64"} {
		if link, err := os.Readlink("/" + dir); err == nil {
			if err := errors.Join(os.MkdirAll(filepath.Join(root, link), 0o755), os.Symlink(link, filepath.Join(root, dir))); err != nil {
				t.Fatal(err)
			}
		}
	}
	files := []string{"/etc/ld.so.conf"}
	confs, _ := filepath.Glob("/etc/ld.so.conf.d/libc.conf")
	files = append(files, confs...)
	for _, name := range []string{"sh", "install", "ldconfig"} {
		p, err := exec.LookPath(name)
		if err != nil {
			t.Skipf("SKIPPED: this machine has no %s for the base of an image: %v", name, err)
		}
		if p, err = filepath.EvalSymlinks(p); err != nil {
			t.Fatal(err)
		}
		files = append(files, p)
		libs := libraries(t, p)
		files = append(files, libs...)
		if name == "sh" {
			if err := copyAny(p, filepath.Join(root, "bin", "sh")); err != nil {
				t.Fatal(err)
			}
			for _, l := range libs { // of Debian's package libc6
				for _, more := range []string{"libm.so.6", "libdl.so.2", "libpthread.so.0", "librt.so.1"} {
					if p := path.Join(path.Dir(l), more); path.Base(l) == "libc.so.6" {
						files = append(files, p)
					}
				}
			}
		}
	}
	for _, name := range files {
		dst := filepath.Join(root, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(dst), 0o755), copyAny(name, dst)); err != nil {
			t.Fatalf("make a base: %v", err)
		}
	}
}

// libraries are the files of the libraries, and of the loader, that a program needs here.
func libraries(t *testing.T, program string) []string {
	t.Helper()
	out, err := exec.Command("ldd", program).CombinedOutput()
	if err != nil && !bytes.Contains(out, []byte("not a dynamic executable")) && !bytes.Contains(out, []byte("statically linked")) {
		t.Fatalf("ldd %s: %v\n%s", program, err, out)
	}
	var found []string
	for _, word := range strings.Fields(string(out)) {
		if path.IsAbs(word) && word != program+":" {
			found = append(found, word)
		}
	}
	return found
}

// needs are the libraries that a program names itself, and its loader.
func needs(t *testing.T, program string) (libraries []string, loader string, versions []string) {
	t.Helper()
	f, err := elf.Open(program)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if libraries, err = f.ImportedLibraries(); err != nil {
		t.Fatal(err)
	}
	for _, p := range f.Progs {
		if p.Type == elf.PT_INTERP {
			text := make([]byte, p.Filesz)
			if _, err := p.ReadAt(text, 0); err != nil {
				t.Fatal(err)
			}
			loader = strings.TrimRight(string(text), "\x00")
		}
	}
	symbols, err := f.ImportedSymbols()
	if err != nil && !errors.Is(err, elf.ErrNoSymbols) {
		t.Fatal(err)
	}
	for _, s := range symbols {
		if !slices.Contains(versions, s.Version) {
			versions = append(versions, s.Version)
		}
	}
	return libraries, loader, versions
}

// copyAny copies a file, or a folder's files, with their modes.
func copyAny(from, to string) error {
	info, err := os.Stat(from)
	if err != nil {
		return err
	}
	if info.IsDir() {
		return os.CopyFS(to, os.DirFS(from))
	}
	data, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	return os.WriteFile(to, data, info.Mode()&fs.ModePerm)
}

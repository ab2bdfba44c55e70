package cuemu

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"testing"
	"time"
)

// keep is how long a library that nobody asks for stays in the cache.
const keep = 14 * 24 * time.Hour

// Build is the path of the emulated device with the kernels of csrc/cuda. It is built
// once for each state of the sources and kept in the user's cache folder. The test is
// skipped where there is no C++ compiler or the device cannot run.
func Build(t testing.TB) string {
	t.Helper()
	return BuildFrom(t, filepath.Join(top(t), "csrc", "cuda", "all.cu"))
}

// BuildFrom is Build with the kernels of another file. Edits of .cu and .h files beside
// it are noticed, others that it includes are not.
func BuildFrom(t testing.TB, kernels string) string {
	t.Helper()
	cxx := compiler(t)
	path, err := build(top(t), kernels, cxx)
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// KernelHash is what the library built from the .cu and .h files of a folder answers as
// the hash of its kernels.
func KernelHash(folder string) (string, error) {
	sum := sha256.New()
	for _, pattern := range []string{"*.cu", "*.h"} {
		if err := addFiles(sum, folder, pattern, false); err != nil {
			return "", fmt.Errorf("hash kernels: %w", err)
		}
	}
	return hex.EncodeToString(sum.Sum(nil))[:16], nil
}

// compiler is the C++ compiler's name; the test is skipped without one.
func compiler(t testing.TB) string {
	t.Helper()
	if runtime.GOOS != "linux" || (runtime.GOARCH != "amd64" && runtime.GOARCH != "arm64") {
		t.Skipf("SKIPPED: the emulated device needs Linux on amd64 or arm64, this is %s on %s", runtime.GOOS, runtime.GOARCH)
	}
	cxx := os.Getenv("CXX")
	if cxx == "" {
		cxx = "g++"
	}
	if _, err := exec.LookPath(cxx); err != nil {
		t.Skipf("SKIPPED: no C++ compiler for the emulated device: %v; install g++ or set CXX", err)
	}
	return cxx
}

func build(root, kernels, cxx string) (string, error) {
	fail := func(err error) (string, error) {
		return "", fmt.Errorf("build the emulated device from %s: %w", kernels, err)
	}
	cache, err := cacheFolder()
	if err != nil {
		return fail(err)
	}
	here := filepath.Join(root, "csrc", "cuemu")
	sum := sha256.New()
	fmt.Fprintln(sum, cxx)
	for _, f := range [][2]string{{here, "build.sh"}, {here, "*.h"}, {filepath.Join(here, "src"), "*"}, {filepath.Join(root, "csrc", "include"), "*.h"}} {
		if err := addFiles(sum, f[0], f[1], true); err != nil {
			return fail(err)
		}
	}
	objects := filepath.Join(cache, hex.EncodeToString(sum.Sum(nil))[:16])
	fmt.Fprintln(sum, filepath.Base(kernels))
	for _, pattern := range []string{"*.cu", "*.h"} {
		if err := addFiles(sum, filepath.Dir(kernels), pattern, true); err != nil {
			return fail(err)
		}
	}
	lib := filepath.Join(cache, "libcuemu-"+hex.EncodeToString(sum.Sum(nil))[:16]+".so")
	if _, err := os.Stat(lib); err == nil {
		return lib, nil
	}
	forget(cache)
	cmd := exec.Command("sh", filepath.Join(here, "build.sh"), lib, kernels)
	cmd.Env = append(os.Environ(), "OBJECTS="+objects, "CXX="+cxx)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fail(fmt.Errorf("%w\n%s", err, out))
	}
	return lib, nil
}

// addFiles adds the files of a folder that match, in order, to a sum; their names
// too where named is set.
func addFiles(sum hash.Hash, folder, pattern string, named bool) error {
	files, err := filepath.Glob(filepath.Join(folder, pattern))
	if err != nil {
		return err
	}
	slices.Sort(files)
	for _, f := range files {
		data, err := os.ReadFile(f)
		if err != nil {
			return err
		}
		if named {
			fmt.Fprintln(sum, filepath.Base(f), len(data))
		}
		sum.Write(data)
	}
	return nil
}

func cacheFolder() (string, error) {
	base, err := os.UserCacheDir()
	if err != nil {
		base = os.TempDir() // no home folder, as in some containers
	}
	dir := filepath.Join(base, "dorylus", "cuemu")
	return dir, os.MkdirAll(dir, 0o755)
}

// forget removes old libraries and objects; one that cannot be removed stays.
func forget(cache string) {
	entries, _ := os.ReadDir(cache)
	for _, e := range entries {
		if info, err := e.Info(); err == nil && time.Since(info.ModTime()) > keep {
			os.RemoveAll(filepath.Join(cache, e.Name()))
		}
	}
}

// top is the folder that holds go.mod.
func top(t testing.TB) string {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatalf("find the project's top folder: %v", err)
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir
		}
		up := filepath.Dir(dir)
		if up == dir {
			t.Fatal("find the project's top folder: no go.mod above the test")
		}
		dir = up
	}
}

package image

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"dorylus/csrc/cuemu"
)

// A container has an image, and the volumes that its runs share.
type container struct {
	*image
	volumes map[string]string
	env     []string
}

// start gives an image its volumes, owned as the image's are.
func (i *image) start(t *testing.T) *container {
	t.Helper()
	c := &container{i, map[string]string{}, nil}
	for v := range i.Volumes {
		info, err := os.Stat(filepath.Join(i.root, v))
		if err != nil {
			t.Fatalf("the image has no folder for its volume: %v", err)
		}
		owner := info.Sys().(*syscall.Stat_t)
		c.volumes[v] = t.TempDir()
		if err := errors.Join(os.Chown(c.volumes[v], int(owner.Uid), int(owner.Gid)), os.Chmod(c.volumes[v], info.Mode().Perm())); err != nil {
			t.Fatal(err)
		}
	}
	return c
}

// run is `docker run --read-only --tmpfs /tmp IMAGE ARGS`.
func (c *container) run(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	o := order{Root: c.root, ReadOnly: true, Volumes: c.volumes, Dir: c.WorkingDir, User: c.User, Args: append(slices.Clone(c.Entrypoint), args...)}
	o.Env = append(slices.Concat(c.Env, c.env), "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME=/")
	cmd := o.command(t)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatalf("run %q: %v", o.Args, err)
	}
	return cmd.ProcessState.ExitCode(), out.String(), errs.String()
}

func TestEngineImage(t *testing.T) {
	img := newImage(t, "engine", debian)
	c := img.start(t)
	program := filepath.Join(img.root, img.Entrypoint[0])

	t.Run("libraries", func(t *testing.T) {
		libs, _, versions := needs(t, program)
		for _, l := range libs {
			found := false
			for _, dir := range []string{"lib", "lib64", "usr/lib", "usr/local/lib", "usr/lib/x86_64-linux-gnu", "usr/lib/aarch64-linux-gnu"} {
				_, err := os.Stat(filepath.Join(img.root, dir, l))
				found = found || err == nil
			}
			if !found {
				t.Errorf("the program needs %s, which the image lacks", l)
			}
		}
		for _, v := range versions {
			if n, ok := strings.CutPrefix(v, "GLIBC_2."); ok && (len(n) > 2 && !strings.Contains(n, ".") || n > "34" && len(n) == 2) {
				t.Errorf("the program needs glibc 2.%s, more than the 2.34 that the Dockerfile promises for BASE_IMAGE", n)
			}
		}
	})
	t.Run("devices without a driver", func(t *testing.T) {
		code, out, errs := c.run(t, "devices")
		if code != 0 || !strings.Contains(out, "CUDA error 303") || !strings.Contains(out, "start the container with access to the GPU") {
			t.Errorf("devices: exit %d, want 0 and the missing driver\n%s%s", code, out, errs)
		}
	})
	t.Run("gpu without a driver", func(t *testing.T) {
		quickest := time.Hour
		for range 5 { // other work of the machine does not count
			begun := time.Now()
			code, out, errs := c.run(t, "--mode=gpu")
			if quickest = min(quickest, time.Since(begun)); code != 1 || !strings.Contains(errs, "CUDA error 303") {
				t.Fatalf("--mode=gpu: exit %d, want 1 and the missing driver\n%s%s", code, out, errs)
			}
			if quickest < time.Second {
				return
			}
		}
		t.Errorf("--mode=gpu fails after %v, want within a second", quickest)
	})
	t.Run("train", func(t *testing.T) {
		code, out, errs := c.run(t, "--epochs=100", "--out=RUN", "--json", "--progress=none")
		var s struct {
			TestAcc float64 `json:"test_acc"`
		}
		if err := json.Unmarshal([]byte(out), &s); code != 0 || err != nil || s.TestAcc < 0.75 {
			t.Fatalf("training on cora: exit %d, %v, accuracy %.3f, want 0.75\n%s%s", code, err, s.TestAcc, out, errs)
		}
		summary := filepath.Join(c.volumes["/out"], "RUN", "summary.json")
		info, err := os.Stat(summary)
		if err != nil {
			t.Fatalf("the run is not in the volume: %v", err)
		}
		if uid := info.Sys().(*syscall.Stat_t).Uid; uid != 65532 {
			t.Errorf("%s belongs to %d", summary, uid)
		}
		if code, out, errs := c.run(t, "predict", "--run=RUN", "-o", "classes.csv"); code != 0 {
			t.Errorf("predict: exit %d\n%s%s", code, out, errs)
		}
	})
	t.Run("lambda workers", func(t *testing.T) {
		if code, out, errs := c.run(t, "--mode=lambda", "--lambdas=2", "--epochs=2", "--progress=none"); code != 0 {
			t.Errorf("training on workers of the image: exit %d\n%s%s", code, out, errs)
		}
	})
	t.Run("emulated", func(t *testing.T) {
		// NVIDIA's container runtime, too, puts the driver among the libraries.
		gpu := *c
		gpu.env = []string{"LD_LIBRARY_PATH=/cache"}
		if err := copyAny(cuemu.Build(t), filepath.Join(c.volumes["/cache"], "libcuda.so.1")); err != nil {
			t.Fatal(err)
		}
		if code, out, errs := gpu.run(t, "devices"); code != 0 || !strings.Contains(out, "EMULATED") {
			t.Errorf("devices on the emulated device: exit %d\n%s%s", code, out, errs)
		}
		code, out, errs := gpu.run(t, "--mode=gpu", "--data=synth:sbm,vertices=60,degree=4,classes=3,features=8", "--hidden=4", "--epochs=2", "--json", "--progress=none")
		if code != 0 || !strings.Contains(out, `"emulated": true`) {
			t.Errorf("training on the emulated device: exit %d\n%s%s", code, out, errs)
		}
	})
}

func TestLambdaImage(t *testing.T) {
	img := newImage(t, "lambda", scratch)
	program := filepath.Join(img.root, img.Entrypoint[0])
	if libs, loader, _ := needs(t, program); len(libs) > 0 || loader != "" {
		t.Errorf("the worker needs %q and the loader %q in an image that has nothing", libs, loader)
	}
	c := img.start(t)
	if code, out, errs := c.run(t); code == 0 || code >= 125 || !strings.Contains(out+errs, "this is a Lambda worker") {
		t.Errorf("the worker without a Lambda service: exit %d, want what it is for\n%s%s", code, out, errs)
	}
}

// A root that lacks a library is one that the program does not start in: the tests above
// can fail.
func TestReplayFindsAMissingLibrary(t *testing.T) {
	if os.Getenv(imagesEnv) != "" {
		t.Skip("SKIPPED: the images are not the test's to break")
	}
	img := newImage(t, "engine", debian)
	removed := 0
	for _, l := range []string{"libc.so.6", "libm.so.6"} {
		found, _ := filepath.Glob(filepath.Join(img.root, "usr/lib/*", l))
		for _, f := range found {
			if err := os.Remove(f); err != nil {
				t.Fatal(err)
			}
			removed++
		}
	}
	if removed == 0 {
		t.Fatalf("no C library in %s", img.root)
	}
	if code, out, errs := img.start(t).run(t, "devices"); code == 0 {
		t.Errorf("the program runs without a C library\n%s%s", out, errs)
	}
}

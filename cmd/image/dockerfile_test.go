package image

import (
	"go/build"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/moby/buildkit/frontend/dockerfile/instructions"
	"github.com/moby/buildkit/frontend/dockerfile/parser"
	"github.com/moby/patternmatcher"
	"github.com/moby/patternmatcher/ignorefile"

	"dorylus/cluster/launch"
	"dorylus/engine/testkit"
)

// dockerfile is the Dockerfile: what stands before the first FROM, and the stages.
type dockerfile struct {
	args   map[string]string
	stages []instructions.Stage
}

func read(t *testing.T) *dockerfile {
	t.Helper()
	text := contents(t, "Dockerfile")
	tree, err := parser.Parse(strings.NewReader(text))
	if err != nil {
		t.Fatalf("parse Dockerfile: %v", err)
	}
	stages, meta, err := instructions.Parse(tree.AST, nil)
	if err != nil {
		t.Fatalf("parse Dockerfile: %v", err)
	}
	if len(tree.Warnings) > 0 {
		t.Errorf("Dockerfile: %+v", tree.Warnings)
	}
	d := &dockerfile{args: map[string]string{}, stages: stages}
	for _, m := range meta {
		for _, a := range m.Args {
			if a.Value == nil {
				t.Errorf("Dockerfile: ARG %s has no default", a.Key)
				continue
			}
			d.args[a.Key] = *a.Value
		}
	}
	return d
}

// contents is a file of the repository's top folder.
func contents(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(testkit.Root(t), name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func (d *dockerfile) stage(t *testing.T, name string) *instructions.Stage {
	t.Helper()
	i, ok := instructions.HasStage(d.stages, name)
	if !ok {
		t.Fatalf("Dockerfile has no stage %q", name)
	}
	return &d.stages[i]
}

// all are the instructions of a stage that are of a kind.
func all[C instructions.Command](s *instructions.Stage) []C {
	var found []C
	for _, c := range s.Commands {
		if c, ok := c.(C); ok {
			found = append(found, c)
		}
	}
	return found
}

// config is what an image says of its containers.
type config struct {
	User, WorkingDir    string
	Env, Entrypoint     []string
	Labels              map[string]string
	Volumes             map[string]struct{}
	copied              []string // paths of what is copied, for COPY of single files
	health, command     bool
	entrypointIsAShells bool
}

func (s stageOf) config() config {
	c := config{WorkingDir: "/", Labels: map[string]string{}, Volumes: map[string]struct{}{}}
	for _, i := range s.Commands {
		switch i := i.(type) {
		case *instructions.UserCommand:
			c.User = i.User
		case *instructions.WorkdirCommand:
			c.WorkingDir = path.Join(c.WorkingDir, i.Path)
		case *instructions.EnvCommand:
			for _, kv := range i.Env {
				c.Env = append(c.Env, kv.Key+"="+kv.Value)
			}
		case *instructions.EntrypointCommand:
			c.Entrypoint, c.entrypointIsAShells = i.CmdLine, i.PrependShell
		case *instructions.LabelCommand:
			for _, kv := range i.Labels {
				c.Labels[kv.Key] = kv.Value
			}
		case *instructions.VolumeCommand:
			for _, v := range i.Volumes {
				c.Volumes[v] = struct{}{}
			}
		case *instructions.HealthCheckCommand:
			c.health = true
		case *instructions.CmdCommand:
			c.command = true
		case *instructions.CopyCommand:
			for _, src := range i.SourcePaths {
				c.copied = append(c.copied, target(i, src))
			}
		}
	}
	return c
}

type stageOf struct{ *instructions.Stage }

// target is where COPY puts a source, which is a file.
func target(c *instructions.CopyCommand, src string) string {
	if strings.HasSuffix(c.DestPath, "/") {
		return path.Join(c.DestPath, path.Base(src))
	}
	return c.DestPath
}

func TestStages(t *testing.T) {
	d := read(t)
	var names []string
	for _, s := range d.stages {
		names = append(names, s.Name+" from "+s.BaseName)
	}
	want := []string{"build from golang:${GO_VERSION}-bookworm", "lambda from scratch", "engine from ${BASE_IMAGE}"}
	if !slices.Equal(names, want) {
		t.Errorf("stages are %q, want %q, the last one what docker build makes", names, want)
	}
	if got := d.args["BASE_IMAGE"]; got != "debian:bookworm-slim" {
		t.Errorf("BASE_IMAGE is %q by default: the libraries of the build stage are those of bookworm", got)
	}
	need := regexp.MustCompile(`(?m)^go (\d+\.\d+)`).FindStringSubmatch(contents(t, "go.mod"))
	if need == nil || d.args["GO_VERSION"] != need[1] {
		t.Errorf("GO_VERSION is %q, go.mod wants %q", d.args["GO_VERSION"], need)
	}
	for _, s := range d.stages[:1] {
		if !slices.ContainsFunc(all[*instructions.EnvCommand](&s), func(e *instructions.EnvCommand) bool {
			return slices.ContainsFunc(e.Env, func(kv instructions.KeyValuePair) bool {
				return kv.Key == "GOFLAGS" && strings.Contains(kv.Value, "-trimpath")
			})
		}) {
			t.Error("the build stage does not set -trimpath")
		}
	}
}

// Both images run as no root, and say what they are; the program's has what
// NVIDIA's container runtime asks for, and what the manifests of launch k8s name.
func TestConfig(t *testing.T) {
	d := read(t)
	for _, name := range []string{"engine", "lambda"} {
		c := stageOf{d.stage(t, name)}.config()
		uid, gid, _ := strings.Cut(c.User, ":")
		for _, id := range []string{uid, gid} {
			if n, err := strconv.Atoi(id); err != nil || n <= 0 {
				t.Errorf("%s: USER is %q, want numbers that are not root's", name, c.User)
			}
		}
		if len(c.Entrypoint) != 1 || c.entrypointIsAShells || !slices.Contains(c.copied, c.Entrypoint[0]) {
			t.Errorf("%s: ENTRYPOINT is %q, want one of what is copied: %q", name, c.Entrypoint, c.copied)
		}
		if c.health || c.command {
			t.Errorf("%s: has HEALTHCHECK %t, CMD %t: a check would open the GPU, and without arguments the program trains", name, c.health, c.command)
		}
		for _, l := range []string{"title", "description", "licenses", "version", "revision"} {
			if c.Labels["org.opencontainers.image."+l] == "" {
				t.Errorf("%s: no label org.opencontainers.image.%s", name, l)
			}
		}
	}
	c := stageOf{d.stage(t, "engine")}.config()
	for _, env := range []string{"NVIDIA_VISIBLE_DEVICES=all", "NVIDIA_DRIVER_CAPABILITIES=compute,utility", "CUDA_CACHE_PATH=/cache"} {
		if !slices.Contains(c.Env, env) {
			t.Errorf("ENV lacks %s: %q", env, c.Env)
		}
	}
	for _, folder := range []string{"/cache", launch.DataFolder, launch.OutFolder} {
		if _, ok := c.Volumes[folder]; !ok {
			t.Errorf("VOLUME lacks %s: %v", folder, c.Volumes)
		}
	}
	if c.WorkingDir != launch.OutFolder {
		t.Errorf("WORKDIR is %s: --out=RUN would be lost", c.WorkingDir)
	}
	k := launch.Kubernetes{Name: "run", Image: "dorylus:1", Program: path.Base(c.Entrypoint[0]), API: launch.Jobs, Graphs: 1, Params: 1, Port: 1, CertsSecret: "c"}
	manifest, err := k.Manifest()
	if err != nil {
		t.Fatal(err)
	}
	uid, _, _ := strings.Cut(c.User, ":")
	for _, want := range []string{"runAsUser: " + uid + "\n", "readOnlyRootFilesystem: true\n", "- dorylus-engine\n"} {
		if !strings.Contains(string(manifest), want) {
			t.Errorf("the manifest of launch k8s lacks %q:\n%s", want, manifest)
		}
	}
	if path.Dir(c.Entrypoint[0]) != "/usr/local/bin" {
		t.Errorf("%s is not where pods look for dorylus-engine", c.Entrypoint[0])
	}
}

// The build stage installs what build.sh would.
func TestPackages(t *testing.T) {
	var got []string
	for _, r := range all[*instructions.RunCommand](read(t).stage(t, "build")) {
		if m := regexp.MustCompile(`apt-get install -y --no-install-recommends ([a-z0-9+ .-]+?)\s+&&`).FindStringSubmatch(strings.Join(r.CmdLine, " ")); m != nil {
			got = append(got, strings.Fields(m[1])...)
		}
	}
	var want []string
	body := regexp.MustCompile(`(?s)\nmissing\(\) \{\n(.*?)\n\}\n`).FindStringSubmatch(contents(t, "build.sh"))
	if body == nil {
		t.Fatal("build.sh has no function missing")
	}
	for line := range strings.Lines(body[1]) {
		if strings.Contains(line, "for_tests") {
			continue
		}
		if m := regexp.MustCompile(`(?:^|\s)echo ([a-z0-9+ .-]+)`).FindStringSubmatch(line); m != nil {
			want = append(want, strings.Fields(m[1])...)
		}
	}
	slices.Sort(want)
	if want = slices.Compact(want); !slices.Equal(got, want) {
		t.Errorf("the build stage installs %q, build.sh would install %q", got, want)
	}
}

// What is copied from the repository is there and goes to the container engine, and so
// does every file that the go command reads for the two programs.
func TestContext(t *testing.T) {
	patterns, err := ignorefile.ReadAll(strings.NewReader(contents(t, ".dockerignore")))
	if err != nil {
		t.Fatal(err)
	}
	ignored, err := patternmatcher.New(patterns)
	if err != nil {
		t.Fatal(err)
	}
	root := testkit.Root(t)
	// sent says whether a file of the repository, by its path from the top, is sent.
	sent := func(name string) bool {
		no, err := ignored.MatchesOrParentMatches(name)
		if err != nil {
			t.Fatal(err)
		}
		return !no
	}
	d := read(t)
	for i := range d.stages {
		for _, c := range all[*instructions.CopyCommand](&d.stages[i]) {
			for _, src := range c.SourcePaths {
				if c.From != "" {
					if _, ok := instructions.HasStage(d.stages[:i], c.From); !ok {
						t.Errorf("%s: there is no stage %s before it", c, c.From)
					}
					continue
				}
				if _, err := os.Stat(filepath.Join(root, src)); err != nil || src != "." && !sent(src) {
					t.Errorf("%s: %s is not there (%v) or ignored", c, src, err)
				}
			}
		}
	}
	for _, name := range []string{"Makefile", "build.sh", "LICENSE", "engine/dataset/cora.NOTICE", "csrc/include/cuda.h", "csrc/cudashim/lib/libcuda.so"} {
		if _, err := os.Stat(filepath.Join(root, name)); err != nil || !sent(name) {
			t.Errorf("%s is not there (%v) or ignored", name, err)
		}
	}
	files := needed(t, root)
	for _, name := range files {
		if !sent(name) {
			t.Errorf("%s is needed and ignored", name)
		}
	}
	if len(files) < 300 {
		t.Errorf("the programs need %d files only: %q", len(files), files)
	}
	for _, name := range []string{".git/config", "bin/dorylus-engine", "README.md", "cmd/image/dockerfile_test.go", "csrc/cuda/testdata/x", "RUN/summary.json", "Dockerfile"} {
		if sent(name) {
			t.Errorf("%s goes to the container engine, and a change of it builds everything again", name)
		}
	}
}

// needed are the files of this module that the programs are built from, on any
// architecture of the image. It reads them itself: what the go command has read does not
// count when go test decides whether it has seen this test pass.
func needed(t *testing.T, root string) []string {
	t.Helper()
	seen := map[string]bool{}
	for _, arch := range []string{"amd64", "arm64"} {
		ctx := build.Default
		ctx.GOOS, ctx.GOARCH, ctx.CgoEnabled, ctx.BuildTags = "linux", arch, true, []string{"metis", "cuda"}
		visited := map[string]bool{}
		var visit func(folder string)
		visit = func(folder string) {
			if visited[folder] {
				return
			}
			visited[folder] = true
			p, err := ctx.ImportDir(filepath.Join(root, folder), 0)
			if err != nil {
				t.Fatalf("read %s for %s: %v", folder, arch, err)
			}
			for _, names := range [][]string{p.GoFiles, p.CgoFiles, p.CFiles, p.HFiles, p.SFiles, p.EmbedPatterns} {
				for _, name := range names {
					seen[path.Join(folder, name)] = true
				}
			}
			for _, i := range p.Imports {
				if ours, ok := strings.CutPrefix(i, "dorylus/"); ok {
					visit(ours)
				}
			}
		}
		visit("cmd/dorylus-engine")
		visit("cmd/dorylus-lambda")
	}
	return slices.Sorted(maps.Keys(seen))
}

// Scripts of this folder are shell that runs, and images.sh says why it cannot where no
// container engine is.
func TestScripts(t *testing.T) {
	scripts, err := filepath.Glob("*.sh")
	if err != nil || len(scripts) != 2 {
		t.Fatalf("scripts: %q, %v", scripts, err)
	}
	for _, s := range scripts {
		if out, err := exec.Command("sh", "-n", s).CombinedOutput(); err != nil {
			t.Errorf("%s: %v\n%s", s, err, out)
		}
		if info, err := os.Stat(s); err != nil || info.Mode()&0o111 == 0 {
			t.Errorf("%s cannot be run: %v, %v", s, info.Mode(), err)
		}
	}
	bin := t.TempDir() // a service that is down
	broken := "#!/bin/sh\necho 'cannot connect to the service' >&2\nexit 1\n"
	if err := os.WriteFile(filepath.Join(bin, "broken"), []byte(broken), 0o755); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("sh", "images.sh")
	cmd.Env = append(os.Environ(), "ENGINE=absent broken", "PATH="+bin+":"+os.Getenv("PATH"))
	out, err := cmd.CombinedOutput()
	if err == nil {
		t.Errorf("images.sh without an engine works:\n%s", out)
	}
	for _, want := range []string{"absent is not installed", "broken does not work: cannot connect to the service", "install Docker or Podman"} {
		if !strings.Contains(string(out), want) {
			t.Errorf("images.sh does not say %q:\n%s", want, out)
		}
	}
}

// A stand-in for a container engine is called as its documentation says.
func TestImagesCallsTheEngine(t *testing.T) {
	bin := t.TempDir()
	fake := "#!/bin/sh\n[ $# = 1 ] || { echo \"$SOURCE_DATE_EPOCH\"; printf ' %s' \"$@\"; echo; }\n"
	for _, name := range []string{"docker", "podman"} {
		if err := os.WriteFile(filepath.Join(bin, name), []byte(fake), 0o755); err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command("sh", "images.sh", "--platform=linux/arm64")
		cmd.Env = append(os.Environ(), "ENGINE="+name, "VERSION=v1", "IMAGE=here", "BASE_IMAGE=nvidia/cuda", "PATH="+bin+":"+os.Getenv("PATH"))
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("images.sh with %s: %v\n%s", name, err, out)
		}
		for _, want := range []string{" build --target=engine -t here:v1 -t here:latest ", " build --target=lambda -t here-lambda:v1 ", "--build-arg BASE_IMAGE=nvidia/cuda", "--build-arg VERSION=v1", "--platform=linux/arm64 .\n"} {
			if !strings.Contains(string(out), want) {
				t.Errorf("images.sh with %s lacks %q:\n%s", name, want, out)
			}
		}
	}
}

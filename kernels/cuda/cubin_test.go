package cuda

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// imagesIn is a folder of images with these names, each of which holds its name.
func imagesIn(t *testing.T, names ...string) string {
	t.Helper()
	dir := t.TempDir()
	for _, name := range names {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(name), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// TestFindCubin: an image is of the device's major capability, of a minor one that is not
// above its own, and of this program's kernels.
func TestFindCubin(t *testing.T) {
	const hash, other = "0123456789abcdef", "fedcba9876543210"
	dir := imagesIn(t, "sm_70-"+other+".cubin", "sm_80-"+hash+".cubin", "sm_86-"+hash+".cubin", "sm_89-"+other+".cubin", "sm_90-"+other+".cubin",
		"sm_100-"+hash+".cubin", "sm_90.cubin", "sm_90-"+hash+".ptx", "README")
	for _, c := range []struct {
		folder       string
		major, minor int
		file, why    string
	}{
		{dir, 8, 0, "sm_80-" + hash, ""}, {dir, 8, 5, "sm_80-" + hash, ""}, {dir, 8, 6, "sm_86-" + hash, ""},
		{dir, 8, 9, "sm_86-" + hash, ""}, // that of 8.9 is of other kernels
		{dir, 9, 0, "", "sm_90-" + other + ".cubin is of other kernels than this program's (" + hash + ") and is not used; make cubin"},
		{dir, 7, 5, "", "sm_70-" + other + ".cubin is of other kernels"},
		{dir, 10, 0, "sm_100-" + hash, ""}, {dir, 10, 3, "sm_100-" + hash, ""}, {dir, 12, 0, "", ""}, {dir, 6, 0, "", ""},
		{"", 8, 0, "", ""}, {filepath.Join(dir, "none"), 8, 0, "", "none: no such file or directory; see DORYLUS_CUBIN"},
		{filepath.Join(dir, "README"), 8, 0, "", "no exact image of the kernels is looked for: "},
	} {
		found, why := findCubin(c.folder, hash, c.major, c.minor)
		file := ""
		if found != nil {
			file = strings.TrimSuffix(filepath.Base(found.file), ".cubin")
			if !strings.HasPrefix(file, found.target+"-") {
				t.Errorf("%s has target %s", found.file, found.target)
			}
		}
		if file != c.file || !strings.Contains(why, c.why) || (why == "") != (c.why == "") {
			t.Errorf("capability %d.%d in %s: %q, %q; want %q, %q", c.major, c.minor, c.folder, file, why, c.file, c.why)
		}
	}
}

// TestCubinIsLoaded: the image's bytes reach the driver; where it does not take them, or
// they have gone, PTX does, and that is said.
func TestCubinIsLoaded(t *testing.T) {
	const name = "sm_90-0123456789abcdef.cubin"
	for _, c := range []struct {
		code   int // of the image's load
		images []string
		what   string
		said   string
		fails  bool
	}{
		{0, []string{name}, "cubin sm_90", "", false},
		{209, []string{name, "ptx of sm_80"}, "PTX sm_80", "is not used, but PTX sm_80: LoadModule: there are no kernels for this GPU (CUDA error 209)", false},
		{700, []string{name}, "", "", true},
	} {
		d, said := newDeviceDriver("", 0), ""
		d.loading = []int{c.code}
		dev := &Device{name: "cuda:0", ptx: "sm_80", cubin: &cubin{"sm_90", filepath.Join(imagesIn(t, name), name)}}
		dev.opt.Announce = func(text string) { said += text }
		ctx, err := d.Retain(0)
		if err != nil {
			t.Fatal(err)
		}
		_, err = dev.loadKernels(ctx, []byte("ptx of sm_80"))
		if (err != nil) != c.fails || err != nil && codeOf(err) != c.code {
			t.Errorf("code %d: %v", c.code, err)
		}
		if got := strings.Join(d.images, ", "); got != strings.Join(c.images, ", ") {
			t.Errorf("code %d: the driver was given %s, want %s", c.code, got, c.images)
		}
		if !c.fails && dev.image() != c.what || !strings.Contains(said, c.said) || (said == "") != (c.said == "") {
			t.Errorf("code %d: loaded from %s, said %q; want %s, %q", c.code, dev.image(), said, c.what, c.said)
		}
	}
}

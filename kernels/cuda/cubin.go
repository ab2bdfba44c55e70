package cuda

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
)

// CubinEnv is the environment variable that names a folder of exact images of the kernels,
// as make cubin writes them; without it the folder cubin beside the program is looked at.
const CubinEnv = "DORYLUS_CUBIN"

// cubin is an exact image of the kernels. It needs no compiler in the driver, which takes
// seconds the first time, on every start where its cache is not kept.
type cubin struct {
	target string // "sm_90"
	file   string
}

// cubinName is the name of an image: its target, and the hash of the sources that it was
// made from.
var cubinName = regexp.MustCompile(`^sm_(\d+)-([0-9a-f]{16})\.cubin$`)

// findCubin looks in a folder for the image that a GPU takes: of its major capability and
// the highest minor one that is not above its own. hash is that of this program's kernels:
// an image of others is not used, and why says so.
func findCubin(folder, hash string, major, minor int) (found *cubin, why string) {
	if folder == "" {
		return nil, ""
	}
	entries, err := os.ReadDir(folder)
	if err != nil {
		return nil, fmt.Sprintf("no exact image of the kernels is looked for: %v; see %s", err, CubinEnv)
	}
	stale := ""
	for _, e := range entries { // by name: the highest minor capability comes last
		m := cubinName.FindStringSubmatch(e.Name())
		if m == nil {
			continue
		}
		sm, err := strconv.Atoi(m[1])
		if err != nil || sm/10 != major || sm%10 > minor {
			continue
		}
		if m[2] != hash {
			stale = e.Name()
		} else {
			found = &cubin{"sm_" + m[1], filepath.Join(folder, e.Name())}
		}
	}
	if found == nil && stale != "" {
		return nil, fmt.Sprintf("%s is of other kernels than this program's (%s) and is not used; make cubin makes it again", filepath.Join(folder, stale), hash)
	}
	return found, ""
}

// codesOfImage are the driver's codes of an image that it does not take: another one may
// do.
var codesOfImage = []int{200, 209, 218, 222}

// loadKernels loads the exact image, where there is one that the driver takes, or else
// ptx.
func (d *Device) loadKernels(c context, ptx []byte) (module, error) {
	if d.cubin == nil {
		return c.LoadModule(ptx)
	}
	image, err := os.ReadFile(d.cubin.file)
	if err == nil {
		m, failed := c.LoadModule(image)
		if failed == nil || !slices.Contains(codesOfImage, codeOf(failed)) {
			return m, failed
		}
		err = failed
	}
	d.opt.Announce(fmt.Sprintf("%s: %s is not used, but PTX %s: %v", d.name, d.cubin.file, d.ptx, err))
	d.cubin = nil
	return c.LoadModule(ptx)
}

// image is what the kernels are loaded from: "PTX sm_80", "cubin sm_90".
func (d *Device) image() string {
	if d.cubin != nil {
		return "cubin " + d.cubin.target
	}
	return "PTX " + d.ptx
}

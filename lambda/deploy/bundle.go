package deploy

import (
	"archive/zip"
	"bytes"
	"compress/flate"
	"crypto/sha256"
	"debug/elf"
	"encoding/base64"
	"fmt"
	"io"
	"os"
	"time"
)

// MaxZip is the most that the zipped worker may have, in bytes: what is larger is not
// the worker alone, and starts slower.
const MaxZip = 12_000_000

// Bundle is the code of a function.
type Bundle struct {
	Zip    []byte
	SHA256 string // of Zip, in base64, as Lambda has it
}

// machines are the processors of Architectures in an ELF file.
var machines = map[string]elf.Machine{"x86_64": elf.EM_X86_64, "arm64": elf.EM_AARCH64}

// Pack zips the worker as Lambda wants it: one executable named bootstrap. The same
// program gives the same bytes.
func Pack(path, arch string) (*Bundle, error) {
	return pack(path, arch, MaxZip)
}

func pack(path, arch string, most int) (*Bundle, error) {
	if err := fits(path, arch); err != nil {
		return nil, fmt.Errorf("pack the worker: %w", err)
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("pack the worker: %w", err)
	}
	defer f.Close()
	var buf bytes.Buffer
	z := zip.NewWriter(&buf)
	z.RegisterCompressor(zip.Deflate, func(w io.Writer) (io.WriteCloser, error) { return flate.NewWriter(w, flate.BestCompression) })
	h := &zip.FileHeader{Name: "bootstrap", Method: zip.Deflate, Modified: time.Date(1980, 1, 1, 0, 0, 0, 0, time.UTC)}
	h.SetMode(0o755)
	w, err := z.CreateHeader(h)
	if err == nil {
		_, err = io.Copy(w, f)
	}
	if err == nil {
		err = z.Close()
	}
	if err != nil {
		return nil, fmt.Errorf("zip %s: %w", path, err)
	}
	if buf.Len() > most {
		return nil, fmt.Errorf("pack the worker: %s has %.1f MB when zipped, and %.1f MB at most are deployed: build it stripped, with ./build.sh build", path, float64(buf.Len())/1e6, float64(most)/1e6)
	}
	sum := sha256.Sum256(buf.Bytes())
	return &Bundle{buf.Bytes(), base64.StdEncoding.EncodeToString(sum[:])}, nil
}

// fits says whether Lambda can run a program: it has to be for its processor and to
// need no libraries, since those of Lambda are older than most.
func fits(path, arch string) error {
	if _, err := os.Stat(path); err != nil {
		return fmt.Errorf("%w; build it with ./build.sh build", err)
	}
	f, err := elf.Open(path)
	if err != nil {
		return fmt.Errorf("%s is no Linux program (%v); build the worker with ./build.sh build", path, err)
	}
	defer f.Close()
	if f.Machine != machines[arch] {
		return fmt.Errorf("%s is for %v, and the function is to be %s: name the worker that is built for it, or another architecture", path, f.Machine, arch)
	}
	for _, p := range f.Progs {
		if p.Type == elf.PT_INTERP {
			return fmt.Errorf("%s is not static: it needs libraries that Lambda has in another version; build it with ./build.sh build, or with CGO_ENABLED=0", path)
		}
	}
	return nil
}

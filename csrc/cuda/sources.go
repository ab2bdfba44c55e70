package cuda

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"io/fs"
	"sync"
)

//go:embed *.cu *.h
var sources embed.FS

// Hash is that of the kernels' sources: 16 digits of the SHA-256 of all .cu files and
// then all .h files, each in the order of their names. hash.sh prints the same.
var Hash = sync.OnceValue(func() string {
	sum := sha256.New()
	for _, pattern := range []string{"*.cu", "*.h"} {
		files, err := fs.Glob(sources, pattern)
		if err != nil {
			panic(err) // of the pattern
		}
		for _, f := range files {
			data, err := sources.ReadFile(f)
			if err != nil {
				panic(err) // it is embedded
			}
			sum.Write(data)
		}
	}
	return hex.EncodeToString(sum.Sum(nil))[:16]
})

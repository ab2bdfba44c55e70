//go:build !(cuda && cgo && linux && (amd64 || arm64))

package cuda

import "errors"

// Built says whether this program has GPU support.
const Built = false

func openDriver(string) (driver, error) { return nil, errors.New(NotBuilt) }

func image(string) []byte { return nil }

func kernelHash() string { return "" }

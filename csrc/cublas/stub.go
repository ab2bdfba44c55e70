//go:build !(cuda && cgo && linux && (amd64 || arm64))

package cublas

import "errors"

// Library is never had.
type Library struct{}

// Open refuses: the program was built without GPU support.
func Open([]string) (*Library, error) {
	return nil, errors.New("built without GPU support: tag cuda")
}

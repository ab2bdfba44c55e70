//go:build cuda && cgo && linux && (amd64 || arm64)

package cuda

import _ "embed"

// PTX70 is the module for compute capability 7.0 and later, all but the products by
// matrix units.
//
//go:embed sm_70.ptx
var PTX70 string

// PTX80 is the module for compute capability 8.0 and later.
//
//go:embed sm_80.ptx
var PTX80 string

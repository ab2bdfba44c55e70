// Package ongpu has the tests of engine/pipeline on the GPU device, emulated or real: a
// package of its own, since engine knows no GPU.
package ongpu

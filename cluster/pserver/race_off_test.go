//go:build !race

package pserver

const raceOn = false

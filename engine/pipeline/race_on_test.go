//go:build race

package pipeline

// raceOn: tests are ten times slower, and are after other bugs than wrong numbers.
const raceOn = true

package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"slices"

	"dorylus/engine"
)

// server is what a graph server says of itself in the events, at the end of a run.
type server struct {
	Rank       int   `json:"rank"`
	Peak       int64 `json:"peak_memory_bytes"`
	RowValues  int64 `json:"row_value_bytes_sent"`
	RowBytes   int64 `json:"row_bytes_sent"`
	RowFraming int64 `json:"row_framing_bytes_sent"`
	Sent       int64 `json:"bytes_sent"`
	Received   int64 `json:"bytes_received"` // on the sockets that it has opened, as Sent
	Params     int64 `json:"parameter_bytes_sent"`
	ParamsRecv int64 `json:"parameter_bytes_received"`

	// From counts the rows that it has read in gathers, by the server that has them and by
	// their age in epochs; Seconds is what its tasks took, by kind.
	From    engine.Ages        `json:"row_age_from"`
	Seconds map[string]float64 `json:"-"`
}

// readServers reads what the graph servers have told, by rank, and what each epoch has
// taken. The sums of a server's tasks precede what it says of itself; what it has read of
// each server has to be what its tasks have read.
func readServers(path string) (all []server, epochs []float64, err error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, nil, err
	}
	defer f.Close()
	next := server{Seconds: map[string]float64{}}
	var ages engine.Ages // of next's tasks
	in := bufio.NewScanner(f)
	in.Buffer(nil, 16<<20)
	for in.Scan() {
		var e struct {
			Event string           `json:"event"`
			Role  string           `json:"role"`
			Nanos map[string]int64 `json:"nanoseconds"`
			Age   []int64          `json:"age"`
			Took  float64          `json:"seconds"`
		}
		if err := json.Unmarshal(in.Bytes(), &e); err != nil {
			return nil, nil, fmt.Errorf("read %s: %w", path, err)
		}
		switch e.Event {
		case "run_start": // of a run that was resumed only the last part counts
			all, epochs, next, ages = nil, nil, server{Seconds: map[string]float64{}}, nil
		case "epoch":
			epochs = append(epochs, e.Took)
		case "tasks":
			for kind, n := range e.Nanos {
				next.Seconds[kind] += float64(n) / 1e9
			}
			ages = ages.Add(engine.Ages{e.Age})
		case "server":
			if e.Role == "param" { // the rest is about graph servers
				continue
			}
			if err := json.Unmarshal(in.Bytes(), &next); err != nil {
				return nil, nil, fmt.Errorf("read %s: %w", path, err)
			}
			if next.Rank != len(all) {
				return nil, nil, fmt.Errorf("read %s: graph server %d speaks after %d others", path, next.Rank, len(all))
			}
			if by, of := next.From.Total(), ages.Total(); len(next.From) > 0 && !slices.Equal(by, of) {
				return nil, nil, fmt.Errorf("read %s: graph server %d has read rows of ages %v, by the servers that have them %v", path, next.Rank, of, by)
			}
			all = append(all, next)
			next, ages = server{Seconds: map[string]float64{}}, nil
		}
	}
	if err := in.Err(); err != nil {
		return nil, nil, fmt.Errorf("read %s: %w", path, err)
	}
	return all, epochs, nil
}

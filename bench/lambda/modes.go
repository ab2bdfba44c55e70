package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// modes is what `compare` says of a data set.
type modes struct {
	Data  string   `json:"data"`
	Flags []string `json:"flags"`
	// Table is what it prints, line by line.
	Table  []string    `json:"table"`
	Modes  []modeCost  `json:"modes"`
	Ledger ledgerEntry `json:"ledger"`
}

// modeCost is a mode's bill.
type modeCost struct {
	Mode  string             `json:"mode"`
	Parts map[string]float64 `json:"usd_by_part"`
	Total float64            `json:"usd"`
	Moved int64              `json:"bytes_moved"`
}

// ledgerEntry is what the invocations of a run were billed for, one by one, and what
// that costs by the prices that the run has noted.
type ledgerEntry struct {
	Invocations int64   `json:"invocations"`
	BilledMS    int64   `json:"billed_ms"`
	GBSeconds   float64 `json:"gb_seconds"`
	Duration    float64 `json:"usd_for_gb_seconds"`
	Requests    float64 `json:"usd_for_requests"`
}

// compare has the engine compare both modes on real graphs.
func (r *report) compare(l *lab) error {
	npz, splits := filepath.Join(l.reference, "data/coauthor-cs/ms_academic_cs.npz"), filepath.Join(l.reference, "golden/splits/coauthor-cs.json")
	for _, x := range []struct {
		name  string
		needs []string
		flags []string
		shown []string // of flags, without folders
	}{
		{"cora", nil, nil, []string{"--data=cora", "--epochs=200"}},
		{"coauthor-cs", []string{npz, splits}, []string{"--data=" + npz, "--split-file=" + splits}, []string{"--hidden=64", "--epochs=60"}},
	} {
		var missing error
		for _, path := range x.needs {
			if _, err := os.Stat(path); err != nil {
				missing = err
			}
		}
		if missing != nil {
			r.Skipped = append(r.Skipped, fmt.Sprintf("compare on %s: %v", x.name, errors.Unwrap(missing)))
			continue
		}
		l.say("compare on %s", x.name)
		folder := filepath.Join(l.folder, "compare-"+x.name)
		flags := append([]string{"--modes=cpu,lambda", "--lambdas=2"}, x.shown...)
		table, err := l.call(slices.Concat([]string{"compare", "--progress=none", "--out=" + folder}, flags, x.flags)...)
		if err != nil {
			return err
		}
		if err := r.comparison(x.name, flags, string(table), folder); err != nil {
			return fmt.Errorf("%s: %w", x.name, err)
		}
	}
	return nil
}

// comparison reads what is kept of one comparison and checks that its parts add up.
func (r *report) comparison(name string, flags []string, table, folder string) error {
	text, err := os.ReadFile(filepath.Join(folder, "compare.json"))
	if err != nil {
		return err
	}
	var kept struct {
		Modes []summary `json:"modes"`
	}
	if err := json.Unmarshal(text, &kept); err != nil {
		return fmt.Errorf("read compare.json: %w", err)
	}
	if len(kept.Modes) != 2 || kept.Modes[1].Mode != "lambda" {
		return fmt.Errorf("compare.json has %d modes; want cpu and lambda", len(kept.Modes))
	}
	m := modes{Data: name, Flags: flags}
	for line := range strings.Lines(table) {
		if line = strings.TrimRight(line, " \n"); !strings.HasPrefix(line, "Kept in") {
			m.Table = append(m.Table, line)
		}
	}
	for i, s := range kept.Modes {
		c := modeCost{Mode: s.Mode, Parts: map[string]float64{}, Total: s.Cost["total"], Moved: s.Moved}
		sum := 0.0
		for part, usd := range s.Cost {
			if part != "total" {
				c.Parts[part] = usd
				sum += usd
			}
		}
		m.Modes = append(m.Modes, c)
		r.holds("compare", fmt.Sprintf("%s, %s: the parts of the bill are its total", name, s.Mode), sameDollars(sum, c.Total), fmt.Sprintf("$%.9f and $%.9f", sum, c.Total))
		if i == 1 {
			moved := s.Wire["sent_bytes"] + s.Wire["received_bytes"]
			r.holds("compare", name+": bytes moved are those sent and received", s.Moved == moved && moved > 0, fmt.Sprintf("%d and %d", s.Moved, moved))
		}
	}
	events, err := os.Open(filepath.Join(folder, "lambda", "events.jsonl"))
	if err != nil {
		return err
	}
	defer events.Close()
	if m.Ledger, err = readLedger(events); err != nil {
		return fmt.Errorf("read %s: %w", events.Name(), err)
	}
	parts := m.Modes[1].Parts
	r.holds("compare", name+": Lambda's dollars are those of the billed milliseconds",
		sameDollars(m.Ledger.Duration, parts["lambda_duration"]) && sameDollars(m.Ledger.Requests, parts["lambda_requests"]),
		fmt.Sprintf("%d ms of %d invocations, %.6f GB-seconds: $%.9f and $%.9f", m.Ledger.BilledMS, m.Ledger.Invocations, m.Ledger.GBSeconds, m.Ledger.Duration, parts["lambda_duration"]))
	r.sameBits(name, kept.Modes[0], kept.Modes[1])
	r.Compare = append(r.Compare, m)
	return nil
}

// sameDollars allows for a rounding of 10⁻⁹ dollars, in which bills are counted.
func sameDollars(a, b float64) bool { return math.Abs(a-b) < 1.5e-9 }

// readLedger adds up the invocations in a run's events.
func readLedger(events io.Reader) (ledgerEntry, error) {
	var out ledgerEntry
	var perGBs map[string]float64
	perRequest := 0.0
	in := bufio.NewScanner(events)
	in.Buffer(nil, 16<<20)
	for in.Scan() {
		var e struct {
			Event string `json:"event"`
			Rates struct {
				Lambda struct {
					GBs     map[string]float64 `json:"usd_per_gb_s"`
					Request float64            `json:"usd_per_request"`
				} `json:"lambda"`
			} `json:"rates"`
			Arch     string `json:"arch"`
			MemoryMB int64  `json:"memory_mb"`
			BilledMS int64  `json:"billed_ms"`
		}
		if err := json.Unmarshal(in.Bytes(), &e); err != nil {
			return out, err
		}
		switch e.Event {
		case "run_start":
			perGBs, perRequest = e.Rates.Lambda.GBs, e.Rates.Lambda.Request
		case "lambda_used":
			price, ok := perGBs[e.Arch]
			if !ok {
				return out, fmt.Errorf("no price of %q is noted", e.Arch)
			}
			gbs := float64(e.BilledMS) * float64(e.MemoryMB) / 1000 / 1024
			out.Invocations++
			out.BilledMS += e.BilledMS
			out.GBSeconds += gbs
			out.Duration += gbs * price
			out.Requests += perRequest
		}
	}
	if err := in.Err(); err != nil {
		return out, err
	}
	if out.Invocations == 0 {
		return out, errors.New("no invocation was billed")
	}
	return out, nil
}

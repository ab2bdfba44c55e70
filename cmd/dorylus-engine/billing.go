package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"dorylus/engine"
	"dorylus/engine/cost"
	"dorylus/engine/sink"
)

// overBudget is the reason of runs that --max-cost has ended.
const overBudget = "max-cost"

// biller prices the runs of a command and stops them when they have cost enough.
type biller struct {
	rates *engine.Rates // nil: they are not priced
	limit float64       // dollars, of all runs together; 0: none
	spent cost.Bill     // by runs that have ended
}

// newBiller finds the prices of the machines that c asks for.
func (a *app) newBiller(c *engine.Config) (*biller, error) {
	path, named := a.pricesFile()
	if named && !exists(path) {
		return nil, fmt.Errorf("read prices: %sPRICES names %s, which is not there; `prices refresh` would write it", envPrefix, path)
	}
	table, err := cost.Load(path)
	if err != nil {
		return nil, err
	}
	if c.Mode == "gpu" && a.emulated() {
		if c.MaxCost > 0 {
			return nil, fmt.Errorf("--max-cost=%s: nothing is counted, the device is %s; leave it out", decimal(c.MaxCost), engine.EmulatedNote)
		}
		return &biller{}, nil
	}
	name, err := a.instance(c, table)
	if err != nil {
		return nil, err
	}
	rates, err := table.Price(a.seat.servers(cost.Servers{Graph: name, Graphs: 1, Param: a.paramInstance(c, name), Lambda: c.Mode == "lambda"}))
	if err != nil {
		return nil, usagef("--instance=%s: %w", name, err)
	}
	return &biller{rates: rates, limit: c.MaxCost}, nil
}

// paramInstance is the type of parameter servers that have a host of their own, where graph
// servers are of type graph: they compute on processors only.
func (a *app) paramInstance(c *engine.Config, graph string) string {
	if c.Mode == "gpu" && graph != cost.Unpriced {
		return cost.DefaultInstance("cpu")
	}
	return graph
}

// pricesFile is where the user's own table is, or would be: the file that
// DORYLUS_PRICES has named, else dorylus/prices.json among the user's settings. "":
// there is no place for it that this user may look into.
func (a *app) pricesFile() (path string, named bool) {
	env := map[string]string{}
	for _, kv := range a.env {
		key, value, _ := strings.Cut(kv, "=")
		env[key] = value
	}
	switch {
	case env[envPrefix+"PRICES"] != "":
		return env[envPrefix+"PRICES"], true
	case filepath.IsAbs(env["XDG_CONFIG_HOME"]):
		path = filepath.Join(env["XDG_CONFIG_HOME"], "dorylus", "prices.json")
	case env["HOME"] != "":
		path = filepath.Join(env["HOME"], ".config", "dorylus", "prices.json")
	}
	if _, err := os.Stat(path); errors.Is(err, fs.ErrPermission) {
		return "", false // HOME is another user's, as in containers
	}
	return path, false
}

// over says that the runs before and a run with bill now have passed the limit.
func (b *biller) over(now cost.Bill) bool {
	total, _ := b.spent.Plus(now).Total()
	return b.limit > 0 && total.USD() > b.limit
}

// words is what the runs before and a run with bill now cost.
func (b *biller) words(now cost.Bill) string {
	total, _ := b.spent.Plus(now).Total()
	return total.String()
}

// decimal is a number without an exponent.
func decimal(x float64) string { return strconv.FormatFloat(x, 'f', -1, 64) }

// add counts a run that has ended.
func (b *biller) add(done cost.Bill) { b.spent = b.spent.Plus(done) }

// stop ends the run of a tally once it is over the limit.
func (b *biller) stop(t *sink.Tally) func() string {
	return func() string {
		if b.over(t.Bill()) {
			return overBudget
		}
		return ""
	}
}

// mayGoOn refuses to resume a run that has cost more than the limit already.
func (b *biller) mayGoOn(past cost.Bill) error {
	switch _, known := past.Total(); {
	case b.limit == 0:
		return nil
	case !known:
		return errors.New("what it has cost so far is not known, since it was not priced; leave --max-cost out")
	case b.over(past):
		return fmt.Errorf("it has cost %s already; give a --max-cost above that, or 0 for no limit", b.words(past))
	}
	return nil
}

// stoppedText says why a run, counted already, ended early and how to go on with it.
func (b *biller) stoppedText(c *engine.Config, kept bool) string {
	text := fmt.Sprintf("Stopped at %s, more than --max-cost=%s; ", b.words(cost.Bill{}), decimal(b.limit))
	if !kept {
		return text + "nothing is kept (--out=RUN would keep a checkpoint)."
	}
	return text + fmt.Sprintf("go on with --resume=%s and a higher --max-cost.", c.OutDir)
}

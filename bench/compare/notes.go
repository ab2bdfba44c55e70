package compare

import (
	"fmt"
	"runtime"
	"slices"
	"strings"
)

// notes say what was measured, what is priced from a table, and what has no value.
func (c *Comparison) notes() []string {
	notes := []string{
		fmt.Sprintf("Measured here: accuracy, epochs, times, bytes; %s, %s/%s, one mode after the other on the same data in memory.",
			c.places(), runtime.GOOS, runtime.GOARCH),
		"Priced from the table: these times, as if the machine were of the type named. That type may be faster or slower than this machine.",
	}
	for _, g := range c.groups(func(m *Mode) string { return m.CostNote }) {
		notes = append(notes, fmt.Sprintf("  %s: %s.", g.names, g.text))
	}
	if names := c.names((*Mode).modelled); names != "" {
		notes = append(notes, fmt.Sprintf("Modelled: Lambda's dollars of %s; a local service has counted requests and billed milliseconds, AWS has not. Its workers share the processors of the machine that it runs on.", names))
	}
	for i := range c.Modes {
		if m := &c.Modes[i]; m.Why != "" {
			notes = append(notes, fmt.Sprintf("No value of %s: %s.", m.Name, m.Why))
		}
	}
	first := &c.Modes[0]
	if len(c.Modes) > 1 && first.Why != "" {
		notes = append(notes, fmt.Sprintf("No relative values, since the first mode, %s, has no value.", first.Name))
	}
	if c.Runs <= 1 && len(c.Modes) > 1 {
		notes = append(notes, "One run in each mode: differences of time may be chance; --runs=N shows how much they vary.")
	}
	if c.Target == 0 {
		notes = append(notes, "Without --target-accuracy, value is that of the whole training, however accurate its result is.")
	}
	return notes
}

// places says on what the modes have run.
func (c *Comparison) places() string {
	groups := c.groups(func(m *Mode) string { return fmt.Sprintf("%s with %d threads", m.Device, m.Threads) })
	if len(groups) == 1 {
		return groups[0].text
	}
	var parts []string
	for _, g := range groups {
		parts = append(parts, g.names+" on "+g.text)
	}
	return strings.Join(parts, ", ")
}

// group is modes that have a text in common.
type group struct{ names, text string }

// groups are the different texts, in the order of the modes.
func (c *Comparison) groups(text func(*Mode) string) []group {
	var all []group
	for i := range c.Modes {
		t := text(&c.Modes[i])
		if !slices.ContainsFunc(all, func(g group) bool { return g.text == t }) {
			all = append(all, group{c.names(func(m *Mode) bool { return text(m) == t }), t})
		}
	}
	return all
}

// names lists the modes that are so.
func (c *Comparison) names(is func(*Mode) bool) string {
	var names []string
	for i := range c.Modes {
		if is(&c.Modes[i]) {
			names = append(names, c.Modes[i].Name)
		}
	}
	return strings.Join(names, ", ")
}

// modelled says that a local service has counted what Lambda workers used.
func (m *Mode) modelled() bool { return strings.Contains(m.CostNote, "Lambda modelled") }

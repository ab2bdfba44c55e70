package compare

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"unicode/utf8"

	"dorylus/engine/cost"
	"dorylus/engine/sink"
)

// Text is c for people: what was trained, the table, and where its figures come from.
func (c *Comparison) Text() string {
	if len(c.Modes) == 0 {
		return ""
	}
	var b strings.Builder
	ran := c.Ran()
	if len(ran.Modes) > 0 {
		fmt.Fprintln(&b, ran.head())
		fmt.Fprintln(&b)
		ran.table().write(&b)
		fmt.Fprintln(&b)
	}
	for _, m := range c.Modes {
		if m.NotRun != "" {
			fmt.Fprintf(&b, "%s: not run: %s\n", m.Name, m.NotRun)
		}
	}
	if len(ran.Modes) == 0 {
		return b.String()
	}
	for _, note := range ran.notes() {
		fmt.Fprintln(&b, note)
	}
	if first := &c.Modes[0]; first.NotRun != "" {
		fmt.Fprintf(&b, "No relative values, since the first mode, %s, was not run.\n", first.Name)
	}
	return b.String()
}

// head says what all modes have trained.
func (c *Comparison) head() string {
	s := c.Modes[0].Summary
	text := fmt.Sprintf("%s on %s: %s vertices, %s edges", s.Model, s.Dataset, grouped(fmt.Sprint(s.Vertices)), grouped(fmt.Sprint(s.Edges)))
	if c.Runs > 1 {
		return text + fmt.Sprintf("; %d runs from seed %d in each mode, means ± sample standard deviations", c.Runs, s.Seed)
	}
	return text + fmt.Sprintf("; seed %d", s.Seed)
}

// grid is a table: the first cell of each row is its name.
type grid [][]string

func (g *grid) row(name string, cells []string) { *g = append(*g, append([]string{name}, cells...)) }

// write aligns names to the left and cells to the right.
func (g grid) write(b *strings.Builder) {
	var width []int
	for _, row := range g {
		for i, cell := range row {
			if i == len(width) {
				width = append(width, 0)
			}
			width[i] = max(width[i], utf8.RuneCountInString(cell))
		}
	}
	for _, row := range g {
		var line strings.Builder
		for i, cell := range row {
			pad := strings.Repeat(" ", width[i]-utf8.RuneCountInString(cell))
			if i == 0 {
				line.WriteString(cell + pad)
			} else {
				line.WriteString("  " + pad + cell)
			}
		}
		b.WriteString(strings.TrimRight(line.String(), " ") + "\n")
	}
}

func (c *Comparison) table() grid {
	var g grid
	g.row("", each(c, func(m *Mode) string { return m.Name }))
	c.accuracy(&g)
	c.speed(&g)
	c.tasks(&g)
	c.numbers(&g, "bytes moved", bytesScale, moved, bare)
	c.dollars(&g)
	g.row("value, 1/(seconds·dollars)", each(c, func(m *Mode) string { return significant(float64(m.Value), 4) }))
	g.row("value, relative", each(c, func(m *Mode) string { return significant(float64(m.Relative), 3) }))
	g.row("weights", each(c, func(m *Mode) string {
		if first := &c.Modes[0]; m != first && m.WeightsSHA256 == first.WeightsSHA256 && m.WeightsSHA256 != "" {
			return "the same bits"
		}
		return short(m.WeightsSHA256)
	}))
	return g
}

// each is a cell of every mode.
func each(c *Comparison, cell func(*Mode) string) []string {
	cells := make([]string, len(c.Modes))
	for i := range c.Modes {
		cells[i] = cell(&c.Modes[i])
	}
	return cells
}

// numbers is a row in one scale, fitted to its values.
func (c *Comparison) numbers(g *grid, name string, fit func(...float64) scale, get func(*sink.Summary) sink.Number, prefix func(*Mode) string) {
	var values []float64
	for i := range c.Modes {
		values = append(values, c.Modes[i].over(get).mean)
	}
	s := fit(values...)
	g.row(name, each(c, func(m *Mode) string {
		text := s.text(m.over(get))
		if text == unknown {
			return text
		}
		return prefix(m) + text
	}))
}

func bare(*Mode) string { return "" }

// accuracy has what the delivered weights are worth on vertices that training has not
// seen.
func (c *Comparison) accuracy(g *grid) {
	percents := func(...float64) scale { return scale{100, " %", 2} }
	if first := &c.Modes[0]; first.TestMetric != nil {
		of := func(r *sink.Summary) sink.Number {
			if r.TestMetric == nil {
				return sink.Number(math.NaN())
			}
			return *r.TestMetric
		}
		c.numbers(g, metricName(first.Metric)+", test at best validation", percents, of, bare)
	}
	c.numbers(g, "accuracy, test at best validation", percents, func(r *sink.Summary) sink.Number { return r.TestAcc }, bare)
}

// speed has the way to the target, or to the end where there is none.
func (c *Comparison) speed(g *grid) {
	to := "end"
	if c.Target > 0 {
		to = "target"
		g.row(fmt.Sprintf("target, %s in validation", percent(sink.Number(c.Target))), each(c, (*Mode).arrival))
	}
	prefix := func(m *Mode) string {
		if m.short {
			return "> " // it would have taken longer
		}
		return ""
	}
	c.numbers(g, "epochs to the "+to, plainScale, func(r *sink.Summary) sink.Number { return r.EpochsRun }, prefix)
	c.numbers(g, "seconds to the "+to, secondsScale, func(r *sink.Summary) sink.Number { return r.TotalSeconds }, prefix)
	c.numbers(g, "time per epoch, median", secondsScale, func(r *sink.Summary) sink.Number { return r.EpochSeconds }, bare)
}

// arrival says whether the target was reached.
func (m *Mode) arrival() string {
	switch runs := len(m.runs()); {
	case *m.Reached:
		return "reached"
	case runs > 1:
		return fmt.Sprintf("%d of %d reached it", m.count("target"), runs)
	}
	return "missed"
}

// tasks breaks the workers' time down by kind of task.
func (c *Comparison) tasks(g *grid) {
	sums := make([]float64, len(c.Modes))
	all := map[string]sink.Number{}
	for i := range c.Modes {
		for kind, t := range c.Modes[i].TaskSeconds {
			sums[i] += float64(t)
			if t.Known() {
				all[kind] += t
			}
		}
	}
	maps.DeleteFunc(all, func(_ string, t sink.Number) bool { return t == 0 })
	s := secondsScale(sums...)
	line := func(name string, get func(i int) float64) {
		cells := make([]string, len(c.Modes))
		for i := range cells {
			cells[i] = s.text(spread{get(i), math.NaN()})
		}
		g.row(name, cells)
	}
	line("workers' time", func(i int) float64 { return sums[i] })
	for _, kind := range sink.SortedKinds(all) {
		line("  "+kind, func(i int) float64 {
			if t, ok := c.Modes[i].TaskSeconds[kind]; ok {
				return float64(t)
			}
			return math.NaN()
		})
	}
}

// dollars breaks the bill down into its parts, which add up to the total.
func (c *Comparison) dollars(g *grid) {
	var amounts []cost.Dollars
	nonzero := map[string]bool{totalKey: true}
	for i := range c.Modes {
		for key, usd := range c.Modes[i].Cost {
			if usd.Known() {
				amounts = append(amounts, cost.FromUSD(float64(usd)))
				nonzero[key] = nonzero[key] || usd != 0
			}
		}
	}
	s := dollarScale(amounts)
	line := func(name, key string) {
		if nonzero[key] {
			g.row(name, each(c, func(m *Mode) string { return s.text(spread{float64(m.Cost[key]), math.NaN()}) }))
		}
	}
	g.row("dollars"+c.modelledMark(), nil)
	for _, p := range (cost.Bill{}).Parts() {
		line("  "+p.Name, p.Key)
	}
	line("  total", totalKey)
	if c.Runs > 1 {
		g.row("    ± over runs", each(c, func(m *Mode) string {
			total := m.over(func(r *sink.Summary) sink.Number { return r.Cost[totalKey] })
			return s.text(spread{total.std, math.NaN()})
		}))
	}
}

// totalKey is the sum of the parts in Summary.Cost.
const totalKey = "total"

// modelledMark says at the head of the bill that not all of it was counted by AWS.
func (c *Comparison) modelledMark() string {
	if slices.ContainsFunc(c.Modes, func(m Mode) bool { return m.modelled() }) {
		return " (Lambda's are modelled)"
	}
	return ""
}
